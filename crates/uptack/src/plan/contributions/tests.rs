//! Plans of contributions against the values of independent programs, and against their own claims.

use super::noisy::{CoinLaw, least_other, needed_decay};
use super::*;
use crate::noise::{NoiseLaw, Scale};
use crate::plan::{Asked, Prior};
use crate::privacy::contributions::{linked_epsilon, one_aggregator};
use crate::privacy::{Delta, Epsilon};
use crate::{Fraction, SeededCoins};

fn noisy(asked: Asked, (owners, yes): (u64, u64), epsilon: f64, linked: Option<f64>) -> Request {
    let request = Request::one_aggregator(owners, Prior::at(yes), Epsilon::new(epsilon).unwrap()).unwrap();
    Request { asked, linked_epsilon: linked, ..request }
}

/// The law of one contribution by the formulas, before anything is rounded.
fn unrounded(asked: Asked, part: f64, other: f64) -> CoinLaw {
    let possibilities = f64::from(asked.possibilities());
    CoinLaw {
        told: part - (possibilities - 1.0) * other,
        other,
        silent: 1.0 - part,
        counts: f64::from(asked.counts()),
        has_uncounted: asked.counts() < asked.possibilities(),
        most: f64::from(asked.most()),
    }
}

/// The standard deviation of one count, from its definition.
fn sd_by_definition(law: &CoinLaw, (owners, yes): (f64, f64), decay: f64) -> f64 {
    let missed = (1.0 - law.other).powf(law.most - 1.0);
    let (p, q) = (1.0 - (1.0 - law.told) * missed, 1.0 - (1.0 - law.other) * missed);
    let noise = 4.0 * decay / (1.0 - decay).powi(2);
    (yes * p * (1.0 - p) + (owners - yes) * q * (1.0 - q) + noise).sqrt() / (p - q)
}

fn is_near(value: f64, reference: f64, tolerance: f64) -> bool {
    (value - reference).abs() <= tolerance * reference.abs()
}

/// Owners, yes, (counts, most), linked ε, ε, and the scale and the standard deviation by an independent program.
type Row = (u64, u64, (u32, u32), Option<f64>, f64, f64, f64);

const PLANS: [Row; 11] = [
    (7000, 100, (288, 1), Some(8.0), 1.0, 1.886_766_132_877_295, 5.380_234_030_040_69),
    (50186, 100, (288, 1), Some(8.0), 1.0, 1.886_766_132_877_295, 6.696_243_146_130_540_5),
    (50186, 100, (288, 1), Some(12.0), 1.0, 1.997_740_519_482_717_6, 4.021_875_830_445_686),
    (50186, 100, (288, 2), Some(12.0), 1.0, 2.666_451_788_752_032, 24.135_179_942_756_1),
    (50186, 100, (288, 2), Some(16.0), 1.0, 3.720_384_533_830_168, 10.621_020_220_985_566),
    (1000000, 100, (288, 1), Some(12.0), 1.0, 1.997_740_519_482_717_6, 4.692_729_145_964_757),
    (50186, 100, (12, 1), Some(8.0), 1.0, 1.993_507_442_116_428, 5.742_939_385_906_951),
    (50186, 100, (12, 2), Some(12.0), 2.0, 1.953_157_597_525_322_6, 16.602_241_305_558_86),
    (3000, 50, (48, 1), Some(8.0), 0.5, 3.948_095_265_447_773, 8.116_982_314_872_157),
    (50186, 100, (288, 5), None, 1.0, 10.000_000_000_000_002, 19.991_669_096_581_692),
    (7000, 100, (288, 1), None, 2.0, 1.0, 1.919_034_751_334_943_7),
];

#[test]
fn scales_and_errors_of_contributions_are_those_of_an_independent_program() {
    for (owners, yes, (counts, most), linked, epsilon, scale, sd) in PLANS {
        let asked = Asked::Counts { counts, most };
        let law = unrounded(asked, 1.0, least_other(asked, 1.0, linked.unwrap_or(f64::INFINITY)));
        let decay = needed_decay(&law, epsilon);
        assert!(is_near(-1.0 / decay.ln(), scale, 1e-9), "{asked:?} {linked:?}: {}", -1.0 / decay.ln());
        let found = sd_by_definition(&law, (owners as f64, yes as f64), decay);
        assert!(is_near(found, sd, 1e-9), "{asked:?} {linked:?}: {found} for {sd}");
        let plan = plan_contributions(&noisy(asked, (owners, yes), epsilon, linked)).unwrap();
        assert!(is_near(plan.best.sd, sd, 2e-5), "{}: {} for {sd}", plan.best.mechanism, plan.best.sd);
    }
}

/// Options, f, r, ε, and the scale by an independent program; zero if the coins are enough.
const SCALES: [(f64, f64, f64, f64, f64); 72] = [
    (3.0, 1.0, 0.01, 0.5, 3.885_076_708_941_258),
    (3.0, 1.0, 0.01, 1.0, 1.940_198_747_461_968_6),
    (3.0, 0.8, 0.02, 0.5, 2.963_195_683_165_131_4),
    (3.0, 0.8, 0.02, 1.0, 1.466_432_709_795_004_7),
    (4.0, 1.0, 0.001, 0.5, 3.985_365_850_868_805),
    (4.0, 1.0, 0.001, 1.0, 1.992_768_562_290_746_3),
    (4.0, 0.5, 0.01, 0.5, 1.853_429_501_150_178_5),
    (4.0, 0.5, 0.01, 1.0, 0.927_241_548_292_258_9),
    (5.0, 1.0, 0.05, 0.5, 3.105_644_292_081_201_3),
    (5.0, 1.0, 0.05, 1.0, 1.565_632_980_656_941),
    (6.0, 0.9, 0.001, 0.5, 3.575_336_980_427_887_4),
    (6.0, 0.9, 0.001, 1.0, 1.782_738_021_166_459_9),
    (3.0, 1.0, 0.3, 0.5, 0.0),
    (3.0, 1.0, 0.3, 1.0, 0.0),
    (3.0, 0.3, 0.001, 0.5, 1.223_750_089_964_194_7),
    (3.0, 0.3, 0.001, 1.0, 0.649_556_796_151_715_6),
    (5.0, 1.0, 0.004_433, 0.5, 3.921_144_872_597_073_7),
    (5.0, 1.0, 0.004_433, 1.0, 1.962_288_853_769_135_6),
    (3.0, 1.0, 0.002_396, 0.5, 3.972_477_314_326_435_6),
    (3.0, 1.0, 0.002_396, 1.0, 1.985_699_311_140_508_8),
    (3.0, 0.3274, 0.006_827, 0.5, 1.259_628_349_547_021),
    (3.0, 0.3274, 0.006_827, 1.0, 0.659_690_302_906_096_6),
    (4.0, 0.4065, 0.013_191, 0.5, 1.444_579_607_595_814),
    (4.0, 0.4065, 0.013_191, 1.0, 0.737_343_521_952_144_1),
    (4.0, 0.5705, 0.006_376, 0.5, 2.184_078_584_411_495),
    (4.0, 0.5705, 0.006_376, 1.0, 1.086_090_851_241_561_2),
    (3.0, 1.0, 0.003_153, 0.5, 3.963_780_047_822_288_7),
    (3.0, 1.0, 0.003_153, 1.0, 1.981_177_559_939_027),
    (4.0, 0.4788, 0.001_664, 0.5, 1.892_735_480_524_243_6),
    (4.0, 0.4788, 0.001_664, 1.0, 0.949_039_537_317_934_4),
    (3.0, 1.0, 0.133_972, 0.5, 2.440_883_370_201_985),
    (3.0, 1.0, 0.133_972, 1.0, 1.152_525_741_626_452_3),
    (3.0, 0.292, 0.002_371, 0.5, 1.178_989_882_590_856_5),
    (3.0, 0.292, 0.002_371, 1.0, 0.629_165_325_329_382_3),
    (4.0, 0.6998, 0.088_425, 0.5, 1.468_111_819_867_539_8),
    (4.0, 0.6998, 0.088_425, 1.0, 0.683_269_716_408_273),
    (4.0, 0.6668, 0.002_244, 0.5, 2.627_369_469_301_454),
    (4.0, 0.6668, 0.002_244, 1.0, 1.303_674_292_777_253),
    (5.0, 1.0, 0.155_824, 0.5, 1.076_027_097_223_164_3),
    (5.0, 1.0, 0.155_824, 1.0, 0.0),
    (4.0, 1.0, 0.019_448, 0.5, 3.714_963_601_201_983_8),
    (4.0, 1.0, 0.019_448, 1.0, 1.858_526_466_504_805),
    (3.0, 1.0, 0.093_144, 0.5, 2.922_019_141_012_638_6),
    (3.0, 1.0, 0.093_144, 1.0, 1.425_984_626_316_97),
    (5.0, 0.8488, 0.107_192, 0.5, 1.423_069_282_159_759_5),
    (5.0, 0.8488, 0.107_192, 1.0, 0.649_378_750_672_32),
    (5.0, 1.0, 0.002_228, 0.5, 3.960_376_178_419_611_6),
    (5.0, 1.0, 0.002_228, 1.0, 1.981_061_587_068_300_8),
    (4.0, 1.0, 0.002_476, 0.5, 3.963_761_734_450_334_6),
    (4.0, 1.0, 0.002_476, 1.0, 1.982_087_022_234_157_8),
    (3.0, 0.9671, 0.05035, 0.5, 3.286_433_154_684_972),
    (3.0, 0.9671, 0.05035, 1.0, 1.626_046_738_228_285_7),
    (3.0, 1.0, 0.004_484, 0.5, 3.948_486_065_651_943_4),
    (3.0, 1.0, 0.004_484, 1.0, 1.973_222_972_894_924_7),
    (5.0, 1.0, 0.094_199, 0.5, 2.299_345_011_652_962_3),
    (5.0, 1.0, 0.094_199, 1.0, 1.151_428_424_280_110_5),
    (4.0, 0.4563, 0.00116, 0.5, 1.812_454_550_228_954_6),
    (4.0, 0.4563, 0.00116, 1.0, 0.911_905_157_976_763_5),
    (3.0, 1.0, 0.030_791, 0.5, 3.645_643_333_618_742),
    (3.0, 1.0, 0.030_791, 1.0, 1.814_791_335_726_937_2),
    (5.0, 0.3121, 0.0004, 0.5, 1.272_763_294_737_728),
    (5.0, 0.3121, 0.0004, 1.0, 0.671_225_231_296_881_7),
    (5.0, 1.0, 0.102_228, 0.5, 2.149_834_292_472_969_6),
    (5.0, 1.0, 0.102_228, 1.0, 1.069_707_835_079_243_5),
    (12.0, 1.0, 0.000_334_229_292_099_365_7, 1.0, 1.994_202_007_572_975_4),
    (12.0, 1.0, 0.000_123_242_501_424_164_56, 1.0, 1.997_862_391_205_169_2),
    (12.0, 1.0, 6.143797116592669e-06, 1.0, 1.999_893_446_334_454_6),
    (12.0, 1.0, 0.0, 1.0, 2.0),
    (2221.0, 1.0, 0.000_192_272_270_318_567_53, 1.0, 1.442_521_018_312_234_8),
    (2221.0, 1.0, 9.687027704277061e-05, 1.0, 1.724_212_296_604_298_8),
    (2221.0, 1.0, 6.0615321371141744e-06, 1.0, 1.982_954_776_093_513_8),
    (2221.0, 1.0, 0.0, 1.0, 2.0),
];

#[test]
fn scales_of_choices_are_those_of_an_independent_program() {
    for (options, part, other, epsilon, scale) in SCALES {
        let law = unrounded(Asked::Options(options as u32), part, other);
        let found = -1.0 / needed_decay(&law, epsilon).ln();
        assert!(is_near(found, scale, 1e-9), "{options} {part} {other}: {found} for {scale}");
    }
}

/// Errors of 50 186 owners at ε = 1: what is asked, yes, linked ε, and the error that is possible.
#[test]
fn the_known_errors_are_reached() {
    let series = |most: u32| Asked::Counts { counts: 288, most };
    let known = [
        (Asked::Options(2221), 0, Some(12.0), 4.02),
        (Asked::Options(2221), 0, Some(9.0), 5.16),
        (Asked::Options(2221), 0, Some(8.0), 7.33),
        (Asked::Options(12), 0, Some(12.0), 4.00),
        (Asked::Options(12), 0, Some(9.0), 4.68),
        (Asked::Options(12), 0, Some(8.0), 5.71),
        (series(1), 100, Some(8.0), 6.70),
        (series(1), 100, Some(12.0), 4.02),
        (series(2), 100, Some(12.0), 24.1),
        (series(5), 100, None, 19.99),
    ];
    for (asked, yes, linked, sd) in known {
        let request = noisy(asked, (50_186, yes), 1.0, linked);
        let plan = plan_contributions(&request).unwrap();
        assert!(plan.best.sd <= 1.005 * sd, "{asked:?}: {} {}", plan.best.mechanism, plan.best.sd);
        assert!(plan.best.sd == crate::plan::least_sd(&request).unwrap());
        assert!(plan.epsilon().unwrap() <= 1.0);
        assert!(linked.is_none_or(|most| plan.best.views.linked.unwrap() <= most), "{:?}", plan.best.views.linked);
        assert!(
            plan.best.interval95_halfwidth > 1.5 * plan.best.sd && plan.best.interval95_halfwidth < 2.5 * plan.best.sd
        );
    }
}

/// Two options and a single count are planned as the yes/no question that they are.
#[test]
fn two_options_and_one_count_are_planned_as_a_yes_no_question() {
    let plain = noisy(Asked::YesNo, (5000, 50), 1.0, Some(8.0));
    let known = solve::solve(&plain, Unknown::Error, None, &Progress::default()).unwrap();
    for asked in [Asked::Options(2), Asked::Counts { counts: 1, most: 1 }] {
        let request = Request { asked, ..plain.clone() };
        let AnySolved::YesNo(solved) = solve_any(&request, Unknown::Error, None, &Progress::default()).unwrap() else {
            panic!("{asked:?} was planned as contributions");
        };
        assert_eq!(solved.plan.best.mechanism, known.plan.best.mechanism);
        assert_eq!(solved.plan.best.sd, known.plan.best.sd);
    }
}

#[test]
fn the_tradeoff_lists_every_bound_and_warns_of_poor_ones() {
    let request = noisy(Asked::Counts { counts: 288, most: 2 }, (50_186, 100), 1.0, Some(6.5));
    let AnySolved::Contributions(solved) = solve_any(&request, Unknown::Error, None, &Progress::default()).unwrap()
    else {
        panic!("several counts");
    };
    let tradeoff = &solved.plan.tradeoff;
    assert_eq!(tradeoff[0].linked, None);
    assert!(tradeoff.windows(2).all(|pair| pair[0].sd <= pair[1].sd), "{tradeoff:?}");
    assert!(tradeoff.iter().any(|one| one.linked == Some(6.5) && one.sd == solved.plan.best.sd));
    // 3·e^(9/2) = 270 is below the 288 counts, and 3·e^5 = 445 is not.
    assert!(solved.tradeoff_words().unwrap().starts_with("With a linked ε of 9 or less"));
    assert!(!request.asked.is_poor_at(10.0) && !Asked::Options(2221).is_poor_at(2.0));
}

#[test]
fn epsilon_and_owners_are_solved_for() {
    let request = noisy(Asked::Options(12), (50_186, 100), 1.0, Some(9.0));
    let solved = |unknown, error| match solve_any(&request, unknown, Some(error), &Progress::default())? {
        AnySolved::Contributions(solved) => Ok(solved),
        AnySolved::YesNo(_) => panic!("several counts"),
    };
    let by_epsilon = solved(Unknown::Epsilon, 4.0).unwrap();
    assert!(by_epsilon.plan.best.sd <= 4.0 && by_epsilon.value() > 1.0);
    assert_eq!(by_epsilon.request.release_epsilon(), Some(by_epsilon.value()));
    let by_owners = solved(Unknown::Owners, 4.1).unwrap();
    assert_eq!((by_owners.value(), by_owners.plan.owners), (100.0, 100));
    for (unknown, error) in [(Unknown::Error, 3.0), (Unknown::Epsilon, 0.01), (Unknown::Owners, 3.0)] {
        let refused: Error = solved(unknown, error).unwrap_err();
        assert_eq!(refused.field(), Some("error"));
        assert!(refused.hint().is_some() && refused.to_string().contains("cannot be attained"), "{refused}");
    }
}

#[test]
fn requests_that_cannot_be_planned_are_refused_by_their_field() {
    let usual = noisy(Asked::Options(12), (500, 20), 1.0, Some(8.0));
    let series = |most: u32| Asked::Counts { counts: 288, most };
    let plain = Request { noise: Noise::None, trust: Trust::Owners, ..usual.clone() };
    let refused = |request: Request| plan_contributions(&request).unwrap_err().field();
    assert_eq!(refused(Request { asked: Asked::Options(1), ..usual.clone() }), Some("options"));
    assert_eq!(refused(Request { asked: series(0), ..usual.clone() }), Some("most_yes"));
    assert_eq!(refused(Request { asked: series(289), ..usual.clone() }), Some("most_yes"));
    assert_eq!(refused(Request { asked: series(2), ..plain }), Some("noise"));
    assert_eq!(refused(Request { yes: Prior::at(501), ..usual.clone() }), Some("yes"));
    assert_eq!(refused(Request { linked_epsilon: Some(-1.0), ..usual.clone() }), Some("linked_epsilon"));
    assert_eq!(refused(Request { release: None, ..usual.clone() }), Some("epsilon"));
    assert_eq!(refused(Request { form: crate::plan::Form::Several, ..usual.clone() }), Some("trust"));
    assert_eq!(refused(Request { family: Some("normal-form".to_owned()), ..usual.clone() }), Some("family"));
    assert_eq!(refused(Request { asked: series(1), participation: Some(0.5), ..usual.clone() }), Some("participation"));
    assert_eq!(refused(Request { asked: Asked::YesNo, ..usual }), Some("asked"));
}

/// A number between the ends, by the logarithm.
fn between(coins: &mut SeededCoins, low: f64, high: f64) -> f64 {
    use crate::Coins;
    let mut bytes = [0; 4];
    coins.fill(&mut bytes).unwrap();
    low * (high / low).powf(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

/// Random plans keep their claims by the exact functions, and fewer taking part would not be better by more than 3 %.
#[test]
fn random_plans_keep_their_claims_and_are_nearly_the_best_of_their_family() {
    let mut coins = SeededCoins::new(1);
    for round in 0..60 {
        let mut draw = |low: f64, high: f64| between(&mut coins, low, high);
        let counts = draw(3.0, 5000.0) as u32;
        let asked = match round % 3 {
            0 => Asked::Counts { counts, most: draw(1.0, f64::from(counts)) as u32 },
            _ => Asked::Options(counts),
        };
        let owners = draw(50.0, 1e6);
        let yes = owners * draw(1e-4, 0.5);
        let (epsilon, linked) = (draw(0.05, 4.0), draw(0.5, 14.0) * f64::from(asked.most()));
        let linked = Some(linked).filter(|_| round % 7 > 0);
        let Ok(plan) = plan_contributions(&noisy(asked, (owners as u64, yes as u64), epsilon, linked)) else {
            panic!("no plan for {asked:?} at {epsilon}, {linked:?}");
        };
        let best = &plan.best.mechanism;
        assert!(one_aggregator(best).unwrap().upper() <= epsilon, "{best}");
        assert!(linked.is_none_or(|most| linked_epsilon(best).unwrap() <= most), "{best}");
        // A count of next to nobody, and coins that leave a poor estimate anyway, are the exceptions.
        let is_usual = yes >= 5.0 && linked.is_none_or(|linked| f64::from(counts) <= 3.0 * linked.exp());
        if matches!(asked, Asked::Options(_)) && is_usual {
            for part in [0.999, 0.97, 0.9, 0.7, 0.4, 0.1] {
                let law = unrounded(asked, part, least_other(asked, part, linked.unwrap_or(f64::INFINITY)));
                let silent = sd_by_definition(&law, (owners.floor(), yes.floor()), needed_decay(&law, epsilon));
                assert!(plan.best.sd <= 1.03 * silent, "{best}: {} for {silent} at {part}", plan.best.sd);
            }
        }
    }
}

/// A scale that is smaller in its last digit breaks the claim, so the scale is the least of few digits.
#[test]
fn scales_are_the_least_of_their_digits() {
    for (asked, linked) in [(Asked::Options(12), 8.0), (Asked::Counts { counts: 288, most: 2 }, 12.0)] {
        let best = plan_contributions(&noisy(asked, (50_186, 0), 1.0, Some(linked))).unwrap().best.mechanism;
        let scale = best.noise().unwrap().scale();
        let smaller = Scale::new((scale.to_f64() * 1e5).round() as u64 - 1, 100_000).unwrap();
        let broken = best.with_noise(Some(NoiseLaw::laplace(smaller)));
        assert!(one_aggregator(&broken).unwrap().upper() > 1.0, "{broken}");
    }
}

/// Options by window, hundreds of thousands of them, are planned like a few.
#[test]
fn many_counts_are_planned_by_the_same_closed_forms() {
    let asked = Asked::Counts { counts: 640_000, most: 1 };
    let plan = plan_contributions(&noisy(asked, (50_186, 100), 1.0, Some(12.0))).unwrap();
    assert!(plan.epsilon().unwrap() <= 1.0 && plan.best.views.linked.unwrap() <= 12.0, "{}", plan.best.mechanism);
    assert_eq!(plan.tradeoff.len(), 12);
}

/// Owners who may seldom take part answer a choice less often.
#[test]
fn participation_in_a_choice_is_kept() {
    let request = Request { participation: Some(0.4), ..noisy(Asked::Options(12), (50_186, 100), 1.0, Some(8.0)) };
    let best = plan_contributions(&request).unwrap().best;
    assert_eq!(best.mechanism.part(), &Fraction::new(2, 5).unwrap());
    assert!(one_aggregator(&best.mechanism).unwrap().upper() <= 1.0 && best.views.linked.unwrap() <= 8.0);
}

fn by_coins(asked: Asked, (owners, yes): (u64, u64)) -> Request {
    let release = Some((Epsilon::new(1.0).unwrap(), Delta::new(1e-8).unwrap()));
    Request { asked, release, ..Request::new(owners, Prior::at(yes)) }
}

/// Errors by owners' coins alone at (1, 1e-8), found by an independent program.
#[test]
fn the_known_errors_of_owners_alone_are_reached() {
    for (options, yes, sd) in [(12, 0, 6.23), (12, 4182, 10.6), (2221, 22, 8.51)] {
        let plan = plan_contributions(&by_coins(Asked::Options(options), (50_186, yes))).unwrap();
        assert!(plan.best.sd <= 1.005 * sd, "{}: {}", plan.best.mechanism, plan.best.sd);
        assert!(plan.epsilon().unwrap() <= 1.0 && plan.best.mechanism.noise().is_none());
    }
}

/// Bounds on the linked ε and on taking part hold without noise as well, and contributions are a choice with one more option.
#[test]
fn owners_alone_keep_the_other_bounds() {
    let choice = by_coins(Asked::Options(12), (5000, 100));
    let free = plan_contributions(&choice).unwrap().best;
    let linked = plan_contributions(&Request { linked_epsilon: Some(3.0), ..choice.clone() }).unwrap().best;
    assert!(linked.views.linked.unwrap() <= 3.0 && linked.sd > free.sd);
    let local = Request { release: None, linked_epsilon: Some(3.0), ..choice.clone() };
    assert!(plan_contributions(&local).unwrap().best.sd <= linked.sd * (1.0 + 1e-6));
    let seldom = plan_contributions(&Request { participation: Some(0.25), ..choice.clone() }).unwrap().best;
    assert!(seldom.mechanism.part().to_f64() <= 0.25 && seldom.views.release.value().unwrap().upper() <= 1.0);
    let counts = Asked::Counts { counts: 11, most: 1 };
    let all = plan_contributions(&Request { asked: counts, ..choice }).unwrap().best;
    assert!(all.views.release.value().unwrap().upper() <= 1.0 && all.sd >= free.sd * (1.0 - 1e-3), "{}", all.mechanism);
}

/// Where either is allowed, the better one is planned and the other one is shown.
#[test]
fn noise_and_coins_compete() {
    let request = Request { noise: Noise::Any, linked_epsilon: Some(8.0), ..by_coins(Asked::Options(12), (5000, 100)) };
    let request = Request { linked_epsilon_for_noise_only: true, ..request };
    let plan = plan_contributions(&request).unwrap();
    assert!(plan.best.mechanism.noise().is_some() && plan.epsilon().unwrap() <= 1.0);
    let [coins] = &plan.alternatives[..] else { panic!("{:?}", plan.alternatives) };
    assert!(coins.mechanism.noise().is_none() && coins.sd > plan.best.sd);
}
