//! The adversary who holds something of one owner: the event that tells the truths apart best.

use super::bound::{self, Hits};
use super::{Event, Finding};
use crate::privacy::Direction;

/// How often each outcome came up under each truth.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcomes {
    pub(super) yes: Vec<u64>,
    pub(super) no: Vec<u64>,
}

impl Outcomes {
    /// One more of an outcome.
    pub(super) fn add(&mut self, outcome: usize, yes: bool) {
        let counts = if yes { &mut self.yes } else { &mut self.no };
        counts[outcome] += 1;
    }

    fn hits(&self, direction: Direction, event: &[usize]) -> (Hits, Hits) {
        let (first, second) = self.sides(direction);
        (count(first, event), count(second, event))
    }

    /// The outcomes, those first that speak most for the direction.
    fn by_falling_ratio(&self, direction: Direction) -> Vec<usize> {
        let (first, second) = self.sides(direction);
        let ratio = |outcome: usize| (first[outcome] as f64 + 0.5) / (second[outcome] as f64 + 0.5);
        let mut order: Vec<usize> = (0..first.len()).collect();
        order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
        order
    }

    fn sides(&self, direction: Direction) -> (&[u64], &[u64]) {
        match direction {
            Direction::YesOverNo => (&self.yes, &self.no),
            Direction::NoOverYes => (&self.no, &self.yes),
        }
    }
}

fn count(outcomes: &[u64], event: &[usize]) -> Hits {
    Hits { hits: event.iter().map(|&outcome| outcomes[outcome]).sum(), trials: outcomes.iter().sum() }
}

/// One way of looking at the samples, such as one of the sampler's paths: outcomes to choose on and to test on.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) training: Outcomes,
    pub(super) test: Outcomes,
}

/// The event of all samples and both directions that promises the largest ε on the training half, tested on the other
/// half. Only one event is tested, so nothing needs correcting for how many there were to choose from.
pub(super) fn attack(
    samples: &[Sample],
    claimed: Option<f64>,
    miss: f64,
    name: impl Fn(&[usize]) -> String,
) -> Finding {
    attack_at(samples, claimed, 0.0, miss, name)
}

/// The same against a claim that concedes `delta`.
pub(super) fn attack_at(
    samples: &[Sample],
    claimed: Option<f64>,
    delta: f64,
    miss: f64,
    name: impl Fn(&[usize]) -> String,
) -> Finding {
    let z = bound::rough_quantile(miss);
    let choices = samples.iter().flat_map(|sample| Direction::BOTH.map(|direction| (sample, direction)));
    let best = choices
        .map(|(sample, direction)| (sample, direction, best_event(&sample.training, direction, delta, z)))
        .max_by(|a, b| a.2.promise.total_cmp(&b.2.promise));
    let Some((sample, direction, best)) = best.filter(|(.., best)| best.promise > 0.0) else {
        return Finding::nothing(claimed);
    };
    let (first, second) = sample.test.hits(direction, &best.event);
    let description = format!("{} ({})", name(&best.event), sample.name);
    Finding::new(claimed, bound::epsilon(first, second, delta, miss), Event::new(description, direction, first, second))
}

/// An event, and the ε that it seems to prove on the training half.
struct Promise {
    promise: f64,
    event: Vec<usize>,
}

/// Candidates are the outcomes alone, and all outcomes whose ratio is at least some value: by Neyman and Pearson's lemma
/// no other event is better, except by chance.
fn best_event(outcomes: &Outcomes, direction: Direction, delta: f64, z: f64) -> Promise {
    let (first, second) = outcomes.sides(direction);
    let trials: [u64; 2] = [first.iter().sum(), second.iter().sum()];
    let promise = |hits: [u64; 2]| {
        let [first, second] = [0, 1].map(|side| Hits { hits: hits[side], trials: trials[side] });
        bound::rough_epsilon(first, second, delta, z)
    };
    let order = outcomes.by_falling_ratio(direction);
    // As a range of the order, so that nothing is copied while looking.
    let mut best = (0.0, 0..0);
    let mut sums = [0, 0];
    for (position, &outcome) in order.iter().enumerate() {
        sums = [sums[0] + first[outcome], sums[1] + second[outcome]];
        let (alone, together) = (promise([first[outcome], second[outcome]]), promise(sums));
        if alone > best.0 {
            best = (alone, position..position + 1);
        }
        if together > best.0 {
            best = (together, 0..position + 1);
        }
    }
    Promise { promise: best.0, event: order[best.1].to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str, yes: &[u64], no: &[u64]) -> Sample {
        let outcomes = Outcomes { yes: yes.to_vec(), no: no.to_vec() };
        Sample { name: name.to_owned(), training: outcomes.clone(), test: outcomes }
    }

    #[test]
    fn outcomes_of_one_ratio_are_taken_together() {
        let sample = sample("batch", &[300, 300, 400], &[100, 100, 800]);
        let finding = attack(&[sample], Some(3f64.ln()), 0.01, |event| format!("{event:?}"));
        let event = finding.event.as_ref().unwrap();
        assert_eq!(event.description, "[0, 1] (batch)");
        assert_eq!((event.direction, event.yes.hits, event.no.hits), (Direction::YesOverNo, 600, 200));
        assert!(finding.observed_lower > 0.7 && finding.observed_lower < 3f64.ln());
    }

    #[test]
    fn the_path_that_leaks_is_found() {
        let samples = [sample("single", &[500, 500], &[500, 500]), sample("batch", &[500, 500], &[900, 100])];
        let finding = attack(&samples, Some(0.0), 0.01, |event| format!("{event:?}"));
        assert_eq!(finding.event.as_ref().unwrap().description, "[1] (batch)");
        assert!(finding.is_violated());
    }

    #[test]
    fn nothing_to_tell_apart_is_nothing() {
        let finding = attack(&[sample("single", &[500], &[500])], None, 0.01, |_| String::new());
        assert_eq!((finding.observed_lower, finding.event.is_none(), finding.is_violated()), (0.0, true, false));
    }
}
