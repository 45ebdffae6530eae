//! The adversary who holds something of one owner: the event that tells the truths apart best.

use super::bound::{self, Hits};
use super::collect::{Counts, HALVES, Path, TEST, TRAINING};
use super::{ClaimedEpsilons, Event, Finding, some_of};
use crate::channel::{Channel, answer_name};
use crate::privacy::Direction;

/// The adversary who holds the whole cell.
pub(super) fn linked(channel: &Channel, halves: &[Counts; HALVES], claims: &ClaimedEpsilons, miss: f64) -> Finding {
    let samples = by_path(halves, |cells| cells);
    attack(&samples, claims.linked, miss, |event| {
        format!("the cell is {}", some_of(event.iter().map(|&cell| channel.cells()[cell].name())))
    })
}

/// The adversaries who each hold one answer.
pub(super) fn answers(
    channel: &Channel,
    halves: &[Counts; HALVES],
    claims: &ClaimedEpsilons,
    miss: f64,
) -> Vec<Finding> {
    let find = |(answer, &claimed): (usize, &Option<f64>)| {
        let samples = by_path(halves, |cells| marginal(channel, answer, &cells));
        let (letter, outputs) = (answer_name(answer), &channel.answers()[answer]);
        attack(&samples, claimed, miss, |event| {
            format!("{letter} is {}", some_of(event.iter().map(|&output| outputs[output])))
        })
    };
    claims.answers.iter().enumerate().map(find).collect()
}

/// One sample for each of the sampler's paths and for both together, its outcomes made from the counts of the cells.
fn by_path(halves: &[Counts; HALVES], outcomes: impl Fn(Vec<u64>) -> Vec<u64>) -> Vec<Sample> {
    let sample = |path: Path| {
        let [training, test] = [TRAINING, TEST].map(|half| {
            let [no, yes] = [false, true].map(|truth| outcomes(halves[half].owners(path, truth)));
            Outcomes { yes, no }
        });
        Sample { name: path.to_string(), training, test }
    };
    [Path::Both, Path::Single, Path::Batch].map(sample).into()
}

/// How often an answer had each of its outputs, from the counts of the cells.
fn marginal(channel: &Channel, answer: usize, cells: &[u64]) -> Vec<u64> {
    let outputs = &channel.answers()[answer];
    let mut counts = vec![0; outputs.len()];
    for (cell, count) in channel.cells().iter().zip(cells) {
        if let Some(place) = outputs.iter().position(|output| *output == cell.outputs()[answer]) {
            counts[place] += count;
        }
    }
    counts
}

/// How often each outcome came up under each truth.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcomes {
    pub(super) yes: Vec<u64>,
    pub(super) no: Vec<u64>,
}

impl Outcomes {
    /// None of this many outcomes came up yet.
    pub(super) fn empty(outcomes: usize) -> Self {
        Self { yes: vec![0; outcomes], no: vec![0; outcomes] }
    }

    /// One more of an outcome.
    pub(super) fn add(&mut self, outcome: usize, yes: bool) {
        let counts = if yes { &mut self.yes } else { &mut self.no };
        counts[outcome] += 1;
    }

    fn hits(&self, direction: Direction, event: &[usize]) -> [Hits; 2] {
        self.sides(direction).map(|outcomes| count(outcomes, event))
    }

    /// The outcomes, those first that speak most for the direction.
    fn by_falling_ratio(&self, direction: Direction) -> Vec<usize> {
        let [first, second] = self.sides(direction);
        let ratio = |outcome: usize| (first[outcome] as f64 + 0.5) / (second[outcome] as f64 + 0.5);
        let mut order = Vec::from_iter(0..first.len());
        order.sort_by(|&a, &b| ratio(b).total_cmp(&ratio(a)));
        order
    }

    /// The counts under each truth, the one that the direction speaks for first.
    fn sides(&self, direction: Direction) -> [&[u64]; 2] {
        direction.in_order([&self.no, &self.yes])
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

/// Attacks a claim that concedes no δ.
pub(super) fn attack(
    samples: &[Sample],
    claimed: Option<f64>,
    miss: f64,
    name: impl Fn(&[usize]) -> String,
) -> Finding {
    Attack { claimed, delta: 0.0, miss }.run(samples, name)
}

/// The ε that is claimed, the δ that it concedes, and how often the attack may wrongly contradict it.
pub(super) struct Attack {
    pub(super) claimed: Option<f64>,
    pub(super) delta: f64,
    pub(super) miss: f64,
}

impl Attack {
    /// Tests the event of all samples and both directions that promises the largest ε on the training half on the other half.
    /// Only one event is tested, so nothing needs correcting for how many there were to choose from.
    pub(super) fn run(&self, samples: &[Sample], name: impl Fn(&[usize]) -> String) -> Finding {
        let Some(PromisingEvent { sample, direction, event, .. }) = self.most_promising(samples) else {
            return Finding::nothing(self.claimed);
        };
        let [first, second] = sample.test.hits(direction, &event);
        let epsilon = bound::epsilon(first, second, self.delta, self.miss);
        let description = format!("{} ({})", name(&event), sample.name);
        Finding::new(self.claimed, epsilon, Event::new(description, direction, first, second))
    }

    fn most_promising<'a>(&self, samples: &'a [Sample]) -> Option<PromisingEvent<'a>> {
        let z = bound::rough_quantile(self.miss);
        let choices = samples.iter().flat_map(|sample| Direction::BOTH.map(|direction| (sample, direction)));
        let events = choices.map(|(sample, direction)| Candidates::new(sample, direction, self.delta, z).best());
        let best = events.max_by(|one, other| one.epsilon.total_cmp(&other.epsilon));
        best.filter(|best| best.epsilon > 0.0)
    }
}

/// An event, and the ε that it seems to prove on the training half.
struct PromisingEvent<'a> {
    sample: &'a Sample,
    direction: Direction,
    event: Vec<usize>,
    epsilon: f64,
}

/// The events of one sample that speak for one truth: the outcomes alone, and all outcomes whose ratio is at least some value.
/// By Neyman and Pearson's lemma no other event is better, except by chance.
struct Candidates<'a> {
    sample: &'a Sample,
    direction: Direction,
    /// How often each truth was drawn, the one that the events speak for first.
    trials: [u64; 2],
    delta: f64,
    z: f64,
}

impl<'a> Candidates<'a> {
    fn new(sample: &'a Sample, direction: Direction, delta: f64, z: f64) -> Self {
        let trials = sample.training.sides(direction).map(|counts| counts.iter().sum());
        Self { sample, direction, trials, delta, z }
    }

    /// The event that promises most.
    fn best(&self) -> PromisingEvent<'a> {
        let [first, second] = self.sample.training.sides(self.direction);
        let order = self.sample.training.by_falling_ratio(self.direction);
        // As a range of the order, so that nothing is copied while looking.
        let mut best = (0.0, 0..0);
        let mut sums = [0, 0];
        for (position, &outcome) in order.iter().enumerate() {
            sums = [sums[0] + first[outcome], sums[1] + second[outcome]];
            let (alone, together) = (self.promise([first[outcome], second[outcome]]), self.promise(sums));
            if alone > best.0 {
                best = (alone, position..position + 1);
            }
            if together > best.0 {
                best = (together, 0..position + 1);
            }
        }
        let (epsilon, range) = best;
        PromisingEvent { sample: self.sample, direction: self.direction, event: order[range].to_vec(), epsilon }
    }

    /// The ε that an event with these hits seems to prove.
    fn promise(&self, hits: [u64; 2]) -> f64 {
        let [first, second] = [0, 1].map(|side| Hits { hits: hits[side], trials: self.trials[side] });
        bound::rough_epsilon(first, second, self.delta, self.z)
    }
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
