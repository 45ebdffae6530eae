//! `vectors/one_aggregator.json`: cards for other people's programs, checked by the library and by the ten lines of
//! `docs/accounting.md`, "One honest aggregator".

use serde::Deserialize;
use uptack::privacy::one_aggregator;
use uptack::{Cell, Channel, Mechanism, NoiseLaw, Output, Probability, Scale};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    mechanism: String,
    yes: String,
    no: String,
    scale: Scale,
    claim: String,
    valid: bool,
}

fn rows() -> Vec<Row> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/one_aggregator.json");
    let text = std::fs::read_to_string(path).expect("the vectors are part of the repository");
    serde_json::from_str(&text).expect("rows of this form")
}

fn probability(numerator: &str) -> Probability {
    Probability::from_numerator(numerator.parse().expect("an integer")).expect("at most one")
}

/// The channel that writes `1` with these probabilities and nothing else that counts.
fn bit(row: &Row) -> Channel {
    let (yes, no) = (probability(&row.yes), probability(&row.no));
    let one = Cell::new(vec![Output::ONE], yes, no);
    let zero = Cell::new(vec![Output::ZERO], yes.complement(), no.complement());
    let channel = Channel::from_cells(vec![one, zero]).expect("laws that sum to one");
    channel.with_noise(NoiseLaw::laplace(row.scale)).expect("an answer 1")
}

/// The ten lines.
fn holds(row: &Row) -> bool {
    let number = |text: &str| text.parse::<u128>().expect("an integer");
    let one = 1_u128 << 64;
    let (p, q) = (number(&row.yes).max(number(&row.no)), number(&row.yes).min(number(&row.no)));
    let share = |numerator: u128| numerator as f64 / one as f64;
    let scale = row.scale.numerator() as f64 / row.scale.denominator() as f64;
    let (a, d) = ((-1.0 / scale).exp(), share(p - q) * -(-1.0 / scale).exp_m1());
    let raised = (d / (share(q) + share(one - q) * a)).ln_1p();
    let lowered = (d / (share(one - p) + share(p) * a)).ln_1p();
    raised.max(lowered) <= row.claim.parse::<f64>().expect("a decimal") + 5e-14
}

#[test]
fn the_library_and_the_ten_lines_tell_valid_claims_from_falsified_ones() {
    let rows = rows();
    let valid = rows.iter().filter(|row| row.valid).count();
    assert!(rows.len() >= 50 && valid >= 20 && rows.len() - valid >= 20, "{valid} of {} are valid", rows.len());
    for row in &rows {
        let channel = bit(row);
        let (found, claim) =
            (one_aggregator(&channel).expect("noise").upper(), row.claim.parse::<f64>().expect("a decimal"));
        let name = format!("{} + laplace(scale={})", row.mechanism, row.scale);
        assert_eq!(claim >= found, row.valid, "{name}: {claim} is claimed, {found} is true");
        assert_eq!(holds(row), row.valid, "{name}: the ten lines");
        let off = ((claim - found) * 1e12).round();
        assert_eq!(off, if row.valid { 0.0 } else { -1.0 }, "{name}: falsified in the last digit only");
        let named = name.parse::<Mechanism>().expect("a mechanism").channel();
        assert_eq!(named.summed_bit(), channel.summed_bit(), "{name}: the integers are those of the mechanism");
    }
}
