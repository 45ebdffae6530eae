//! Drawing the answers of a crowd.

use std::hint::black_box;

use chacha20::ChaCha12Rng;
use opendp::measurements::make_randomized_response_bool;
use rand_core::SeedableRng;
use uptack::{Coins, DeviceCoins, Error, Mechanism, OsCoins, Sampler, Truth, Truths, Unpredictable};

use crate::Size;
use crate::clock::{Rounds, seconds_of};
use crate::python::Python;
use crate::table::{Row, Target};

/// The probability of telling the truth; what OpenDP and numpy draw.
const TRUTHFUL: f64 = 0.8;
const RANDOMIZED_RESPONSE: &str = "randomized-response(t=0.8)";
const MECHANISMS: [(&str, &str); 5] = [
    ("randomized-response", RANDOMIZED_RESPONSE),
    ("normal-form", "normal-form(f=0.5, r=1e-4)"),
    ("deniable-sampling", "deniable-sampling(sy=0.5, sn=0.2, p1=0.5, p2=0.3)"),
    ("blended", "blended(b1=0.05, b2=0.25, b3=0.25, f1=0.05, f2=0.4, ry=1e-4, rn=1e-4)"),
    ("spread, 32 cells", "spread(pairs=3, f=0.7, r=1e-3)"),
];

/// A crowd is drawn in blocks, so that what is measured is the sampler and not the memory.
const BLOCK: usize = 1_000_000;

pub fn measure(size: &Size) -> Vec<Row> {
    let mut rows = against_peers(size);
    for (name, text) in MECHANISMS {
        rows.extend(against_generator(name, text, size));
    }
    rows.extend(one_by_one(size));
    rows
}

/// Randomized response by the three of them, in turns.
fn against_peers(size: &Size) -> Vec<Row> {
    let sampler = sampler(RANDOMIZED_RESPONSE);
    let truths = Crowd::new(size.owners);
    let peer_owners = size.owners / 20;
    let opendp = make_randomized_response_bool(TRUTHFUL, false).expect("a valid probability");
    let mut numpy = Python::numpy();
    let mut coins = device_coins();
    let (mut ours, mut theirs, mut vectorised) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..size.rounds {
        ours.push(seconds_of(|| truths.draw(&sampler, &mut coins)) / size.owners as f64);
        let one_by_one = || {
            let answer = |owner: usize| opendp.invoke(&is_yes(owner)).expect("the system has entropy");
            (0..peer_owners).for_each(|owner| _ = black_box(answer(owner)));
        };
        theirs.push(seconds_of(one_by_one) / peer_owners as f64);
        if let Ok(numpy) = &mut numpy {
            let blocks = size.owners.div_ceil(BLOCK);
            let block = size.owners.min(BLOCK);
            vectorised.push(numpy.seconds(&format!("{TRUTHFUL} {block} {blocks}")) / (block * blocks) as f64);
        }
    }
    let mut rows = vec![
        rate("randomized response, batch in turn with the peers", ours.median()),
        rate("  OpenDP make_randomized_response_bool", theirs.median()),
        Row::new("  batch against OpenDP", Target::AtLeast(100.0), theirs.median() / ours.median(), "×"),
    ];
    match numpy {
        Ok(_) => rows.extend([
            rate("  numpy random(n) < p", vectorised.median()),
            Row::new("  batch against numpy", Target::AtLeast(2.0), vectorised.median() / ours.median(), "×"),
        ]),
        Err(why) => rows.push(Row::skipped("  batch against numpy", why)),
    }
    rows
}

/// A mechanism against its generator alone, which makes as many bytes as the sampler has consumed.
fn against_generator(name: &str, text: &str, size: &Size) -> [Row; 3] {
    let sampler = sampler(text);
    let truths = Crowd::new(size.owners);
    let mut coins = Counted { coins: device_coins(), bytes: 0 };
    let (mut ours, mut raw) = (Rounds::default(), Rounds::default());
    let mut bytes = 0;
    for _ in 0..size.rounds {
        coins.bytes = 0;
        ours.push(seconds_of(|| truths.draw(&sampler, &mut coins)));
        bytes = coins.bytes;
        raw.push(seconds_of(|| fill(&mut coins.coins, bytes)));
    }
    let owners = size.owners as f64;
    [
        rate(&format!("batch, {name}"), ours.median() / owners),
        Row::new(format!("  bits per owner, {name}"), Target::None, bytes as f64 * 8.0 / owners, "bits"),
        Row::new(
            format!("  share of the rate of ChaCha12, {name}"),
            Target::AtLeast(50.0),
            100.0 * raw.median() / ours.median(),
            "%",
        ),
    ]
}

/// What has no target: single owners, and the operating system's generator.
fn one_by_one(size: &Size) -> [Row; 4] {
    let sampler = sampler(RANDOMIZED_RESPONSE);
    let owners = size.owners / 20;
    let truths = Crowd::new(owners);
    let mut rounds: [Rounds; 4] = Default::default();
    let mut device = device_coins();
    for _ in 0..size.rounds {
        rounds[0].push(seconds_of(|| singly(&sampler, owners, &mut device)));
        rounds[1].push(seconds_of(|| singly(&sampler, owners, &mut OsCoins)));
        let mut system = Counted { coins: OsCoins, bytes: 0 };
        rounds[2].push(seconds_of(|| truths.draw(&sampler, &mut system)));
        rounds[3].push(seconds_of(|| fill(&mut system.coins, system.bytes)));
    }
    let [device, system, batch, raw] = rounds.map(|rounds| rounds.median());
    [
        rate("one owner a call, ChaCha12", device / owners as f64),
        rate("one owner a call, the system's generator", system / owners as f64),
        rate("batch, the system's generator", batch / owners as f64),
        Row::new("  share of the rate of the system's generator", Target::AtLeast(50.0), 100.0 * raw / batch, "%"),
    ]
}

fn rate(what: &str, seconds_an_owner: f64) -> Row {
    Row::new(what, Target::None, 1e-6 / seconds_an_owner, "million owners/s")
}

fn sampler(text: &str) -> Sampler {
    Sampler::new(&text.parse::<Mechanism>().expect("a mechanism of the family").channel())
}

/// Every hundredth owner.
fn is_yes(owner: usize) -> bool {
    owner % 100 == 37
}

/// The truths of a crowd, in blocks.
struct Crowd(Vec<Truths>);

impl Crowd {
    fn new(owners: usize) -> Self {
        let block = |start: usize| (start..owners.min(start + BLOCK)).map(|owner| Truth::from_bool(is_yes(owner)));
        Self((0..owners).step_by(BLOCK).map(|start| block(start).collect()).collect())
    }

    fn draw(&self, sampler: &Sampler, coins: &mut impl Unpredictable) {
        for truths in &self.0 {
            black_box(sampler.draw_many(truths, coins).expect("the coins do not fail"));
        }
    }
}

fn singly(sampler: &Sampler, owners: usize, coins: &mut impl Unpredictable) {
    for owner in 0..owners {
        black_box(sampler.draw(Truth::from_bool(is_yes(owner)), coins).expect("the coins do not fail"));
    }
}

fn device_coins() -> DeviceCoins<ChaCha12Rng> {
    DeviceCoins::seeded_with_entropy(ChaCha12Rng::seed_from_u64(1))
}

/// Makes `bytes` bytes, as many at a time as the sampler asks for.
fn fill(coins: &mut impl Coins, bytes: usize) {
    let mut buffer = [0; 4096];
    for _ in 0..bytes.div_ceil(buffer.len()) {
        coins.fill(&mut buffer).expect("the coins do not fail");
        black_box(&buffer);
    }
}

/// Counts the bytes on their way.
struct Counted<C> {
    coins: C,
    bytes: usize,
}

impl<C: Coins> Coins for Counted<C> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.bytes += bytes.len();
        self.coins.fill(bytes)
    }
}

impl<C: Unpredictable> Unpredictable for Counted<C> {}
