//! Planning contributions, accounting for them and estimating from them.

use std::hint::black_box;
use std::process::{Command, Stdio};

use uptack::contribution::{Choice, Choices, ContributionSampler, Contributions};
use uptack::estimate::options::OptionEstimator;
use uptack::estimate::{Confidence, IntervalKind};
use uptack::plan::{AnySolved, Asked, Prior, Request, Unknown, solve_any, usual_linked_epsilon};
use uptack::privacy::contributions::{ContributionViews, OwnersAlone, statement};
use uptack::privacy::{Delta, Epsilon, Target as Claimed, WorkLimit};
use uptack::{Mechanism, Progress, Published, SeededCoins, Sums};

use crate::Size;
use crate::clock::{Rounds, children_cpu_seconds, seconds_of};
use crate::table::{Row, Target};

const OWNERS: u64 = 50_186;
const COUNTS: u32 = 640_000;
const OPTIONS: u32 = 2221;
/// 0 + 1 + … + 316 = 50 086: more different sums have more owners.
const MOST_DIFFERENT: u32 = 317;
const DELTA: f64 = 1e-8;

/// Processes in a round: one is over so soon that the clock of processes is too coarse for it.
const PROCESSES: usize = 20;

pub fn measure(size: &Size) -> Vec<Row> {
    let rounds = size.simulation_rounds.min(5);
    let mut rows = against_channel(rounds);
    rows.extend(certificate(rounds));
    rows.extend(estimating(rounds));
    rows
}

/// What a process of its own does, for the time of a command from its start to its end. What it would print is not made.
pub fn work_alone(arguments: &[String]) {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["channel", mechanism] => _ = black_box(mechanism.parse::<Mechanism>().expect("a mechanism").channel()),
        ["plan"] => _ = black_box(planned()),
        ["privacy", mechanism] => _ = black_box(account(&mechanism.parse().expect("contributions"))),
        _ => unreachable!("the benchmark starts no other work"),
    }
}

/// A plan for very many counts and the privacy of it, against the shortest command, each in a process of its own.
fn against_channel(rounds: usize) -> Vec<Row> {
    let mechanism = planned().to_string();
    let works: [&[&str]; 3] = [&["channel", "randomized-response(t=0.8)"], &["plan"], &["privacy", mechanism.as_str()]];
    let mut times: [Rounds; 3] = Default::default();
    for _ in 0..rounds {
        times.iter_mut().zip(works).for_each(|(times, work)| times.push(seconds_of_a_process(work)));
    }
    let [channel, plan, privacy] = times.map(|times| times.median());
    let against = |what: &str, seconds: f64| {
        [
            Row::new(what, Target::None, seconds * 1e3, "ms"),
            Row::new("  against channel", Target::AtMost(10.0), seconds / channel, "×"),
        ]
    };
    let mut rows = vec![Row::new("channel, a process that makes it", Target::None, channel * 1e3, "ms")];
    rows.extend(against("a plan for 640 000 counts, one per owner", plan));
    rows.extend(against("  the privacy of that plan", privacy));
    rows
}

fn seconds_of_a_process(work: &[&str]) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let before = children_cpu_seconds();
    for _ in 0..PROCESSES {
        let status = Command::new(&program).arg("--alone").args(work).stdout(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "a process for {work:?} failed");
    }
    (children_cpu_seconds() - before) / PROCESSES as f64
}

/// The plan, with the linked ε that a plan has if none is given.
fn planned() -> Contributions {
    let epsilon = Epsilon::new(1.0).expect("an epsilon");
    let mut request = Request::one_aggregator(OWNERS, Prior::at(100), epsilon).expect("a request");
    request.asked = Asked::Counts { counts: COUNTS, most: 1 };
    request.linked_epsilon = Some(usual_linked_epsilon(&request, None));
    match solve_any(&request, Unknown::Error, None, &Progress::default()).expect("a plan") {
        AnySolved::Contributions(solved) => solved.plan.best.mechanism,
        AnySolved::YesNo(_) => unreachable!("these are several counts"),
    }
}

fn account(contributions: &Contributions) -> String {
    let target = Claimed::Delta(Delta::new(DELTA).expect("a delta"));
    let views = ContributionViews::of(contributions, OWNERS, target, WorkLimit::default()).expect("a crowd");
    statement(&views, None).expect("a statement")
}

/// The certificate of the owners' coins alone in a huge crowd.
fn certificate(rounds: usize) -> [Row; 1] {
    let asked: Contributions = "choice(k=2221,r=1.230024e-6)".parse().expect("a choice");
    let delta = Delta::new(DELTA).expect("a delta");
    let mut times = Rounds::default();
    for _ in 0..rounds {
        times.push(seconds_of(|| OwnersAlone::new(&asked, 50_000_000).expect("a crowd").epsilon(delta)));
    }
    let milliseconds = times.median() * 1e3;
    [Row::new("owners' coins alone, 2221 options, 5·10⁷ owners", Target::AtMost(5000.0), milliseconds, "ms")]
}

/// All options with simultaneous exact intervals. Options that share a sum share the work, so the slowest crowd is the one with the most
/// different sums; more than it can have show how the time grows.
fn estimating(rounds: usize) -> [Row; 4] {
    let cases = [
        (OPTIONS, crowd()),
        (OPTIONS, different_sums(OPTIONS, MOST_DIFFERENT, 1)),
        (OPTIONS, different_sums(OPTIONS, OPTIONS, 1)),
        (OPTIONS / 2, different_sums(OPTIONS / 2, OPTIONS / 2, 2)),
    ];
    let mut times: [Rounds; 4] = Default::default();
    for _ in 0..rounds {
        for (times, (options, published)) in times.iter_mut().zip(&cases) {
            times.push(seconds_of(|| estimate(*options, published)));
        }
    }
    let [crowd, slowest, different, half] = times.map(|times| times.median());
    [
        Row::new("estimating 2221 options of 50 186 owners", Target::AtMost(2.0), crowd, "s"),
        Row::new("  with as many different sums as they can have", Target::AtMost(2.0), slowest, "s"),
        Row::new("  if all sums were different", Target::None, different, "s"),
        Row::new("  that, against 1110 options", Target::AtMost(2.2), different / half, "×"),
    ]
}

/// One of K options at a linked ε of 8, and noise that guarantees about ε = 1.
fn noisy_choice(options: u32) -> Contributions {
    let other = 1.0 / (8f64.exp() + f64::from(options - 1));
    format!("choice(k={options},r={other}) + laplace(scale=2)").parse().expect("a choice")
}

fn estimate(options: u32, published: &Published) {
    let estimator = OptionEstimator::new(&noisy_choice(options)).expect("counts that depend on the truth");
    let confidence = Confidence::new(0.95).expect("a confidence");
    black_box(estimator.estimate(published, confidence, IntervalKind::Exact).expect("estimates"));
}

/// What a crowd publishes in which the options are unequal: the first has many owners, and most have few.
fn crowd() -> Published {
    let asked = noisy_choice(OPTIONS);
    let truth = |owner: u64| (f64::from(OPTIONS).powf(owner as f64 / OWNERS as f64) - 1.0) as u32;
    let truths: Choices = (0..OWNERS).map(|owner| Choice::new(truth(owner))).collect();
    let mut coins = SeededCoins::new(1);
    let counts = ContributionSampler::new(&asked).count_many_seeded(&truths, &mut coins).expect("a truth per owner");
    let noise = asked.noise().expect("the choice has noise");
    let noisy = |&count: &u64| count as i64 + noise.draw_seeded(&mut coins) + noise.draw_seeded(&mut coins);
    Published::Sums(Sums::new(OWNERS, counts.counts().iter().map(noisy).collect()).expect("sums"))
}

/// The first `different` multiples of `apart`, and 0 for the other options.
fn different_sums(options: u32, different: u32, apart: u32) -> Published {
    let sum = |option: u32| if option < different { i64::from(option * apart) } else { 0 };
    Published::Sums(Sums::new(OWNERS, (0..options).map(sum).collect()).expect("sums"))
}
