//! Claims about contributions: by brute force, against an independent program's values, and `vectors/contributions.json`.

use serde::Deserialize;
use uptack::Probability;
use uptack::contribution::Contributions;
use uptack::privacy::contributions::{linked_epsilon, one_aggregator};

fn read(text: &str) -> Contributions {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The sets of at most `most` of `counts` counts, as bits.
fn sets(counts: usize, most: u32) -> Vec<usize> {
    (0..1 << counts).filter(|set: &usize| set.count_ones() <= most).collect()
}

/// The law of the bits that one owner reports, by enumeration of where each contribution goes.
fn report_law(contributions: &Contributions, truth: usize) -> Vec<f64> {
    let (counts, law) = (contributions.counts(), contributions.law());
    let mut truths = (0..counts).filter(|count| truth >> count & 1 == 1);
    let mut reports = vec![0.0; 1 << counts];
    reports[0] = 1.0;
    for _ in 0..contributions.most() {
        let told = truths.next().unwrap_or(counts);
        let mut next = vec![0.0; 1 << counts];
        for (report, probability) in reports.iter().enumerate() {
            // The last possibility is *none*.
            for possibility in 0..=counts {
                let law = if possibility == told { law.told() } else { law.other() };
                let bit = if possibility < counts { 1 << possibility } else { 0 };
                next[report | bit] += probability * law.to_f64();
            }
        }
        reports = next;
    }
    reports
}

/// The density of all noisy counts relative to the noise, where the counts of `raised` are at least 1 and the others at most 0.
fn density(reports: &[f64], raised: usize, decay: f64) -> f64 {
    let factor =
        |report: usize| decay.powi((report & !raised).count_ones() as i32 - (report & raised).count_ones() as i32);
    reports.iter().enumerate().map(|(report, probability)| probability * factor(report)).sum()
}

/// The largest ratio over all pairs of truths and all patterns of the noisy counts.
fn worst_epsilon(contributions: &Contributions, scale: f64) -> f64 {
    let (counts, decay) = (contributions.counts(), (-1.0 / scale).exp());
    let laws: Vec<Vec<f64>> =
        sets(counts, contributions.most()).into_iter().map(|truth| report_law(contributions, truth)).collect();
    let ratio = |raised: usize| {
        let densities = laws.iter().map(|law| density(law, raised, decay));
        let (least, most) =
            densities.fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
        (most / least).ln()
    };
    (0..1 << counts).map(ratio).fold(0.0, f64::max)
}

#[test]
fn no_truths_and_no_pattern_exceed_the_claim_of_one_honest_aggregator() {
    for counts in 1..=4 {
        for most in 1..=counts.min(3) {
            for (other, scale) in [(0.0, 2.0), (0.001, 0.4), (0.01, 1.0), (0.05, 3.0), (0.15, 0.7), (0.19, 11.0)] {
                let contributions =
                    read(&format!("contributions(counts={counts},most={most},r={other}) + laplace(scale={scale})"));
                let claim = one_aggregator(&contributions).expect("noise");
                let worst = worst_epsilon(&contributions, scale);
                assert!(worst <= claim.upper() + 1e-12, "{contributions}: {worst} is above {}", claim.upper());
                assert!(worst >= claim.lower() - 1e-12, "{contributions}: {worst} is below {}", claim.lower());
                if most == 1 {
                    assert!(worst > claim.upper() - 1.1e-12, "{contributions}: {worst} is not {}", claim.upper());
                }
            }
        }
    }
}

/// The ratio of the probabilities of one report is what whoever sees all reports of an owner learns.
#[test]
fn no_report_exceeds_the_linked_claim() {
    for (counts, most) in [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2), (4, 3)] {
        for other in [0.001, 0.02, 0.15] {
            let contributions = read(&format!("contributions(counts={counts},most={most},r={other})"));
            let claim = linked_epsilon(&contributions).expect("every possibility can occur");
            let laws: Vec<Vec<f64>> =
                sets(counts, most).into_iter().map(|truth| report_law(&contributions, truth)).collect();
            let of_report = |report: usize| {
                let (least, most) = laws
                    .iter()
                    .map(|law| law[report])
                    .fold((1.0_f64, 0.0_f64), |(least, most), one| (least.min(one), most.max(one)));
                if most > 0.0 { (most / least).ln() } else { 0.0 }
            };
            let worst = (0..1 << counts).map(of_report).fold(0.0, f64::max);
            assert!(worst <= claim + 1e-12, "{contributions}: {worst} is above {claim}");
            assert!(most > 1 || worst > claim - 1e-12, "{contributions}: {worst} is not {claim}");
        }
    }
}

/// The probabilities of one count follow from the enumerated reports.
#[test]
fn the_law_of_one_count_is_that_of_the_reports() {
    for text in ["contributions(counts=4,most=3,r=0.05)", "contributions(counts=3,most=2,r=0.2)"] {
        let contributions = read(text);
        let first = |truth: usize| {
            let reports = report_law(&contributions, truth);
            reports
                .iter()
                .enumerate()
                .filter(|(report, _)| report & 1 == 1)
                .map(|(_, probability)| probability)
                .sum::<f64>()
        };
        let law = contributions.count_law();
        for (truth, expected) in [(0b001, law.yes), (0b011, law.yes), (0b000, law.no), (0b110, law.no)] {
            assert!((first(truth) - expected.to_f64()).abs() < 1e-14, "{text}");
        }
    }
}

#[test]
fn claims_agree_with_an_independent_program() {
    for (text, linked, epsilon) in REFERENCE {
        let contributions = read(text);
        let found = one_aggregator(&contributions).expect("noise").upper();
        // Claims are rounded up to twelve decimal places.
        let rounded = 1.01e-12;
        assert!((-1e-12..rounded).contains(&(found - epsilon)), "{text}: {found} for {epsilon}");
        match linked_epsilon(&contributions) {
            Some(found) => assert!((found - linked).abs() < 1e-12 * linked.max(1.0), "{text}: {found} for {linked}"),
            None => assert!(linked.is_infinite(), "{text}"),
        }
    }
}

#[test]
fn laws_of_counts_agree_with_an_independent_program() {
    for (text, yes, no) in REFERENCE_LAWS {
        let law = read(text).count_law();
        assert!((law.yes.to_f64() / yes - 1.0).abs() < 1e-9, "{text}");
        assert!((law.no.to_f64() / no - 1.0).abs() < 1e-9, "{text}");
    }
}

/// The mechanism, its linked ε, and its ε if one aggregator is honest, computed in another language from the formulas.
const REFERENCE: [(&str, f64, f64); 55] = [
    ("choice(k=3,f=1,r=0.01) + laplace(scale=2)", 4.584967478670572, 0.9702401303074538),
    ("choice(k=3,f=0.8,r=0.02) + laplace(scale=1.5)", 3.6375861597263857, 0.978300997742153),
    ("choice(k=4,f=1,r=0.001) + laplace(scale=2)", 6.904750769961838, 0.996385030682115),
    ("choice(k=4,f=0.5,r=0.01) + laplace(scale=1)", 3.8501476017100584, 0.9275464823615337),
    ("choice(k=5,f=1,r=0.05) + laplace(scale=3)", 2.772588722239781, 0.5179850902831072),
    ("choice(k=6,f=0.9,r=0.001) + laplace(scale=2.5)", 6.796823718274855, 0.7144463589760137),
    ("choice(k=3,f=1,r=0.3) + laplace(scale=0.5)", 0.287682072451781, 0.2729364096050232),
    ("choice(k=3,f=0.3,r=0.001) + laplace(scale=4)", 5.697093486505405, 0.1489628975121943),
    ("choice(k=5,f=1,r=0.004433) + laplace(scale=3.324)", 5.400787627781353, 0.5899841584548321),
    ("choice(k=3,f=1,r=0.002396) + laplace(scale=2.271)", 6.0291510802846116, 0.8744810060350217),
    ("choice(k=3,f=0.3274,r=0.006827) + laplace(scale=3.071)", 3.827698402924597, 0.2010522124295107),
    ("choice(k=4,f=0.4065,r=0.013191) + laplace(scale=3.534)", 3.3256281393208096, 0.20178099997149457),
    ("choice(k=4,f=0.5705,r=0.006376) + laplace(scale=1.349)", 4.459868775979291, 0.8074607682792623),
    ("choice(k=3,f=1,r=0.003153) + laplace(scale=1.566)", 5.753074931616515, 1.2644594236211621),
    ("choice(k=4,f=0.4788,r=0.001664) + laplace(scale=0.941)", 5.651577833944625, 1.0085939670424746),
    ("choice(k=3,f=1,r=0.133972) + laplace(scale=1.41)", 1.6982261908745209, 0.8411925706122981),
    ("choice(k=3,f=0.292,r=0.002371) + laplace(scale=3.596)", 4.797068959562397, 0.15913321833671523),
    ("choice(k=4,f=0.6998,r=0.088425) + laplace(scale=4.643)", 1.5920987453579991, 0.15393710461544777),
    ("choice(k=4,f=0.6668,r=0.002244) + laplace(scale=2.267)", 5.684082872355795, 0.5790126484949916),
    ("choice(k=5,f=1,r=0.155824) + laplace(scale=3.07)", 0.8827325679521096, 0.16335257872254372),
    ("choice(k=4,f=1,r=0.019448) + laplace(scale=2.408)", 3.879895790400825, 0.7722273831350155),
    ("choice(k=3,f=1,r=0.093144) + laplace(scale=1.75)", 2.1674598123090743, 0.8257467280279951),
    ("choice(k=5,f=0.8488,r=0.107192) + laplace(scale=2.84)", 1.3657092798649506, 0.24102314905604494),
    ("choice(k=5,f=1,r=0.002228) + laplace(scale=2.494)", 6.09769900751527, 0.7942609090270153),
    ("choice(k=4,f=1,r=0.002476) + laplace(scale=1.584)", 5.993655199188406, 1.2510291951021342),
    ("choice(k=3,f=0.9671,r=0.05035) + laplace(scale=4.023)", 2.8453480765222094, 0.4084642143173299),
    ("choice(k=3,f=1,r=0.004484) + laplace(scale=4.658)", 5.3982313192142835, 0.4238315395286432),
    ("choice(k=5,f=1,r=0.094199) + laplace(scale=4.424)", 1.8894643472064598, 0.25225083998416237),
    ("choice(k=4,f=0.4563,r=0.00116) + laplace(scale=1.503)", 5.967074690406559, 0.6036089955301496),
    ("choice(k=3,f=1,r=0.030791) + laplace(scale=4.476)", 3.4169730392546738, 0.4071895694427269),
    ("choice(k=5,f=0.3121,r=0.0004) + laplace(scale=1.267)", 6.6544746332476885, 0.5023834418492783),
    ("choice(k=5,f=1,r=0.102228) + laplace(scale=1.764)", 1.7547592936420695, 0.613896948950813),
    ("choice(k=12,f=1,r=0.0003342292920993657) + laplace(scale=1.9942020075729754)", 8.0, 1.0),
    ("choice(k=12,f=1,r=0.00012324250142416456) + laplace(scale=1.9978623912051692)", 9.0, 0.9999999999999998),
    ("choice(k=12,f=1,r=6.143797116592669e-06) + laplace(scale=1.9998934463344546)", 12.0, 1.0),
    ("choice(k=12,f=1,r=0) + laplace(scale=2)", f64::INFINITY, 1.0),
    ("choice(k=2221,f=1,r=0.00019227227031856753) + laplace(scale=1.4425210183122348)", 8.0, 0.9999999999999997),
    ("choice(k=2221,f=1,r=9.687027704277061e-05) + laplace(scale=1.7242122966042988)", 9.0, 1.0),
    ("choice(k=2221,f=1,r=6.0615321371141744e-06) + laplace(scale=1.9829547760935138)", 12.0, 1.0),
    ("choice(k=2221,f=1,r=0) + laplace(scale=2)", f64::INFINITY, 1.0),
    ("contributions(counts=1,most=1,r=0.0003353501304664781) + laplace(scale=1)", 8.0, 0.999211935735949),
    ("contributions(counts=2,most=1,r=0.006648354478866004) + laplace(scale=2)", 5.0, 0.9775440246595963),
    ("contributions(counts=3,most=1,r=0.09625513525746872) + laplace(scale=0.7)", 2.0, 1.503692392516604),
    ("contributions(counts=12,most=1,r=0.0003341176202036871) + laplace(scale=2)", 8.0, 0.9967517435958329),
    ("contributions(counts=12,most=2,r=0.002407151395531489) + laplace(scale=4)", 12.0, 0.9734916954581682),
    ("contributions(counts=12,most=3,r=0.031166690537047462) + laplace(scale=6)", 9.0, 0.623886094102917),
    ("contributions(counts=288,most=1,r=0.00030590787766745164) + laplace(scale=2)", 8.0, 0.9420519141261146),
    ("contributions(counts=288,most=1,r=6.133359170906848e-06) + laplace(scale=2)", 12.0, 0.9988697414925056),
    ("contributions(counts=288,most=2,r=0.0014462805272377002) + laplace(scale=4)", 12.0, 0.6399063578079034),
    ("contributions(counts=288,most=2,r=0.00030590787766745164) + laplace(scale=4.5)", 16.0, 0.8242491219507638),
    ("contributions(counts=640,most=1,r=4.411803803260398e-05) + laplace(scale=2.5)", 10.0, 0.7842634976025353),
    ("contributions(counts=2221,most=1,r=6.061495395165038e-06) + laplace(scale=2)", 12.0, 0.9914407205433415),
    ("contributions(counts=24,most=4,r=0.012722945763714638) + laplace(scale=9)", 16.0, 0.6242842614974949),
    ("contributions(counts=100,most=1,r=0.0019863782384438263) + laplace(scale=1.5)", 6.0, 1.168361032830339),
    ("contributions(counts=7,most=7,r=0.06949726188601883) + laplace(scale=10)", 14.0, 0.6424750242771138),
];

/// Several contributions, and the two probabilities of one count.
const REFERENCE_LAWS: [(&str, f64, f64); 6] = [
    ("contributions(counts=12,most=2,r=0.002407151395531489)", 0.9711837157877142, 0.004808508413222001),
    ("contributions(counts=12,most=3,r=0.031166690537047462)", 0.6489491260419209, 0.09061625797156947),
    ("contributions(counts=288,most=2,r=0.0014462805272377002)", 0.5840736256362209, 0.0028904693271120108),
    ("contributions(counts=288,most=2,r=0.00030590787766745164)", 0.9119254821651042, 0.0006117221757053759),
    ("contributions(counts=24,most=4,r=0.012722945763714638)", 0.706156527243269, 0.04992875478179404),
    ("contributions(counts=7,most=7,r=0.06949726188601883)", 0.6842294185453048, 0.39601856721587647),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    mechanism: String,
    told: String,
    other: String,
    silent: String,
    linked: Option<String>,
    one_aggregator: String,
    valid: bool,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/contributions.json");
    let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
    serde_json::from_str(&text).expect("rows of this form")
}

/// The ten lines of `docs/contributions.md`.
fn holds(row: &Row, contributions: &Contributions) -> bool {
    let share = |text: &str| text.parse::<u128>().expect("an integer") as f64 / 2f64.powi(64);
    let (g, r, s) = (share(&row.told), share(&row.other), share(&row.silent));
    let scale = contributions.noise().expect("noise").scale();
    let (c, t) = (contributions.counts() as f64, scale.numerator() as f64 / scale.denominator() as f64);
    let (a, gap) = ((-1.0 / t).exp(), -(-1.0 / t).exp_m1());
    let u = if contributions.has_uncounted() { r + s } else { s };
    let count_to_count = (g - r) * gap * (1.0 + a) / (r + u * a + (g + (c - 2.0) * r) * a * a);
    let count_to_none = (g - r) * gap / (r + (g + s) * a + (c - 1.0) * r * a * a);
    let none_to_count = (g - r) * gap / (r + s + (g + (c - 1.0) * r) * a);
    let apart = if c > 1.0 { count_to_count } else { 0.0 };
    let lone = if contributions.has_uncounted() { count_to_none.max(none_to_count) } else { 0.0 };
    let units = (f64::from(contributions.most()) * apart.max(lone).ln_1p() * 1e12 - 0.1).ceil();
    units / 1e12 <= row.one_aggregator.parse::<f64>().expect("a decimal") + 5e-14
}

#[test]
fn the_library_and_the_ten_lines_tell_valid_contributions_from_falsified_ones() {
    let rows = rows();
    let valid = rows.iter().filter(|row| row.valid).count();
    assert!(rows.len() >= 60 && valid >= 25 && rows.len() - valid >= 25, "{valid} of {} are valid", rows.len());
    for row in &rows {
        let (name, contributions) = (&row.mechanism, read(&row.mechanism));
        let law = contributions.law();
        let digits = |probability: Probability| probability.numerator().to_string();
        assert_eq!(
            [&row.told, &row.other, &row.silent],
            [law.told(), law.other(), law.silent()].map(digits).each_ref()
        );
        assert_eq!(row.linked, linked_epsilon(&contributions).map(|epsilon| epsilon.to_string()), "{name}");
        let claim: f64 = row.one_aggregator.parse().expect("a decimal");
        let found = one_aggregator(&contributions).expect("noise").upper();
        assert_eq!(claim >= found, row.valid, "{name}: {claim} is claimed, {found} is true");
        assert_eq!(holds(row, &contributions), row.valid, "{name}: the ten lines");
        assert_eq!(((claim - found) * 1e12).round(), if row.valid { 0.0 } else { -1.0 }, "{name}: the last digit only");
    }
}
