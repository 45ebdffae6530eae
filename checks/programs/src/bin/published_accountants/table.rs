//! What the published accountants for shuffled reports say, against ours: ε, and the processor time each takes.
//!
//! * privacy blanket: Balle, Bell, Gascón, Nissim (2019), evaluated exactly as Su et al. (arXiv 2504.07414) do; the library has it as
//!   one of its own bounds.
//! * variation-ratio: Wang et al. (PVLDB 17(8), 2024; arXiv 2304.05007), from the pair of laws that it reduces to.
//! * clones: the closed forms of Feldman, McMillan and Talwar (2021, and the stronger one of 2023).

use uptack::privacy::{Delta, release};
use uptack::{Channel, Mechanism};

const DELTA: f64 = 1e-6;
const FIVE_CLASSES: &str = "11=0.636408:0.011656, 12=0.234122:0.031685, 13=0.086129:0.086129, 21=0.031685:0.234122, \
                            31=0.011656:0.636408";

/// One accountant: its name and its ε for a channel, none where it does not apply.
type Accountant = (&'static str, fn(&Channel, u64, f64) -> Option<f64>);

const ACCOUNTANTS: [Accountant; 5] = [
    ("uptack", uptack),
    ("blanket", blanket),
    ("variation-ratio", variation_ratio),
    ("clones 2021", clones_2021),
    ("clones 2023", clones_2023),
];

/// Seconds of processor time used so far.
type Clock = fn() -> f64;

/// Prints the tables of the documentation.
pub(crate) fn print(clock: Clock) {
    println!("ε at δ = {DELTA:e} (processor time)\n");
    println!("| channel | owners | {} |", ACCOUNTANTS.map(|(name, _)| name).join(" | "));
    println!("| --- | --- | {} |", ACCOUNTANTS.map(|_| "---").join(" | "));
    let five = ("five classes".to_owned(), Channel::parse_cells(FIVE_CLASSES).expect("a channel"));
    let response = |local: &f64| (format!("randomized response, ε₀ = {local}"), randomized_response(*local));
    for (name, channel) in [1.0, 2.0, 4.0, 6.0].iter().map(response).chain([five]) {
        for owners in [1_000, 10_000, 100_000, 1_000_000] {
            let cells = ACCOUNTANTS.map(|(_, epsilon)| cell(clock, || epsilon(&channel, owners, DELTA)));
            println!("| {name} | {owners} | {} |", cells.join(" | "));
        }
    }
    println!("\nRandomized response planned for ε = 1 at δ = 1e-8 with 50 000 owners\n");
    println!("| accountant | standard deviation |\n| --- | --- |");
    for (name, epsilon) in ACCOUNTANTS {
        println!("| {name} | {:.2} |", planned(epsilon));
    }
}

/// ε rounded up, and how long it takes: short work is repeated, because clocks tick in milliseconds.
fn cell(clock: Clock, work: impl Fn() -> Option<f64>) -> String {
    let start = clock();
    let epsilon = work();
    let mut times = 1;
    while clock() - start < 0.05 {
        std::hint::black_box(work());
        times += 1;
    }
    let milliseconds = 1e3 * (clock() - start) / f64::from(times);
    let time = match milliseconds {
        short if short < 0.1 => "< 0.1 ms".to_owned(),
        short if short < 10.0 => format!("{short:.1} ms"),
        long => format!("{long:.0} ms"),
    };
    epsilon.map_or("–".to_owned(), |epsilon| format!("{:.4} ({time})", (1e4 * epsilon).ceil() / 1e4))
}

/// The channel of randomized response with this local ε.
pub(crate) fn randomized_response(local: f64) -> Channel {
    let text = format!("randomized-response(t={})", 1.0 / (1.0 + (-local).exp()));
    text.parse::<Mechanism>().expect("a mechanism").channel()
}

/// The error of the least noisy randomized response that the accountant permits.
fn planned(epsilon: fn(&Channel, u64, f64) -> Option<f64>) -> f64 {
    let (owners, wanted, delta) = (50_000, 1.0, 1e-8);
    let (mut low, mut high) = (0.1, 12.0);
    while high - low > 1e-4 {
        let middle = 0.5 * (low + high);
        let permitted = epsilon(&randomized_response(middle), owners, delta).is_some_and(|epsilon| epsilon <= wanted);
        if permitted { low = middle } else { high = middle }
    }
    let t = 1.0 / (1.0 + f64::exp(-low));
    (owners as f64 * t * (1.0 - t)).sqrt() / (2.0 * t - 1.0)
}

fn uptack(channel: &Channel, owners: u64, delta: f64) -> Option<f64> {
    let claim = release(channel, owners).ok()?.epsilon(Delta::new(delta).ok()?);
    claim.value().map(|value| value.upper())
}

fn blanket(channel: &Channel, owners: u64, delta: f64) -> Option<f64> {
    release(channel, owners).ok()?.blanket_epsilon(Delta::new(delta).ok()?)
}

/// The largest ratio of the two laws, and their distance in total variation.
fn shape(channel: &Channel) -> (f64, f64) {
    let laws = || channel.cells().iter().map(|cell| (cell.yes().to_f64(), cell.no().to_f64()));
    let ratio = laws().map(|(p, q)| (p / q).max(q / p)).fold(1.0, f64::max);
    (ratio, laws().map(|(p, q)| (p - q).max(0.0)).sum())
}

fn clones_2021(channel: &Channel, owners: u64, delta: f64) -> Option<f64> {
    let (growth, n) = (shape(channel).0, owners as f64);
    let applies = growth <= n / (16.0 * (2.0 / delta).ln());
    let factor = 8.0 * (growth * (4.0 / delta).ln() / n).sqrt() + 8.0 * growth / n;
    applies.then(|| ((growth - 1.0) / (growth + 1.0) * factor).ln_1p())
}

fn clones_2023(channel: &Channel, owners: u64, delta: f64) -> Option<f64> {
    let (growth, n) = (shape(channel).0, owners as f64);
    let applies = growth <= n / (8.0 * (2.0 / delta).ln()) - 1.0;
    let factor = 4.0 * (2.0 * (4.0 / delta).ln() / ((growth + 1.0) * n)).sqrt() + 4.0 / n;
    applies.then(|| ((growth - 1.0) * factor).ln_1p())
}

/// ε by bisection to a relative 1e-5: the straightforward way.
pub(crate) fn variation_ratio(channel: &Channel, owners: u64, delta: f64) -> Option<f64> {
    let (ratio, distance) = shape(channel);
    let (mut low, mut high) = (0.0, ratio.ln());
    while high - low > 1e-5 * high {
        let middle = 0.5 * (low + high);
        if variation_ratio_delta(owners, ratio, distance, middle) > delta { low = middle } else { high = middle }
    }
    Some(high)
}

/// Others are clones with probability 2r, one side or the other with ½ each; the target is on its own side with probability
/// ratio·α, on the other with α and nowhere else. With s = all clones and a of them on the target's side, both laws are a
/// binomial law of a times a linear function of a.
fn variation_ratio_delta(owners: u64, ratio: f64, distance: f64, epsilon: f64) -> f64 {
    let alpha = distance / (ratio - 1.0);
    let (clone, nowhere, growth) = (2.0 * alpha, (1.0 - alpha - ratio * alpha).max(0.0), epsilon.exp());
    let n = (owners - 1) as f64;
    let (mean, deviation) = (n * clone, (n * clone * (1.0 - clone)).sqrt());
    let (low, high) = ((mean - 9.0 * deviation).max(0.0) as u64, ((mean + 9.0 * deviation + 2.0) as u64).min(owners));
    let log_mass = |s: f64| {
        libm::lgamma(n + 1.0) - libm::lgamma(s + 1.0) - libm::lgamma(n - s + 1.0)
            + s * clone.ln()
            + (n - s) * (-clone).ln_1p()
    };
    let given = |s: f64| {
        let (fewer, all) =
            (if s > 0.0 { log_mass(s - 1.0).exp() } else { 0.0 }, if s <= n { log_mass(s).exp() } else { 0.0 });
        // First law less e^ε times the second: constant + slope·a, times P(Binomial(s, ½) = a).
        let share = if s > 0.0 { 2.0 * fewer / s } else { 0.0 };
        let slope = share * alpha * (ratio - 1.0) * (1.0 + growth);
        let constant = share * alpha * s * (1.0 - growth * ratio) + nowhere * all * (1.0 - growth);
        if slope <= 0.0 {
            return constant.max(0.0);
        }
        let from = (-constant / slope).ceil().max(0.0);
        constant * fair_tail(s, from) + slope * s / 2.0 * fair_tail(s - 1.0, from - 1.0)
    };
    (low..=high).map(|s| given(s as f64).max(0.0)).sum()
}

/// P(Binomial(trials, ½) ≥ hits), by the regularized incomplete beta function.
fn fair_tail(trials: f64, hits: f64) -> f64 {
    if hits <= 0.0 {
        return 1.0;
    }
    if hits > trials {
        return 0.0;
    }
    let (a, b) = (hits, trials - hits + 1.0);
    let front = (libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + (a + b) * 0.5f64.ln()).exp();
    if 0.5 < (a + 1.0) / (a + b + 2.0) {
        front * continued_fraction(a, b) / a
    } else {
        1.0 - front * continued_fraction(b, a) / b
    }
}

/// Lentz's evaluation of the incomplete beta function's continued fraction at ½.
fn continued_fraction(a: f64, b: f64) -> f64 {
    let x = 0.5;
    let (mut c, mut d) = (1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0)));
    let mut product = d;
    for step in 1..100_000 {
        let m = f64::from(step);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / (1.0 + term * d);
            c = 1.0 + term / c;
            product *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-13 {
            break;
        }
    }
    product
}
