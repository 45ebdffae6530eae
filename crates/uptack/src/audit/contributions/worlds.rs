//! The truths between which the adversary tries to decide, and the counts that it watches for that.

use crate::audit::some_of;
use crate::contribution::{Choice, Contributions};

/// One truth of the target: all of its contributions.
pub(super) struct World {
    pub(super) truths: Vec<u32>,
}

impl World {
    pub(super) fn choices(&self) -> Vec<Choice> {
        self.truths.iter().copied().map(Choice::new).collect()
    }
}

/// The most counts that are watched; more would spread the samples over too many outcomes.
const MOST_WATCHED: usize = 6;

/// The truths that are compared, and the counts that are watched.
pub(super) struct Worlds {
    pub(super) worlds: Vec<World>,
    /// The first counts of each world, those of the first two worlds first.
    pub(super) watched: Vec<usize>,
    told: f64,
    other: f64,
}

impl Worlds {
    /// For a choice its first two options and its last one. For counts the first ones, others, and *none*: every contribution differs
    /// between any two of them.
    pub(super) fn new(asked: &Contributions) -> Self {
        let (options, most) = (asked.options() as u32, asked.most());
        let truths = match asked.is_choice() {
            true if options == 2 => vec![vec![0], vec![1]],
            true => vec![vec![0], vec![1], vec![options - 1]],
            false => {
                let shift = if options >= 2 * most { most } else { 1 };
                let others = (options > 1).then(|| (0..most).map(|count| (count + shift) % options).collect());
                let none = vec![options; most as usize];
                [(0..most).collect()].into_iter().chain(others).chain([none]).collect()
            }
        };
        let worlds: Vec<World> = truths.into_iter().map(|truths| World { truths }).collect();
        let law = asked.law();
        let watched = watched(&worlds, asked.counts());
        Self { worlds, watched, told: law.told().to_f64(), other: law.other().to_f64() }
    }

    /// All pairs of worlds.
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        let second = |first| (first + 1..self.worlds.len()).map(move |second| [first, second]);
        (0..self.worlds.len()).flat_map(second).collect()
    }

    /// The truths that single contributions are tested for: each watched count, and what is not counted.
    pub(super) fn tested_truths(&self, asked: &Contributions) -> Vec<u32> {
        let uncounted = asked.has_uncounted().then(|| asked.counts() as u32);
        self.watched.iter().map(|&count| count as u32).chain(uncounted).collect()
    }

    /// Which of the watched counts a report holds, one bit each, and whether it holds another one.
    pub(super) fn outcome(&self, report: impl Iterator<Item = usize>) -> usize {
        let bit = |count| self.watched.iter().position(|&watched| watched == count).unwrap_or(self.watched.len());
        report.fold(0, |bits, count| bits | (1 << bit(count)))
    }

    /// How many outcomes there are.
    pub(super) fn outcomes(&self) -> usize {
        2 << self.watched.len()
    }

    /// The probability that a report of this world holds none of some watched counts.
    pub(super) fn avoids(&self, world: usize, counts: &[usize]) -> f64 {
        let stays = |&truth: &u32| {
            let own = counts.contains(&(truth as usize));
            1.0 - counts.len() as f64 * self.other - if own { self.told - self.other } else { 0.0 }
        };
        self.worlds[world].truths.iter().map(stays).product()
    }

    /// The two worlds of an event, whose counts are called *yes* and *no*.
    pub(super) fn pair_name(&self, [yes, no]: [usize; 2]) -> String {
        let [yes, no] = [yes, no].map(|world| self.world_name(world));
        format!("yes is {yes}, no is {no}")
    }

    pub(super) fn world_name(&self, world: usize) -> String {
        let numbers = self.worlds[world].truths.iter().map(|truth| truth + 1);
        let shown: Vec<String> = numbers.take(4).map(|number| number.to_string()).collect();
        format!("truth {}", shown.join("+"))
    }

    /// An event of outcomes, in words.
    pub(super) fn event_name(&self, event: &[usize]) -> String {
        let names: Vec<String> = event.iter().map(|&outcome| self.outcome_name(outcome)).collect();
        some_of(names.into_iter())
    }

    fn outcome_name(&self, outcome: usize) -> String {
        let counts = self.watched.iter().enumerate().filter(|(bit, _)| (outcome >> bit) & 1 == 1);
        let mut names: Vec<String> = counts.map(|(_, count)| (count + 1).to_string()).collect();
        if outcome >> self.watched.len() == 1 {
            names.push("others".to_owned());
        }
        format!("{{{}}}", names.join(","))
    }
}

fn watched(worlds: &[World], counts: usize) -> Vec<usize> {
    let most = worlds[0].truths.len();
    let by_place = (0..most).flat_map(|place| worlds.iter().map(move |world| world.truths[place] as usize));
    let mut watched = Vec::new();
    for count in by_place.filter(|&count| count < counts) {
        if !watched.contains(&count) && watched.len() < MOST_WATCHED {
            watched.push(count);
        }
    }
    watched
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worlds(text: &str) -> Worlds {
        Worlds::new(&text.parse().unwrap())
    }

    #[test]
    fn every_contribution_differs_between_two_worlds() {
        for text in [
            "choice(k=2,r=0.1)",
            "choice(k=3,r=0.1)",
            "choice(k=100,r=0.001)",
            "contributions(counts=1,r=0.1)",
            "contributions(counts=2,most=2,r=0.1)",
            "contributions(counts=3,most=2,r=0.1)",
            "contributions(counts=50,most=9,r=0.01)",
        ] {
            let worlds = worlds(text);
            assert!(worlds.worlds.len() >= 2 && !worlds.watched.is_empty());
            for [first, second] in worlds.pairs() {
                let [first, second] = [first, second].map(|world| &worlds.worlds[world].truths);
                assert!(first.iter().zip(second).all(|(one, other)| one != other), "{text}");
            }
        }
    }

    #[test]
    fn outcomes_are_sets_of_watched_counts() {
        let worlds = worlds("contributions(counts=50,most=2,r=0.01)");
        assert_eq!(worlds.watched, [0, 2, 1, 3]);
        let outcome = worlds.outcome([2, 7].into_iter());
        assert_eq!((outcome, worlds.event_name(&[outcome]).as_str()), (0b10010, "{3,others}"));
        assert!((worlds.avoids(0, &[0, 1]) - (1.0 - 0.5 - 0.01_f64).powi(2)).abs() < 1e-12);
        assert!((worlds.avoids(2, &[0, 1]) - 0.98_f64.powi(2)).abs() < 1e-12);
    }
}
