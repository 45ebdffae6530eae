//! What a crowd shows when the target is *yes* against *no*, from below: losses and masses that compose.

use super::{Member, RealLaw, split};
use crate::certified::score_sum::{Draws, LONGEST, ScoreSum};
use crate::privacy::composition::attained::PairLaw;
use crate::privacy::effort::Work;
use crate::privacy::likelihood::{Direction, Share};

/// An owner's probability of being in a class.
type Law = fn(&Share) -> f64;

/// What a sum of scores shows in a crowd of so many *yes* and *no* others when the target is *yes* against *no*: the losses and
/// masses of its outcomes, from below, in both directions. None where it cannot be told.
pub(crate) fn pair_laws(shares: &[Share], yes: u64, no: u64, work: &Work) -> Option<[PairLaw; 2]> {
    let members: Vec<Member> =
        shares.iter().map(|share| share.member(share.weight(Direction::YesOverNo, 1.0))).collect();
    let reached = |share: &&Share| {
        if yes == 0 {
            share.no > 0.0
        } else if no == 0 {
            share.yes > 0.0
        } else {
            share.yes > 0.0 && share.no > 0.0
        }
    };
    let scores = integer_scores(&members, yes, no)?;
    let atoms = |of: Law| -> Vec<(i64, f64)> {
        shares.iter().zip(&scores).map(|(share, score)| (*score, of(share))).filter(|(_, mass)| *mass > 0.0).collect()
    };
    if shares.iter().filter(reached).count() != shares.len() && yes.min(no) > 0 {
        return None;
    }
    let groups = [(yes, atoms(|share| share.yes)), (no, atoms(|share| share.no))];
    let groups = groups.into_iter().filter(|(owners, _)| *owners > 0).map(|(owners, atoms)| Draws { owners, atoms });
    let sum = ScoreSum { groups: groups.collect() };
    let window = sum.window(0.0, -60.0);
    if window.high - window.low > LONGEST / 2 {
        return None;
    }
    work.spend(20 * (window.high - window.low) as u64);
    let law = sum.law(0.0, window);
    // The target in a class that nobody else reaches shows by itself.
    let alone: Vec<bool> = shares.iter().map(|share| !reached(&share)).collect();
    let at = |j: i64, of: Law, below: bool| -> f64 {
        let part = |((share, score), alone): ((&Share, &i64), &bool)| {
            let crowd = law.values.get(usize::try_from(j - score - law.first).ok()?).copied();
            let crowd = match (crowd, below) {
                (Some(value), true) => (value - law.error - law.folded).max(0.0),
                (Some(value), false) => value.max(0.0) + law.error,
                (None, true) => 0.0,
                (None, false) => window.log_outside.exp(),
            };
            (!alone).then_some(of(share) * crowd)
        };
        let sum: f64 = shares.iter().zip(&scores).zip(&alone).filter_map(part).sum();
        if below { sum * (1.0 - 1e-14) } else { sum * (1.0 + 1e-14) + 2.0 * window.log_outside.exp() }
    };
    let reach = scores.iter().map(|score| score.abs()).max().unwrap_or(0);
    let relative = 1.0 - 4.0 * law.relative_error - 1e-12;
    let direction = |first: Law, second: Law| {
        let mut pair = PairLaw { losses: Vec::new(), infinite: 0.0 };
        for j in window.low - reach..=window.high + reach {
            let (one, other) = (at(j, first, true) * relative, at(j, second, false) / relative);
            if one > 0.0 && other > 0.0 {
                pair.losses.push(((one / other).ln(), one));
            }
        }
        for (share, alone) in shares.iter().zip(&alone) {
            let (one, other) = (first(share) * (1.0 - 1e-14), second(share) * (1.0 + 1e-14));
            match (*alone, other > 0.0) {
                (true, true) if one > 0.0 => pair.losses.push(((one / other).ln(), one)),
                (true, false) => pair.infinite += one,
                _ => {}
            }
        }
        pair
    };
    let (of_yes, of_no): (Law, Law) = (|share| share.yes, |share| share.no);
    Some([direction(of_yes, of_no), direction(of_no, of_yes)])
}

/// Integer scores for all classes, in the order given, by what they add to the evidence.
fn integer_scores(members: &[Member], yes: u64, no: u64) -> Option<Vec<i64>> {
    if yes + no == 0 {
        return Some((0..members.len() as i64).collect());
    }
    let (_, crowd) = split(members, yes, no);
    let crowd = crowd.filter(|crowd| !crowd.dropped)?;
    let (influences, _) = crowd.influences();
    let law: Vec<(f64, f64)> = influences.iter().copied().zip(crowd.classes.iter().map(|class| class.common)).collect();
    let zero = law.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
    let deviation = RealLaw(&law).moments(0.0).1.sqrt();
    // So many cells per owner, but not more than a transform has room for.
    let cells = (2e4 / ((yes + no) as f64).sqrt()).clamp(0.5, 8.0);
    let spacing = if law.len() == 2 { (law[0].0 - law[1].0).abs() } else { deviation / cells };
    let mut places = influences.iter().map(|influence| ((influence - zero) / spacing).round());
    let common_is_no = no >= yes;
    let place = |member: &Member| -> Option<i64> {
        let own = if common_is_no { member.no } else { member.yes };
        if own == 0.0 { Some(0) } else { places.next().filter(|place| place.abs() < 1e9).map(|place| place as i64) }
    };
    members.iter().map(place).collect()
}
