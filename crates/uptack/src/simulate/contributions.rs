//! Whole runs of a mechanism of contributions, repeated.

use super::{CHUNK, CrowdSampling};
use crate::coins::SeededCoins;
use crate::contribution::{Choice, Choices, Contributed, ContributionSampler, Contributions};
use crate::error::{Error, Result};
use crate::estimate::options::OptionEstimator;
use crate::estimate::{Acceptance, Confidence, Estimator, IntervalKind};
use crate::numeric::binomial_draw;
use crate::option_counts::OptionCounts;
use crate::parallel::{self, cores};
use crate::progress::Progress;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct ContributionSimulation {
    /// The size of the crowd.
    pub owners: u64,
    /// How many of them truly have each option. For a choice these sum to the owners. Otherwise each is at most the owners, and they are dealt
    /// out in turn: the owners of the first count come first, those of the second after them, and so on, starting again with the first owner
    /// after the last. So no owner has one option twice, or more options than the mechanism allows.
    pub counts: Vec<u64>,
    /// How often to repeat.
    pub trials: u64,
    /// Where the coins come from.
    pub seed: u64,
    /// The confidence of the intervals.
    pub confidence: Confidence,
    /// The kind of the intervals of single options; simultaneous ones are exact.
    pub interval: IntervalKind,
    /// How the crowd is drawn. If an owner has several contributions, every owner is drawn either way, because contributions
    /// of one owner to the same count are one.
    pub crowd: CrowdSampling,
}

/// What a simulation found.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedContributions {
    /// How many trials were done.
    pub trials: u64,
    /// The options, in order.
    pub options: Vec<SimulatedOption>,
    /// The share of trials in which the simultaneous intervals of all options held the truth.
    pub simultaneous_coverage: f64,
}

/// What a simulation found of one option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedOption {
    /// The mean of the estimates minus the truth.
    pub bias: f64,
    /// The root of their mean squared error.
    pub rmse: f64,
    /// The standard deviation that theory predicts for the true counts.
    pub predicted_sd: f64,
    /// The share of trials in which the truth was accepted, so that the interval held it.
    pub coverage: f64,
}

/// Runs a simulation on as many threads as the machine has.
///
/// ```
/// use uptack::{contribution::Contributions, estimate::{Confidence, IntervalKind}};
/// use uptack::simulate::{ContributionSimulation, CrowdSampling, simulate_contributions};
/// let asked: Contributions = "choice(k=3,r=0.01) + laplace(scale=2)".parse()?;
/// let found = simulate_contributions(&asked, &ContributionSimulation {
///     owners: 1000,
///     counts: vec![200, 700, 100],
///     trials: 2000,
///     seed: 1,
///     confidence: Confidence::new(0.95)?,
///     interval: IntervalKind::Auto,
///     crowd: CrowdSampling::Aggregated,
/// })?;
/// assert!((found.options[0].rmse / found.options[0].predicted_sd - 1.0).abs() < 0.1);
/// assert!(found.simultaneous_coverage > 0.93);
/// # Ok::<(), uptack::Error>(())
/// ```
pub fn simulate_contributions(
    asked: &Contributions,
    simulation: &ContributionSimulation,
) -> Result<SimulatedContributions> {
    simulation.run_with(asked, cores(), &Progress::default())
}

impl ContributionSimulation {
    /// Runs all trials on `threads` threads; if it is stopped early, the result is that of the trials done so far.
    pub fn run_with(
        &self,
        asked: &Contributions,
        threads: usize,
        progress: &Progress,
    ) -> Result<SimulatedContributions> {
        if self.trials == 0 {
            return Err(Error::request("there are no trials to run").with_hint("a thousand show a bias and a coverage"));
        }
        self.check(asked)?;
        let run = Run::new(self, asked)?;
        let totals = run.all(threads.max(1), progress);
        if totals.trials == 0 {
            return Err(Error::request("stopped before the first trial was done"));
        }
        run.conclude(&totals)
    }

    /// How the published counts of its crowd are drawn, without noise.
    pub fn crowd_draw(&self, asked: &Contributions) -> Result<CrowdDraw> {
        self.check(asked)?;
        Ok(CrowdDraw { draw: Draw::new(asked, self), counts: asked.counts() })
    }

    fn check(&self, asked: &Contributions) -> Result<()> {
        let (has, wants) = (self.counts.len(), asked.options());
        if has != wants {
            return Err(Error::request(format!("there are {has} counts for {wants} options")));
        }
        // No count is above the owners, and there are owners.
        OptionCounts::new(self.owners, self.counts.clone()).map_err(|error| Error::request(error.to_string()))?;
        let total: u128 = self.counts.iter().map(|&count| u128::from(count)).sum();
        if asked.is_choice() && total != u128::from(self.owners) {
            return Err(Error::request(format!("the counts sum to {total}, not to the {} owners", self.owners))
                .with_hint("every owner has exactly one of the options"));
        }
        let most = u128::from(self.owners) * u128::from(asked.most());
        if total > most {
            return Err(Error::request(format!(
                "the counts sum to {total}, but {} owners with at most {} each have at most {most}",
                self.owners,
                asked.most()
            )));
        }
        Ok(())
    }
}

/// Draws the counts of a crowd, all of them together: what leaves one option joins another.
pub struct CrowdDraw {
    draw: Draw,
    counts: usize,
}

impl CrowdDraw {
    /// The counts of one trial.
    pub fn draw(&self, coins: &mut SeededCoins) -> Vec<u64> {
        self.draw.counts(self.counts, coins)
    }
}

/// How a trial's crowd is drawn, prepared once.
enum Draw {
    /// For each possibility, how many owners have it.
    Aggregated { holders: Vec<u64>, told: f64, each_other: Vec<f64> },
    /// Every contribution of every owner, one owner's after the other's.
    PerOwner { sampler: ContributionSampler, truths: Choices, most: usize },
}

impl Draw {
    fn new(asked: &Contributions, simulation: &ContributionSimulation) -> Self {
        let is_aggregated = simulation.crowd == CrowdSampling::Aggregated && asked.most() == 1;
        if !is_aggregated {
            let truths = truths(asked, simulation);
            return Self::PerOwner { sampler: ContributionSampler::new(asked), truths, most: asked.most() as usize };
        }
        let mut holders = simulation.counts.clone();
        if !asked.is_choice() {
            holders.push(simulation.owners - holders.iter().sum::<u64>());
        }
        let law = asked.law();
        let (told, other) = (law.telling().to_f64(), law.other().to_f64());
        // The probability of each possibility, given that the truth is not told and that it is none of those before.
        let possibilities = law.possibilities();
        let left = |before: u32| f64::from(possibilities - before) * other + law.silent().to_f64();
        let each_other = (0..possibilities).map(|before| (other / left(before)).min(1.0)).collect();
        Self::Aggregated { holders, told, each_other }
    }

    /// The counts of one trial.
    fn counts(&self, counts: usize, coins: &mut SeededCoins) -> Vec<u64> {
        match self {
            Self::Aggregated { holders, told, each_other } => aggregated(holders, *told, each_other, counts, coins),
            Self::PerOwner { sampler, truths, most } => {
                per_owner(&sampler.draw_many_seeded(truths, coins), *most, counts)
            }
        }
    }
}

fn aggregated(holders: &[u64], told: f64, each_other: &[f64], counts: usize, coins: &mut SeededCoins) -> Vec<u64> {
    let mut drawn: Vec<u64> =
        holders.iter().map(|&holders| binomial_draw::draw(holders, told, || coins.uniform())).collect();
    let mut left = holders.iter().sum::<u64>() - drawn.iter().sum::<u64>();
    for (count, &share) in drawn.iter_mut().zip(each_other) {
        let others = if share.is_nan() { 0 } else { binomial_draw::draw(left, share, || coins.uniform()) };
        *count += others;
        left -= others;
    }
    drawn.truncate(counts);
    drawn
}

/// One bit per owner and count: contributions of one owner to the same count are one.
fn per_owner(drawn: &[Contributed], most: usize, counts: usize) -> Vec<u64> {
    let mut sums = vec![0; counts];
    for owner in drawn.chunks_exact(most) {
        for (index, contributed) in owner.iter().enumerate() {
            if let Some(count) = contributed.count().filter(|_| !owner[..index].contains(contributed)) {
                sums[count] += 1;
            }
        }
    }
    sums
}

/// The truths of all contributions, those of one owner together; contributions that are not used go to none of the counts.
fn truths(asked: &Contributions, simulation: &ContributionSimulation) -> Choices {
    let (owners, most) = (simulation.owners as usize, asked.most() as usize);
    let uncounted = asked.possibilities() - 1;
    let mut truths = vec![uncounted; owners * most];
    let dealt = (0u32..).zip(&simulation.counts).flat_map(|(option, &count)| (0..count).map(move |_| option));
    for (turn, option) in dealt.enumerate() {
        // The owner's first contribution is dealt in the first turn around, the second in the second.
        truths[turn % owners * most + turn / owners] = option;
    }
    truths.into_iter().map(Choice::new).collect()
}

struct Run<'a> {
    simulation: &'a ContributionSimulation,
    asked: &'a Contributions,
    estimator: OptionEstimator,
    /// For each count, the tests of its truth: alone, and together with all others.
    acceptances: Vec<[Acceptance; 2]>,
    draw: Draw,
}

/// Sums over trials, and for each count over its errors.
#[derive(Clone, Default)]
struct Totals {
    trials: u64,
    covered_at_once: u64,
    counts: Vec<CountTotals>,
}

#[derive(Clone, Copy, Default)]
struct CountTotals {
    error: f64,
    squared_error: f64,
    covered: u64,
}

impl Totals {
    fn of(counts: usize) -> Self {
        Self { counts: vec![CountTotals::default(); counts], ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        self.trials += other.trials;
        self.covered_at_once += other.covered_at_once;
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            sum.error += count.error;
            sum.squared_error += count.squared_error;
            sum.covered += count.covered;
        }
    }
}

impl<'a> Run<'a> {
    fn new(simulation: &'a ContributionSimulation, asked: &'a Contributions) -> Result<Self> {
        let estimator = OptionEstimator::new(asked)?;
        let ContributionSimulation { owners, confidence, interval, .. } = *simulation;
        let shared = estimator.shared_confidence(confidence)?;
        let mut known: std::collections::HashMap<u64, [Acceptance; 2]> = Default::default();
        let mut acceptances = Vec::with_capacity(asked.counts());
        for &holders in &simulation.counts[..asked.counts()] {
            if let std::collections::hash_map::Entry::Vacant(entry) = known.entry(holders) {
                let count = estimator.count();
                entry.insert([
                    count.acceptance(owners, holders, confidence, interval)?,
                    count.acceptance(owners, holders, shared, IntervalKind::Exact)?,
                ]);
            }
            acceptances.push(known[&holders].clone());
        }
        Ok(Self { simulation, asked, estimator, acceptances, draw: Draw::new(asked, simulation) })
    }

    /// All trials, or those that were done when somebody asked to stop.
    fn all(&self, threads: usize, progress: &Progress) -> Totals {
        let chunks = self.simulation.trials.div_ceil(CHUNK) as usize;
        let chunk = |chunk: usize| (!progress.stopped()).then(|| self.chunk(chunk as u64, progress));
        let mut totals = Totals::of(self.asked.counts());
        parallel::map_while(threads, chunks, chunk).iter().for_each(|part| totals.add(part));
        totals
    }

    fn chunk(&self, chunk: u64, progress: &Progress) -> Totals {
        let mut totals = Totals::of(self.asked.counts());
        let end = ((chunk + 1) * CHUNK).min(self.simulation.trials);
        for trial in chunk * CHUNK..end {
            self.trial(trial, &mut totals);
            progress.advance();
        }
        totals
    }

    fn trial(&self, trial: u64, totals: &mut Totals) {
        let mut coins = SeededCoins::stream(self.simulation.seed, trial);
        let drawn = self.draw.counts(self.asked.counts(), &mut coins);
        let mut all_covered = true;
        for (index, count) in drawn.into_iter().enumerate() {
            let published = self.published(count, &mut coins);
            let [alone, at_once] = self.acceptances[index].each_ref().map(|test| self.holds(test, published));
            let error = self.estimate(published) - self.simulation.counts[index] as f64;
            let sums = &mut totals.counts[index];
            sums.error += error;
            sums.squared_error += error * error;
            sums.covered += u64::from(alone);
            all_covered &= at_once;
        }
        totals.trials += 1;
        totals.covered_at_once += u64::from(all_covered);
    }

    /// The count as it is published, with the noise of both aggregators if they add any.
    fn published(&self, count: u64, coins: &mut SeededCoins) -> i64 {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        match self.asked.noise() {
            None => count,
            Some(noise) => count.saturating_add(noise.draw_seeded(coins)).saturating_add(noise.draw_seeded(coins)),
        }
    }

    fn holds(&self, test: &Acceptance, published: i64) -> bool {
        if self.asked.noise().is_some() {
            return test.holds_sum(published);
        }
        let ones = published.unsigned_abs();
        test.holds(&[ones, self.simulation.owners - ones])
    }

    fn estimate(&self, published: i64) -> f64 {
        let count: &Estimator = self.estimator.count();
        count.solve(&count.observe_checked(self.simulation.owners, published.into())).0
    }

    fn conclude(&self, totals: &Totals) -> Result<SimulatedContributions> {
        let trials = totals.trials as f64;
        let option = |(sums, &holders): (&CountTotals, &u64)| {
            Ok(SimulatedOption {
                bias: sums.error / trials,
                rmse: (sums.squared_error / trials).sqrt(),
                predicted_sd: self.estimator.sd(self.simulation.owners, holders as f64)?,
                coverage: sums.covered as f64 / trials,
            })
        };
        let counted = totals.counts.iter().zip(&self.simulation.counts);
        let mut options = counted.map(option).collect::<Result<Vec<_>>>()?;
        if options.len() < self.asked.options() {
            // The second of two options is everybody else.
            options.push(SimulatedOption { bias: -options[0].bias, ..options[0] });
        }
        let simultaneous_coverage = totals.covered_at_once as f64 / trials;
        Ok(SimulatedContributions { trials: totals.trials, options, simultaneous_coverage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulation(owners: u64, counts: &[u64], trials: u64, crowd: CrowdSampling) -> ContributionSimulation {
        let confidence = Confidence::new(0.95).unwrap();
        let counts = counts.to_vec();
        ContributionSimulation { owners, counts, trials, seed: 3, confidence, interval: IntervalKind::Auto, crowd }
    }

    fn run(text: &str, simulation: &ContributionSimulation) -> SimulatedContributions {
        simulate_contributions(&text.parse().unwrap(), simulation).unwrap()
    }

    /// With 20 000 trials, each rmse has a relative deviation of at most 0.7 %, so that 2 % are exceeded by one of the 30 with a probability
    /// below 3 %, and a coverage is off by 0.6 points with one below 1e-4 each; the seed is fixed.
    #[test]
    fn errors_are_as_predicted_and_covered() {
        for (text, owners, counts) in [
            ("choice(k=3,r=0.01) + laplace(scale=2)", 1000, vec![200, 700, 100]),
            ("choice(k=3,f=0.6,r=0.05)", 1000, vec![0, 1000, 0]),
            ("choice(k=5,r=0.02)", 3000, vec![1000, 20, 1000, 0, 980]),
            ("choice(k=2,r=0.1) + laplace(scale=1)", 500, vec![100, 400]),
            ("contributions(counts=4,r=0.01) + laplace(scale=2)", 1000, vec![0, 50, 300, 600]),
        ] {
            let found = run(text, &simulation(owners, &counts, 20_000, CrowdSampling::Aggregated));
            assert_eq!(found.options.len(), counts.len());
            for option in &found.options {
                assert!((option.rmse / option.predicted_sd - 1.0).abs() < 0.02, "{text}: {option:?}");
                assert!(option.bias.abs() < 4.0 * option.predicted_sd / 20_000f64.sqrt(), "{text}: {option:?}");
                assert!(option.coverage > 0.945 - 0.006, "{text}: {option:?}");
            }
            assert!(found.simultaneous_coverage > 0.95 - 0.006, "{text}: {}", found.simultaneous_coverage);
        }
    }

    /// Both ways of drawing have the same law; α = 1e-4 for each mean. Several contributions of an owner to one count are one.
    #[test]
    fn every_owner_drawn_gives_the_same() {
        for (text, owners, counts) in [
            ("choice(k=4,f=0.8,r=0.05) + laplace(scale=2)", 200, vec![20, 150, 10, 20]),
            ("contributions(counts=3,r=0.05)", 200, vec![20, 100, 30]),
            ("contributions(counts=3,most=2,r=0.1) + laplace(scale=1)", 200, vec![60, 200, 100]),
        ] {
            let found = run(text, &simulation(owners, &counts, 4000, CrowdSampling::PerOwner));
            for option in &found.options {
                assert!(option.bias.abs() < 3.9 * option.predicted_sd / 4000f64.sqrt(), "{text}: {option:?}");
                assert!((option.rmse / option.predicted_sd - 1.0).abs() < 0.05, "{text}: {option:?}");
                assert!(option.coverage > 0.945 - 0.013, "{text}: {option:?}");
            }
        }
    }

    #[test]
    fn nobody_is_dealt_an_option_twice() {
        let asked: Contributions = "contributions(counts=3,most=2,r=0)".parse().unwrap();
        let simulation = simulation(5, &[4, 5, 1], 1, CrowdSampling::PerOwner);
        let draw = Draw::new(&asked, &simulation);
        // Without coins every contribution is told.
        assert_eq!(draw.counts(3, &mut SeededCoins::new(1)), [4, 5, 1]);
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let asked = "choice(k=3,r=0.01) + laplace(scale=2)".parse().unwrap();
        let simulation = simulation(100, &[20, 70, 10], 300, CrowdSampling::Aggregated);
        let one = simulation.run_with(&asked, 1, &Progress::default()).unwrap();
        assert_eq!(one, simulation.run_with(&asked, 3, &Progress::default()).unwrap());
    }

    #[test]
    fn impossible_crowds_say_why() {
        for (text, owners, counts, part) in [
            ("choice(k=3,r=0.01)", 10, vec![5, 5], "there are 2 counts for 3 options"),
            ("choice(k=3,r=0.01)", 10, vec![5, 5, 1], "sum to 11, not to the 10 owners"),
            ("contributions(counts=2,r=0.01)", 10, vec![11, 0], "count 1 is 11"),
            ("contributions(counts=2,r=0.01)", 10, vec![9, 9], "sum to 18, but 10 owners with at most 1 each"),
            ("contributions(counts=2,r=0.01)", 0, vec![0, 0], "no owners"),
        ] {
            let asked = text.parse().unwrap();
            let error = simulate_contributions(&asked, &simulation(owners, &counts, 5, CrowdSampling::Aggregated));
            let error = error.unwrap_err();
            assert!(error.is_request() && error.to_string().contains(part), "{text}: {error}");
        }
    }
}
