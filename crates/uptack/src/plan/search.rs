//! The search within a family: coarse to fine, and the same every time.

use super::family::Family;
use super::law::Law;
use super::limits::Limits;
use super::request::Request;

/// The best law found in a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) family: Family,
    pub(super) law: Law,
    pub(super) cost: f64,
}

/// When refining stops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// How exactly the flips are solved for.
    pub(super) accuracy: f64,
    /// The structural parameter moves by less than this share of itself.
    finest: f64,
    /// The asymmetric search takes smaller steps than this.
    smallest_step: f64,
}

impl Effort {
    /// For a plan.
    pub(super) const FULL: Self = Self { accuracy: 2e-3, finest: 2e-3, smallest_step: 0.02 };
    /// For a point on a chart, where half a per cent is less than a line's width.
    pub(super) const SKETCH: Self = Self { accuracy: 8e-3, finest: 2e-3, smallest_step: 0.1 };
}

/// How many steps the grid has that comes before refining.
const GRID: u32 = 9;

pub(super) struct Search<'a> {
    pub(super) request: &'a Request,
    pub(super) limits: &'a Limits<'a>,
    pub(super) effort: Effort,
}

impl Search<'_> {
    /// The best law found, its flips solved for exactly.
    pub(super) fn polish(&self, found: Found) -> Found {
        let polished = self.limits.polished(found.family, &found.law);
        polished.map_or(found, |law| Found { law, cost: self.request.cost(&law), ..found })
    }

    /// The best law of `family`; `others` are where the search for an asymmetric one starts.
    pub(super) fn family(&self, family: Family, others: &[Found]) -> Option<Found> {
        match family {
            Family::RandomizedResponse => {
                let allowed = self.most_participation() >= 1.0;
                allowed.then(|| self.at(family, 1.0)).flatten()
            }
            Family::Tuned => self.asymmetric(others),
            Family::Blended | Family::Spread(_) if self.request.answer_epsilon.is_none() => {
                // Nothing tells the several-answer forms of a law from its one-answer form then.
                let twin = others.iter().find(|found| matches!(found.family, Family::NormalForm | Family::Blended));
                twin.map_or_else(|| self.by_participation(family), |twin| Some(Found { family, ..*twin }))
            }
            _ => self.by_participation(family),
        }
    }

    fn most_participation(&self) -> f64 {
        self.request.participation.unwrap_or(1.0)
    }

    fn at(&self, family: Family, part: f64) -> Option<Found> {
        self.of(family, &family.shape(part))
    }

    fn of(&self, family: Family, shape: &Law) -> Option<Found> {
        let law = self.limits.fewest_flips(family, shape)?;
        let cost = self.request.cost(&law);
        cost.is_finite().then_some(Found { family, law, cost })
    }

    /// The one-parameter families: each side of the cliff at f = 1 − e^(−ε) by a grid, then by golden section.
    fn by_participation(&self, family: Family) -> Option<Found> {
        let most = self.most_participation();
        let cliff = self.request.release.map_or(1.0, |(epsilon, _)| -(-epsilon.value()).exp_m1());
        let below = (1e-3 * most.min(cliff), most.min(cliff * (1.0 - 1e-7)));
        let above = (cliff * (1.0 + 1e-7), most);
        let sides = [below, above].into_iter().filter(|(low, high)| low < high);
        let mut found: Vec<Found> = sides.filter_map(|(low, high)| self.side(family, low, high)).collect();
        found.extend(self.at(family, most));
        best(found)
    }

    /// In the root of the distance from the upper end, which the optimum usually is at or near.
    fn side(&self, family: Family, low: f64, high: f64) -> Option<Found> {
        let part = |root: f64| high - (high - low) * root * root;
        let at = |root: f64| self.at(family, part(root));
        let cost = |found: &Option<Found>| found.map_or(f64::INFINITY, |found| found.cost);
        let tried: Vec<Option<Found>> = (0..=GRID).map(|step| at(f64::from(step) / f64::from(GRID))).collect();
        let index = (0..tried.len()).min_by(|&a, &b| cost(&tried[a]).total_cmp(&cost(&tried[b])))?;
        let place = |index: usize| index as f64 / f64::from(GRID);
        let (mut left, mut right) = (place(index.saturating_sub(1)), place((index + 1).min(tried.len() - 1)));
        let golden = 0.5 * (5f64.sqrt() - 1.0);
        let (mut inner, mut outer) = (right - golden * (right - left), left + golden * (right - left));
        let (mut inner_found, mut outer_found) = (at(inner), at(outer));
        // Fine in the distance from the end too, as far as that matters.
        let coarse = |left: f64, right: f64| {
            let width = part(left) - part(right);
            width > self.effort.finest * part(left) || (width > 1e-6 && right - left > 5.0 * self.effort.finest * left)
        };
        while coarse(left, right) {
            if cost(&inner_found) < cost(&outer_found) {
                (right, outer, outer_found) = (outer, inner, inner_found);
                inner = right - golden * (right - left);
                inner_found = at(inner);
            } else {
                (left, inner, inner_found) = (inner, outer, outer_found);
                outer = left + golden * (right - left);
                outer_found = at(outer);
            }
        }
        best([tried[index], inner_found, outer_found].into_iter().flatten())
    }

    /// From the best symmetric and one-sided laws, in steps of who takes part and of how the flips are shared.
    fn asymmetric(&self, starts: &[Found]) -> Option<Found> {
        let start = |family: Family| starts.iter().find(|found| found.family == family);
        let from = [Family::NormalForm, Family::NoisySampling].into_iter().filter_map(start);
        best(from.filter_map(|start| self.walk(&as_tuned(&start.law))))
    }

    fn walk(&self, start: &Law) -> Option<Found> {
        let most = self.most_participation();
        let mut here = self.of(Family::Tuned, start)?;
        let mut step = 0.2;
        while step > self.effort.smallest_step {
            let moves = neighbours(&here.law, step, most);
            match best(moves.iter().filter_map(|law| self.of(Family::Tuned, law))) {
                Some(better) if better.cost < here.cost * (1.0 - 1e-5) => here = better,
                _ => step *= 0.4,
            }
        }
        Some(here)
    }
}

/// A one-sided law gets a trace of the missing answers, so that the walk can grow them.
fn as_tuned(law: &Law) -> Law {
    let [sy, sn] = law.part;
    let flip = law.flip.map(|flip| flip.max(1e-9));
    Law { part: [sy, sn.max(flip[1] * (1.0 + 1e-6))], flip }
}

fn neighbours(law: &Law, step: f64, most: f64) -> Vec<Law> {
    let [sy, sn] = law.part;
    let [ry, rn] = law.flip;
    let (up, down) = (1.0 + step, 1.0 / (1.0 + step));
    // Towards the end at `most` in shares of what is left, so that the walk can come close to it.
    let nearer = |part: f64| most - (most - part) * (1.0 - step);
    let with = |sy: f64, sn: f64, ry: f64, rn: f64| Law { part: [sy.min(most), sn.min(most)], flip: [ry, rn] };
    let moves = [
        with(sy * down, sn, ry, rn),
        with(nearer(sy), sn, ry, rn),
        with(sy, sn * down, ry, rn),
        with(sy, nearer(sn), ry, rn),
        with(sy, sn, ry * up, rn),
        with(sy, sn, ry * down, rn),
        with(sy * down, sn * down, ry, rn),
    ];
    let sensible = |law: &Law| law.flip[0] < law.part[0] && law.flip[1] < law.part[1];
    moves.into_iter().filter(sensible).collect()
}

pub(super) fn best(found: impl IntoIterator<Item = Found>) -> Option<Found> {
    found.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost))
}
