//! Drawing one of K options.

use std::hint::black_box;

use chacha20::ChaCha12Rng;
use opendp::measurements::make_randomized_response;
use rand_core::SeedableRng;
use uptack::DeviceCoins;
use uptack::contribution::{Choice, Choices, ContributionSampler, Contributions};

use crate::Size;
use crate::clock::{Rounds, seconds_of};
use crate::python::Python;
use crate::table::{Row, Target};

const OPTIONS: [u32; 3] = [4, 100, 10_000];
/// The linked ε, the same for every number of options.
const LINKED: [u32; 2] = [8, 12];

/// A crowd is drawn in blocks that fit into the cache, so that what is measured is the sampler and not the memory: a truth and an
/// answer take four bytes each.
const BLOCK: usize = 50_000;

pub fn measure(size: &Size) -> Vec<Row> {
    let mut python = Python::multi_freq_ldpy();
    LINKED.iter().flat_map(|&linked| of_linked(f64::from(linked), size, &mut python)).collect()
}

fn of_linked(linked: f64, size: &Size, python: &mut Result<Python, String>) -> Vec<Row> {
    let contests = OPTIONS.map(|options| Contest::new(options, linked, size));
    let mut rounds: [[Rounds; 3]; 3] = Default::default();
    for _ in 0..size.rounds {
        for (contest, rounds) in contests.iter().zip(&mut rounds) {
            contest.round(rounds, python);
        }
    }
    let mut rows: Vec<Row> =
        contests.iter().zip(&rounds).flat_map(|(contest, rounds)| contest.rows(rounds, python)).collect();
    let [least, _, most] = rounds.each_ref().map(|[ours, ..]| ours.median());
    rows.push(Row::new(
        format!("choice, linked {linked}: an owner of 10 000 options against one of 4"),
        Target::AtMost(1.5),
        most / least,
        "×",
    ));
    rows
}

/// One of K options by three contestants.
struct Contest {
    options: u32,
    linked: f64,
    sampler: ContributionSampler,
    truths: Choices,
    blocks: usize,
    opendp: Box<dyn Fn(u32)>,
    /// How many owners each peer draws in one round.
    peer_owners: usize,
}

impl Contest {
    fn new(options: u32, linked: f64, size: &Size) -> Self {
        let other = 1.0 / (linked.exp() + f64::from(options - 1));
        let told = 1.0 - f64::from(options - 1) * other;
        let asked: Contributions = format!("choice(k={options},r={other})").parse().expect("a choice");
        let block = size.owners.min(BLOCK);
        let opendp = make_randomized_response((0..options).collect(), told).expect("a valid probability");
        Self {
            options,
            linked,
            sampler: ContributionSampler::new(&asked),
            truths: (0..block).map(|owner| Choice::new(truth(owner, options))).collect(),
            blocks: size.owners.div_ceil(block),
            opendp: Box::new(move |truth| _ = black_box(opendp.invoke(&truth).expect("the system has entropy"))),
            peer_owners: size.owners / 200,
        }
    }

    /// Seconds per owner of Uptack, OpenDP and multi-freq-ldpy.
    fn round(&self, [ours, opendp, ldpy]: &mut [Rounds; 3], python: &mut Result<Python, String>) {
        let mut coins = DeviceCoins::seeded_with_entropy(ChaCha12Rng::seed_from_u64(1));
        let draw = || {
            (0..self.blocks).for_each(|_| {
                black_box(self.sampler.draw_many(&self.truths, &mut coins).expect("the coins do not fail"));
            });
        };
        ours.push(seconds_of(draw) / (self.blocks * self.truths.len()) as f64);
        let one_by_one = || (0..self.peer_owners).for_each(|owner| (self.opendp)(truth(owner, self.options)));
        opendp.push(seconds_of(one_by_one) / self.peer_owners as f64);
        if let Ok(python) = python {
            let work = format!("{} {} {}", self.options, self.linked, self.peer_owners);
            ldpy.push(python.seconds(&work) / self.peer_owners as f64);
        }
    }

    fn rows(&self, [ours, opendp, ldpy]: &[Rounds; 3], python: &Result<Python, String>) -> Vec<Row> {
        let ours = ours.median();
        let rate = |what: &str, seconds: f64| Row::new(what, Target::None, 1e-6 / seconds, "million owners/s");
        let mut rows = vec![
            rate(&format!("choice of {}, linked {}, batch", self.options, self.linked), ours),
            rate("  OpenDP make_randomized_response", opendp.median()),
            Row::new("  batch against OpenDP", Target::AtLeast(300.0), opendp.median() / ours, "×"),
        ];
        match python {
            Ok(_) => rows.extend([
                rate("  multi-freq-ldpy GRR_Client", ldpy.median()),
                Row::new("  batch against multi-freq-ldpy", Target::AtLeast(20.0), ldpy.median() / ours, "×"),
            ]),
            Err(why) => rows.push(Row::skipped("  batch against multi-freq-ldpy", why.as_str())),
        }
        rows
    }
}

/// Every option, in an order without a pattern.
fn truth(owner: usize, options: u32) -> u32 {
    (owner * 7919 % options as usize) as u32
}
