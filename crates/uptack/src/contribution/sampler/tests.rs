//! The sampler against the law as stated, coin by coin.

use super::*;

fn asked(text: &str) -> Contributions {
    text.parse().unwrap()
}

fn sampler(text: &str) -> ContributionSampler {
    ContributionSampler::new(&asked(text))
}

/// Plays back given words, then zeros.
struct Script(std::vec::IntoIter<u8>);

impl Script {
    fn new(words: impl IntoIterator<Item = u64>) -> Self {
        Self(words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>().into_iter())
    }
}

impl Coins for Script {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        bytes.iter_mut().for_each(|byte| *byte = self.0.next().unwrap_or(0));
        Ok(())
    }
}

/// A sampler whose batches read 16 leading bits, even where it would not choose to.
fn by_steps(contributions: &Contributions) -> ContributionSampler {
    let sampler = ContributionSampler::new(contributions);
    ContributionSampler { steps: Some(WholeSteps::new(&sampler.thresholds)), ..sampler }
}

/// A sampler whose batches read 32 leading bits, even where it would not choose to.
fn by_halves(contributions: &Contributions) -> ContributionSampler {
    ContributionSampler { steps: None, ..ContributionSampler::new(contributions) }
}

/// What the batch form reads by steps: those of a block, four to a word, and then a word for each that is left undecided.
fn step_script(steps: &WholeSteps, coins: &[(u16, u64)]) -> Script {
    let words = coins.chunks(BLOCK).flat_map(|block| {
        let mut leading: Vec<u64> = block.iter().map(|(step, _)| u64::from(*step)).collect();
        leading.resize(BLOCK, 0);
        let fours: Vec<u64> =
            leading.chunks(4).map(|four| four.iter().rev().fold(0, |word, step| (word << 16) | step)).collect();
        let undecided = block.iter().filter(|(step, _)| *step >= steps.undecided_from).map(|(_, word)| *word);
        fours.into_iter().chain(undecided.collect::<Vec<_>>())
    });
    Script::new(words)
}

/// What the batch form reads by halves to draw these coins: the leading halves of a block, two to a word, and then for each coin that
/// they do not decide its other half.
fn script(sampler: &ContributionSampler, coins: &[u64]) -> Script {
    let words = coins.chunks(BLOCK).flat_map(|block| {
        let mut leading: Vec<u64> = block.iter().map(|coin| coin >> 32).collect();
        leading.resize(BLOCK, 0);
        let pairs: Vec<u64> = leading.chunks(2).map(|pair| pair[0] | (pair[1] << 32)).collect();
        let undecided = block.iter().filter(|&&coin| is_undecided(sampler, coin)).map(|coin| coin << 32);
        pairs.into_iter().chain(undecided.collect::<Vec<_>>())
    });
    Script::new(words)
}

/// Whether the first and the last coin with the same leading half say different things, or the sampler does not rely on it that
/// they say the same.
fn is_undecided(sampler: &ContributionSampler, coin: u64) -> bool {
    let (first, last) = (coin >> 32 << 32, coin | u64::from(u32::MAX));
    let (said, undecided) = sampler.leading.decide((coin >> 32) as u32);
    let means = |drawn: Drawn| (drawn.told, drawn.possibility & !drawn.told);
    let exact = [first, last].map(|coin| means(sampler.thresholds.drawn(coin)));
    assert!(undecided != 0 || exact == [means(said); 2], "{sampler:?} decides half of {coin}");
    undecided != 0
}

/// The law as stated: where a coin sends a contribution of this truth, K standing for none of the possibilities.
fn meant(contributions: &Contributions, coin: u64, truth: u32) -> Option<usize> {
    let law = contributions.law();
    let mut end = law.telling().numerator();
    let mut possibility = truth;
    if u128::from(coin) >= end {
        possibility = 0;
        while possibility < law.possibilities() && u128::from(coin) >= end + law.other().numerator() {
            end += law.other().numerator();
            possibility += 1;
        }
    }
    ((possibility as usize) < contributions.counts()).then_some(possibility as usize)
}

/// Laws of K options with every kind of threshold: long and short intervals, intervals shorter than 2³² coins, powers of two,
/// nothing silent, nothing told, and nothing else.
fn laws(options: u32) -> Vec<Contributions> {
    let texts = [
        format!("choice(k={options},r={})", 0.9 / f64::from(options)),
        format!("choice(k={options},f=0.6,r=0.001)"),
        format!("choice(k={options},f=0.7,r=1e-10)"),
        format!("choice(k={options},r=1/{options})"),
        format!("choice(k={options},f=0.9,r=1/{})", 8 * options.next_power_of_two()),
        format!("contributions(counts={options},most=2,r=1e-9)"),
        format!("contributions(counts={options},r=3e-20)"),
        format!("choice(k={options},r=0)"),
        format!("choice(k={options},f=0.3,r=0)"),
        format!("choice(k={options},f=0,r=0)"),
    ];
    texts.iter().map(|text| asked(text)).collect()
}

/// The coins at and around every threshold, and the first and last that share their leading half with one of them.
fn edges(contributions: &Contributions) -> Vec<u64> {
    let law = contributions.law();
    let ends = (0..=u128::from(law.possibilities()))
        .map(|interval| law.telling().numerator() + interval * law.other().numerator());
    let around = ends.flat_map(|end| {
        let half = end >> 32 << 32;
        [end.wrapping_sub(1), end, end + 1, half.wrapping_sub(1), half, half + (1 << 32) - 1, half + (1 << 32)]
    });
    around.chain([0, u128::from(u64::MAX)]).filter_map(|edge| u64::try_from(edge).ok()).collect()
}

/// A possibility is constant between two edges, so exact edges are the exact law.
#[test]
fn every_threshold_is_exact_one_at_a_time_and_in_a_batch() {
    for contributions in (2..=40).flat_map(laws) {
        let sampler = by_halves(&contributions);
        let coins = edges(&contributions);
        let possibilities = contributions.possibilities();
        for truth in [0, possibilities / 2, possibilities - 1] {
            let expected: Vec<Option<usize>> = coins.iter().map(|&coin| meant(&contributions, coin, truth)).collect();
            let single = |&coin: &u64| sampler.draw_from(Choice::new(truth), &mut Script::new([coin])).unwrap().count();
            assert!(coins.iter().map(single).eq(expected.iter().copied()), "{contributions} {truth}");
            let truths: Choices = coins.iter().map(|_| Choice::new(truth)).collect();
            let batch = sampler.draw_many_from(&truths, &mut script(&sampler, &coins)).unwrap();
            assert!(batch.iter().map(|drawn| drawn.count()).eq(expected), "{contributions} {truth}");
        }
    }
}

/// Told, each possibility, silent: how many coins of all 2⁶⁴ say so.
fn coins_by_outcome(steps: &WholeSteps, possibilities: u32) -> Vec<u128> {
    let outcome = |drawn: Drawn| if drawn.told != 0 { 0 } else { drawn.possibility as usize + 1 };
    let mut coins = vec![0; possibilities as usize + 2];
    (0..steps.undecided_from).for_each(|step| coins[outcome(steps.decided(step))] += 1 << 48);
    let all = (65_536 - u128::from(steps.undecided_from)) << 48;
    let mut counted = 0;
    for (last, coins) in coins.iter_mut().enumerate() {
        // The outcomes of the rest are in order, so that the first coin beyond one is found by bisection.
        let (mut low, mut high) = (counted, all);
        while low < high {
            let middle = (low + high) / 2;
            if outcome(steps.rest.drawn(middle as u64)) <= last { low = middle + 1 } else { high = middle }
        }
        *coins += low - counted;
        counted = low;
    }
    coins
}

/// All 65 536 steps and the rest together are the law, integer by integer.
#[test]
fn the_steps_and_their_rest_are_exactly_the_law() {
    let large = ["choice(k=10000,r=1/12980)", "choice(k=65535,r=1/65536)", "choice(k=65536,r=1/65536)"].map(asked);
    for contributions in (2..=40).flat_map(laws).chain(large) {
        let law = contributions.law();
        let mut expected = vec![law.other().numerator(); law.possibilities() as usize + 2];
        expected[0] = law.telling().numerator();
        *expected.last_mut().unwrap() = law.silent().numerator();
        let steps = by_steps(&contributions).steps.unwrap();
        assert!(coins_by_outcome(&steps, law.possibilities()) == expected, "{contributions}");
    }
}

/// Steps and words around every place where what a coin says changes.
fn step_edges(contributions: &Contributions, steps: &WholeSteps) -> Vec<(u16, u64)> {
    let said = |step: u16| (step < steps.undecided_from).then(|| steps.decided(step));
    let changes = (1..=u16::MAX).filter(|&step| said(step - 1) != said(step));
    let around = changes.flat_map(|step| [(step - 1, 0), (step, u64::MAX)]);
    let rest_edges = (0..=u128::from(contributions.possibilities())).flat_map(|interval| {
        [0, 1].map(|before| {
            steps.rest.telling() + interval * u128::from(steps.rest.other()) - before.min(steps.rest.telling())
        })
    });
    let left = rest_edges.map(|edge| (edge >> 48, (edge as u64) << 16));
    let left =
        left.filter_map(|(step, word)| Some((u16::try_from(step).ok()?.checked_add(steps.undecided_from)?, word)));
    around.chain(left).chain([(0, 0), (u16::MAX, u64::MAX)]).collect()
}

/// A batch says what its steps say, and reads the rest of exactly those coins that they leave.
#[test]
fn a_batch_follows_its_steps() {
    for contributions in (2..=40).flat_map(laws) {
        let sampler = by_steps(&contributions);
        let steps = sampler.steps.as_ref().unwrap();
        let coins = step_edges(&contributions, steps);
        let said = |&(step, word): &(u16, u64)| match step.checked_sub(steps.undecided_from) {
            Some(left) => steps.rest.drawn((u64::from(left) << 48) | (word >> 16)),
            None => steps.decided(step),
        };
        for truth in [0, contributions.possibilities() - 1] {
            let place = |drawn: Drawn| if drawn.told != 0 { truth } else { drawn.possibility } as usize;
            let expected =
                coins.iter().map(|coin| Some(place(said(coin))).filter(|&place| place < contributions.counts()));
            let truths: Choices = coins.iter().map(|_| Choice::new(truth)).collect();
            let batch = sampler.draw_many_from(&truths, &mut step_script(steps, &coins)).unwrap();
            assert!(batch.iter().map(|drawn| drawn.count()).eq(expected), "{contributions} {truth}");
        }
    }
}

/// 16 bits are read where they decide at least seven of eight coins, whether or not these tell the truth.
#[test]
fn the_law_chooses_how_many_leading_bits_are_read() {
    for (text, few) in [
        ("choice(k=4,r=0.001)", true),
        ("choice(k=4,r=0.2)", true),
        ("choice(k=10000,r=1/12980)", true),
        ("choice(k=10000,f=0.5,r=1e-9)", true),
        ("choice(k=10000,r=1/172754)", true),
        ("choice(k=10000,r=1/70000)", false),
        ("choice(k=65536,r=1/68516)", false),
    ] {
        assert_eq!(sampler(text).steps.is_some(), few, "{text}");
    }
}

/// Many possibilities: random edges of each law, and the leading halves around them.
#[test]
fn leading_bits_never_decide_too_much() {
    let mut coins = SeededCoins::new(5);
    for text in [
        "choice(k=65536,r=1e-5)",
        "choice(k=10000,r=1/12980)",
        "choice(k=65536,f=0.01,r=1e-7)",
        "contributions(counts=16777216,r=5e-8)",
        "contributions(counts=16777216,most=3,r=1e-10)",
    ] {
        let contributions = asked(text);
        let (sampler, law) = (ContributionSampler::new(&contributions), contributions.law());
        for _ in 0..2000 {
            let interval = (coins.uniform() * f64::from(law.possibilities())) as u128;
            let edge = law.telling().numerator() + interval * law.other().numerator();
            for coin in [edge.wrapping_sub(1 << 32), edge.wrapping_sub(1), edge, edge + (1 << 32)] {
                is_undecided(&sampler, coin as u64);
            }
        }
    }
}

/// All but about 4/(r·2³²) of the coins are decided by their leading half, and where r is too small for that, all that tell the
/// truth.
#[test]
fn nearly_all_leading_halves_decide() {
    for (text, most) in [("choice(k=4,r=0.01)", 2), ("choice(k=10000,r=1/12980)", 25), ("choice(k=4,r=1e-9)", 2)] {
        let sampler = sampler(text);
        let halves = (0..1_000_000u32).map(|index| index.wrapping_mul(2_654_435_761));
        let undecided = halves.filter(|&half| sampler.leading.decide(half).1 != 0).count();
        assert!(undecided <= most, "{text}: {undecided}");
    }
}

/// A law on the grid of 2⁻¹⁶ is drawn for all 65 536 coins, and each count comes up as often as it says.
#[test]
fn a_coarse_law_is_enumerated_whole() {
    let contributions = asked("choice(k=5,f=60000/65536,r=123/65536)");
    let (halves, steps) = (by_halves(&contributions), by_steps(&contributions));
    let coins: Vec<u64> = (0..65_536).map(|coin| coin << 48).collect();
    let all_steps: Vec<(u16, u64)> = (0..=u16::MAX).map(|step| (step, 0)).collect();
    for truth in 0..5 {
        let truths: Choices = coins.iter().map(|_| Choice::new(truth)).collect();
        let mut expected = [123, 123, 123, 123, 123, 5536];
        expected[truth as usize] = 60_000 - 4 * 123;
        let by_halves = halves.draw_many_from(&truths, &mut script(&halves, &coins)).unwrap();
        let by_steps = step_script(steps.steps.as_ref().unwrap(), &all_steps);
        let by_steps = steps.draw_many_from(&truths, &mut { by_steps }).unwrap();
        for batch in [by_halves, by_steps] {
            let mut drawn = [0; 6];
            batch.iter().for_each(|contributed| drawn[contributed.count().unwrap_or(5)] += 1);
            assert_eq!(drawn, expected);
        }
    }
}

/// Counts bytes on their way from a seeded source.
struct Counting(SeededCoins, usize);

impl Coins for Counting {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.1 += bytes.len();
        self.0.fill(bytes)
    }
}

/// The bytes that a batch reads, to the word, and not only to the buffer that is filled at a time.
fn bytes_of(sampler: &ContributionSampler, truths: &[u32], seed: u64) -> usize {
    let mut coins = Counting(SeededCoins::new(seed), 0);
    let mut words = CoinWords::new(&mut coins);
    sampler.draw_words(truths, &mut words).unwrap();
    let unused = words.unused();
    coins.1 - unused
}

#[test]
fn bytes_read_do_not_depend_on_the_truth() {
    for (options, r) in [(2u32, "0.1"), (3, "1/3"), (100, "0.001"), (100, "1e-11"), (65_536, "1e-5")] {
        let sampler = sampler(&format!("choice(k={options},r={r})"));
        for seed in 0..10 {
            let crowds = [
                vec![0; 700],
                vec![options - 1; 700],
                (0..700).map(|owner| owner * 7919 % options).collect::<Vec<u32>>(),
            ];
            let [first, second, third] = crowds.map(|truths| bytes_of(&sampler, &truths, seed));
            let leading_bytes = if sampler.steps.is_some() { 2 } else { 4 };
            assert!((first, first) == (second, third) && first >= 704 * leading_bytes, "{options} {first}");
            for truth in [0, options / 2, options - 1] {
                let mut coins = Counting(SeededCoins::new(seed), 0);
                sampler.draw_from(Choice::new(truth), &mut coins).unwrap();
                assert_eq!(coins.1, 8);
            }
        }
    }
}

#[test]
fn a_report_reads_eight_bytes_per_contribution() {
    let contributions = asked("contributions(counts=9,most=4,r=0.05)");
    let sampler = ContributionSampler::new(&contributions);
    for counts in [vec![], vec![8], vec![0, 1, 2, 3], vec![3, 2, 1, 0]] {
        let mut coins = Counting(SeededCoins::new(3), 0);
        sampler.draw_report_from(&contributions.choices_of(&counts).unwrap(), &mut coins).unwrap();
        assert_eq!(coins.1, 32);
    }
}

/// The report is the set of counts of the same coins' contributions, and the counts of many are the sums of their sets.
#[test]
fn reports_and_counts_are_those_of_the_contributions() {
    for text in ["contributions(counts=6,most=3,r=0.1)", "choice(k=4,f=0.8,r=0.1)", "choice(k=2,r=0.3)"] {
        let contributions = asked(text);
        let sampler = ContributionSampler::new(&contributions);
        let (most, owners) = (contributions.most() as usize, 3000);
        let truth = |index: usize| Choice::new(index as u32 % contributions.possibilities());
        let mut counts = ContributionCounts::new(contributions.counts());
        for owner in 0..200 {
            let truths: Vec<Choice> = (0..most).map(|index| truth(owner + index)).collect();
            let report = sampler.draw_report_seeded(&truths, &mut SeededCoins::new(owner as u64)).unwrap();
            let mut coins = SeededCoins::new(owner as u64);
            let drawn = truths.iter().filter_map(|&truth| sampler.draw_seeded(truth, &mut coins).count());
            assert_eq!(report, Vec::from_iter(std::collections::BTreeSet::from_iter(drawn)));
            counts.add_report(report);
        }
        assert_eq!(counts.owners(), 200);
        let truths: Choices = (0..owners * most).map(truth).collect();
        let drawn = sampler.draw_many_seeded(&truths, &mut SeededCoins::new(1));
        let mut sums = ContributionCounts::new(contributions.counts());
        for report in drawn.chunks(most) {
            sums.add_report(std::collections::BTreeSet::from_iter(report.iter().filter_map(|drawn| drawn.count())));
        }
        assert_eq!(sampler.count_many_seeded(&truths, &mut SeededCoins::new(1)).unwrap(), sums);
    }
}

#[test]
fn a_wrong_number_of_truths_is_refused() {
    let sampler = sampler("contributions(counts=6,most=3,r=0.1)");
    let mut coins = SeededCoins::new(1);
    assert!(sampler.draw_report_seeded(&[Choice::new(0); 2], &mut coins).unwrap_err().is_request());
    let four: Choices = [Choice::new(0); 4].into_iter().collect();
    assert!(sampler.count_many_seeded(&four, &mut coins).unwrap_err().is_request());
}

#[test]
fn seeded_draws_are_pinned() {
    let contributions = asked("contributions(counts=5,most=2,r=0.1)");
    let sampler = ContributionSampler::new(&contributions);
    let number = |drawn: Contributed| drawn.count().map_or(-1, |count| count as i64);
    let mut coins = SeededCoins::new(7);
    let singles: Vec<i64> = (0..16).map(|_| number(sampler.draw_seeded(Choice::new(2), &mut coins))).collect();
    let truths: Choices = (0..16).map(|index| Choice::new(index % 6)).collect();
    let batch = sampler.draw_many_seeded(&truths, &mut SeededCoins::new(7)).into_iter().map(number);
    let report =
        sampler.draw_report_seeded(&contributions.choices_of(&[4, 1]).unwrap(), &mut SeededCoins::new(7)).unwrap();
    let counts = sampler.count_many_seeded(&truths, &mut SeededCoins::new(7)).unwrap();
    assert_eq!(singles, PINNED_SINGLES);
    assert_eq!(batch.collect::<Vec<_>>(), PINNED_BATCH);
    let by_halves =
        by_halves(&contributions).draw_many_seeded(&truths, &mut SeededCoins::new(7)).into_iter().map(number);
    assert_eq!(by_halves.collect::<Vec<_>>(), PINNED_BATCH_BY_HALVES);
    assert_eq!((report.as_slice(), counts.counts()), (PINNED_REPORT.as_slice(), PINNED_COUNTS.as_slice()));
}

const PINNED_SINGLES: [i64; 16] = [2, 2, 2, 1, 2, -1, 2, 2, 2, 3, 2, 2, 2, 2, 2, 4];
const PINNED_BATCH: [i64; 16] = [-1, 0, 4, 3, 4, -1, 0, 1, 3, 3, 4, -1, 2, 2, 0, 1];
const PINNED_BATCH_BY_HALVES: [i64; 16] = [0, 1, 2, 3, 4, -1, 2, 1, 2, 3, 3, -1, 1, 1, 3, 3];
const PINNED_REPORT: [usize; 2] = [1, 4];
const PINNED_COUNTS: [u64; 5] = [3, 2, 1, 2, 3];

/// Failing coins fail the draw; nothing is made up.
#[test]
fn failing_coins_are_an_error() {
    struct Broken;
    impl Coins for Broken {
        fn fill(&mut self, _: &mut [u8]) -> Result<()> {
            Err(Error::coins("broken"))
        }
    }
    let sampler = sampler("choice(k=3,r=0.1)");
    let (one, many) = ([Choice::new(1)], Choices::from_iter([Choice::new(1)]));
    assert!(sampler.draw_from(one[0], &mut Broken).unwrap_err().is_coins());
    assert!(sampler.draw_report_from(&one, &mut Broken).unwrap_err().is_coins());
    assert!(sampler.draw_many_from(&many, &mut Broken).unwrap_err().is_coins());
    assert!(sampler.count_many_from(&many, &mut Broken).unwrap_err().is_coins());
}
