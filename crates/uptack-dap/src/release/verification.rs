//! Lets anyone check what a desk hands out: a card, a signed card or a release record.
//!
//! Everything that follows from something else in the document is computed again and compared: the query's name and
//! signature, the mechanism's integers, every claim, the tallies, the estimates. The rest, such as the question and
//! the sums themselves, readers have to take on the desk's word ([`Document::not_checked`]); SECURITY.md says who stands behind
//! the sums.

use serde::Deserialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use uptack::{
    NoiseLaw, Output, Progress, Tally,
    card::{Card, CardQuestion, Check, NotChecked, Timestamp},
    estimate::{Confidence, IntervalKind},
    privacy::WorkLimit,
};

use crate::{
    address,
    error::{Error, Result},
    release::{
        plausible,
        record::{self, QuestionTally, Record, Released},
        results::{Estimated, Results},
    },
    signed::{PublicKey, SignedCard, query_name},
};

/// The most questions on a ballot that are verified, so that a hostile record cannot keep its reader busy.
const MOST_QUESTIONS: usize = 4096;

/// What can be verified.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// A card by itself, as a planner writes it.
    Card(Box<Card>),
    /// A card under its name and signature.
    Signed(Box<SignedCard>),
    /// A release record.
    Record(Box<Record>),
}

/// How a document is verified.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verifier<'a> {
    /// The key that must have signed the card; if `None`, the key that the card names.
    pub desk_key: Option<&'a PublicKey>,
    /// How much work each claim may take. A claim that needs more cannot be confirmed.
    pub limit: WorkLimit,
}

/// The fields by which the kinds of document are told apart.
#[derive(Deserialize)]
struct Fields {
    counts: Option<serde::de::IgnoredAny>,
    sums: Option<serde::de::IgnoredAny>,
    signature: Option<serde::de::IgnoredAny>,
}

impl Document {
    /// Parses a card, a signed card or a record.
    pub fn from_json(text: &str) -> Result<Self> {
        let fields: Fields = serde_json::from_str(text)
            .map_err(|error| Error::input(format!("not a card or release record in JSON: {error}")))?;
        Ok(match (fields.counts.or(fields.sums), fields.signature) {
            (Some(_), _) => Self::Record(Box::new(Record::parse(text)?)),
            (None, Some(_)) => Self::Signed(Box::new(parse_signed(text)?)),
            (None, None) => Self::Card(Box::new(Card::from_json(text)?)),
        })
    }

    /// The kind of document, in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Card(_) => "card",
            Self::Signed(_) => "signed card",
            Self::Record(_) => "release record",
        }
    }

    /// What [`Verifier::verify`] cannot check, or not completely: nobody should take it for checked.
    pub fn not_checked(&self, desk_key: Option<&PublicKey>) -> Vec<NotChecked> {
        let whose = desk_key.is_none().then(|| NotChecked::new("signature", WHOSE_KEY));
        match self {
            Self::Card(card) => card.not_checked(),
            Self::Signed(_) => whose.into_iter().collect(),
            Self::Record(record) => {
                let released = if record.sums().is_some() { "sums" } else { "counts" };
                let reported = ["reports", released].map(|what| NotChecked::new(what, REPORTED));
                let collected = NotChecked::new("collected", COLLECTED);
                let chosen =
                    record.results.iter().flat_map(|_| CHOSEN_RESULTS.map(|what| NotChecked::new(what, CHOSEN)));
                whose.into_iter().chain(reported).chain([collected]).chain(chosen).collect()
            }
        }
    }

    /// The card that it is or holds.
    pub fn card(&self) -> Result<Card> {
        match self {
            Self::Card(card) => Ok(card.as_ref().clone()),
            Self::Signed(signed) => Ok(Card::from_json(&signed.card)?),
            Self::Record(record) => Ok(Card::from_json(&record.card)?),
        }
    }
}

const WHOSE_KEY: &str = "it was checked under the key that the card names; give the desk's key to check whose it is";
const REPORTED: &str =
    "only that it fits the rest: nobody but the aggregators knows the reports, and no signature covers it";
const COLLECTED: &str = "only that it lies within a year after the window, and no signature covers it";
/// Choices of whoever was shown the estimates.
const CHOSEN_RESULTS: [&str; 2] = ["results.confidence", "results.interval"];
const CHOSEN: &str = "whoever estimates chooses it; the estimates were computed from it";
/// A record is collected within this many seconds after its window: a year.
const LATEST_COLLECTION: u64 = 366 * 24 * 3600;

fn parse_signed(text: &str) -> Result<SignedCard> {
    serde_json::from_str(text).map_err(|error| Error::input(format!("not a signed card: {error}")))
}

impl Verifier<'_> {
    /// Computes again everything that can be computed, and compares. An error means that the document cannot be read at all.
    ///
    /// `progress` counts elementary steps, of [`Verifier::work`] at most.
    pub fn verify(&self, document: &Document, progress: &Arc<Progress>) -> Result<Vec<Check>> {
        match document {
            Document::Card(card) => {
                let unsigned = || Check::rule("signature", signer(card), "the card is not signed", false);
                let mut checks: Vec<Check> = self.desk_key.map(|_| unsigned()).into_iter().collect();
                checks.extend(self.verify_card(card, progress));
                Ok(checks)
            }
            Document::Signed(signed) => self.verify_signed(signed, progress),
            Document::Record(record) => self.verify_record(record, progress),
        }
    }

    /// The most elementary steps that a verification can take, as far as that is known beforehand.
    pub fn work(&self, document: &Document) -> u64 {
        document.card().map_or(0, |card| card.work(self.limit))
    }

    fn verify_signed(&self, signed: &SignedCard, progress: &Arc<Progress>) -> Result<Vec<Check>> {
        let card = Card::from_json(&signed.card)?;
        let mut checks = vec![
            Check::equal("query", &signed.query, query_name(&signed.card)),
            canonical_form(signed, &card),
            self.signature(signed, &card),
        ];
        checks.extend(self.verify_card(&card, progress).into_iter().map(|check| check.within("card")));
        Ok(checks)
    }

    /// Everything that follows from something else on a card, and the form of what does not.
    fn verify_card(&self, card: &Card, progress: &Arc<Progress>) -> Vec<Check> {
        let mut checks = card.recompute(self.limit, progress);
        checks.extend(key_check(card));
        checks.extend(address_checks(card));
        checks
    }

    fn signature(&self, signed: &SignedCard, card: &Card) -> Check {
        let stated = signer(card);
        let named = card.signer.as_deref().and_then(|key| key.parse::<PublicKey>().ok());
        let Some((key, whose)) = self.expected_key(named) else {
            return Check::rule("signature", stated, "the card names no key", false);
        };
        match key.verify(signed.card.as_bytes(), &signed.signature) {
            Ok(()) if named == Some(key) => Check::rule("signature", stated, format!("by {whose}"), true),
            Ok(()) => Check::rule("signature", stated, "by another key than the card names", false),
            Err(_) => Check::rule("signature", stated, format!("not by {key}, {whose}"), false),
        }
    }

    /// The key that must have signed the card, and whose it is.
    fn expected_key(&self, named: Option<PublicKey>) -> Option<(PublicKey, &'static str)> {
        match self.desk_key {
            Some(pinned) => Some((*pinned, "the key that you gave")),
            None => Some((named?, "the key that the card names")),
        }
    }

    fn verify_record(&self, record: &Record, progress: &Arc<Progress>) -> Result<Vec<Check>> {
        let card = Card::from_json(&record.card)?;
        let questions = card.asked().answers();
        if questions > MOST_QUESTIONS {
            return Err(Error::input(format!(
                "{questions} questions on one ballot; at most {MOST_QUESTIONS} are verified"
            )));
        }
        let mut checks = vec![Check::equal("version", &record.version, record::VERSION)];
        checks.extend(self.verify_signed(&record.signed(), progress)?);
        checks.extend(sums(record, &card));
        checks.extend(estimates(record, &card));
        Ok(checks)
    }
}

/// Checks that the key that a card names is one.
fn key_check(card: &Card) -> Option<Check> {
    let stated = card.signer.as_deref()?;
    let (rule, is_key) = match stated.parse::<PublicKey>() {
        Ok(_) => ("a key, ed25519: and 43 letters and digits".to_owned(), true),
        Err(error) => (error.to_string(), false),
    };
    Some(Check::rule("signer", stated, rule, is_key))
}

/// Checks that owners can send their reports to the addresses that a card states.
fn address_checks(card: &Card) -> Vec<Check> {
    let Some(aggregators) = &card.aggregators else { return Vec::new() };
    let stated = [("aggregators.leader", &aggregators.leader), ("aggregators.helper", &aggregators.helper)];
    let check =
        |(what, stated): (&str, &String)| match address::parse(stated).and_then(|url| address::check_address(&url)) {
            Ok(()) => Check::rule(what, stated, "an address, https or on the same machine", true),
            Err(error) => Check::rule(what, stated, error, false),
        };
    stated.into_iter().map(check).collect()
}

/// The signer that a card states.
fn signer(card: &Card) -> String {
    card.signer.clone().unwrap_or_else(|| "nobody".to_owned())
}

fn canonical_form(signed: &SignedCard, card: &Card) -> Check {
    let canonical = card.canonical();
    Check::rule(
        "card",
        format!("{} bytes", signed.card.len()),
        format!("{} bytes in canonical form", canonical.len()),
        canonical == signed.card,
    )
}

/// Checks the sums against the number of reports, the card and the tallies.
fn sums(record: &Record, card: &Card) -> Vec<Check> {
    let mut checks = vec![report_count(record, card), batch_size(record, card), collection_time(record, card)];
    checks.extend(tallies(record, card));
    checks
}

/// Checks that this many reports can have these sums.
fn report_count(record: &Record, card: &Card) -> Check {
    if let (Some(noise), Some(sums)) = (card.mechanism.noise(), record.sums()) {
        return explained_by_noise(noise, record.reports, sums);
    }
    if !matches!(card.asked(), CardQuestion::Ballot(_)) {
        let sum = record.counts().iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        return Check::equal("reports", record.reports, sum);
    }
    let most = record.counts().iter().copied().max().unwrap_or(0);
    let rule = format!("no count is above it; the largest is {most}");
    Check::rule("reports", record.reports, rule, most <= record.reports)
}

fn explained_by_noise(noise: &NoiseLaw, reports: u64, sums: &[i64]) -> Check {
    let range = plausible(noise, reports);
    let rule = format!("each within {} to {}, as far as noise can plausibly reach", range.start(), range.end());
    Check::rule("sums", listed(sums), rule, sums.iter().all(|sum| range.contains(&i128::from(*sum))))
}

fn batch_size(record: &Record, card: &Card) -> Check {
    let rule = format!("at least the card's minimum batch, {}", card.minimum_batch);
    Check::rule("reports", record.reports, rule, card.minimum_batch <= record.reports)
}

fn collection_time(record: &Record, card: &Card) -> Check {
    let closes = card.closes.map_or("an unknown time".to_owned(), |closes| closes.to_string());
    let is_soon_after = matches!(
        (record.collected.parse::<Timestamp>(), card.window()),
        (Ok(collected), Ok((_, closes))) if (closes..=closes.saturating_add(LATEST_COLLECTION)).contains(&collected.seconds())
    );
    Check::rule("collected", &record.collected, format!("not before {closes}, and within a year"), is_soon_after)
}

/// Checks that the tallies are those of the sums.
fn tallies(record: &Record, card: &Card) -> Vec<Check> {
    match record.tallies_of(card) {
        Ok(found) if found.is_empty() && record.tallies().is_empty() => Vec::new(),
        Ok(found) => compare_tallies(record.tallies(), &found),
        Err(error) => {
            let (what, stated) = match &record.released {
                Released::Sums(sums) => ("sums", listed(sums)),
                Released::Counts { counts, .. } => ("counts", listed(counts)),
            };
            vec![Check::rule(what, stated, error, false)]
        }
    }
}

fn compare_tallies(stated: &[QuestionTally], found: &[QuestionTally]) -> Vec<Check> {
    let is_ballot = |tallies: &[QuestionTally]| tallies.iter().all(|tally| tally.name.is_some());
    match (stated, found) {
        ([QuestionTally { name: None, tally: stated }], [QuestionTally { name: None, tally: found }]) => {
            compare_tally("tally", stated, found)
        }
        _ if stated.len() == found.len() && is_ballot(stated) && is_ballot(found) => {
            let pairs = stated.iter().zip(found).enumerate();
            pairs.flat_map(|(index, (stated, found))| compare_named_tally(index, stated, found)).collect()
        }
        _ => {
            // A record that states no tally lacks one.
            let count = |tallies: &[QuestionTally]| tallies.len().max(1);
            vec![Check::rule("tallies", count(stated), format!("{}, as the card asks", count(found)), false)]
        }
    }
}

fn compare_named_tally(index: usize, stated: &QuestionTally, found: &QuestionTally) -> Vec<Check> {
    let (what, name) = (format!("tallies[{index}]"), |tally: &QuestionTally| tally.name.clone().unwrap_or_default());
    let mut checks = vec![Check::equal(format!("{what}.name"), name(stated), name(found))];
    checks.extend(compare_tally(&what, &stated.tally, &found.tally));
    checks
}

fn compare_tally(what: &str, stated: &Tally, found: &Tally) -> Vec<Check> {
    let mut checks = vec![Check::equal(format!("{what}.owners"), stated.owners(), found.owners())];
    let (stated, found) = (stated.answers(), found.answers());
    if stated.len() != found.len() {
        checks.push(Check::equal(format!("{what}.answers"), stated.len(), found.len()));
        return checks;
    }
    for (index, (stated, found)) in stated.iter().zip(found).enumerate() {
        checks.extend(compare_answer(&format!("{what}.answers[{index}]"), stated, found));
    }
    checks
}

/// Compares the counts of every output that one side or the other has.
fn compare_answer(what: &str, stated: &BTreeMap<Output, u64>, found: &BTreeMap<Output, u64>) -> Vec<Check> {
    let outputs: BTreeSet<&Output> = stated.keys().chain(found.keys()).collect();
    let compare = |output: &Output| {
        let [stated, found] = [stated, found].map(|counts| counts.get(output).copied().unwrap_or(0));
        Check::equal(format!("{what}.{output}"), stated, found)
    };
    outputs.into_iter().map(compare).collect()
}

/// Checks the estimates that follow from the sums, whether they are stated or not.
fn estimates(record: &Record, card: &Card) -> Vec<Check> {
    match (&record.results, results_of_sums(record, card)) {
        (Some(stated), Ok(found)) => compare_results(stated, &found),
        (None, Ok(found)) => found.estimates.iter().map(unstated).collect(),
        (Some(stated), Err(error)) => vec![Check::rule("results", &stated.confidence, error, false)],
        (None, Err(error)) => vec![Check::not_stated("results", error)],
    }
}

/// The results that follow from the sums, with the stated confidence and kind of interval, or else at 95 %.
fn results_of_sums(record: &Record, card: &Card) -> Result<Results> {
    let tallies = record.tallies_of(card)?;
    let (confidence, interval) = match &record.results {
        Some(results) => (results.confidence()?, results.interval),
        None => (Confidence::new(0.95)?, IntervalKind::Auto),
    };
    let released = match &record.released {
        Released::Counts { counts, .. } => Released::Counts { counts: counts.clone(), tallies },
        Released::Sums(sums) => Released::Sums(sums.clone()),
    };
    Record { released, ..record.clone() }.estimated(&card.mechanism.count_channel(), confidence, interval)
}

fn compare_results(stated: &Results, found: &Results) -> Vec<Check> {
    let mut checks = vec![Check::equal("results.confidence", &stated.confidence, &found.confidence)];
    let (stated, found) = (&stated.estimates, &found.estimates);
    if stated.len() != found.len() {
        checks.push(Check::equal("results.estimates", stated.len(), found.len()));
        return checks;
    }
    for (index, (stated, found)) in stated.iter().zip(found).enumerate() {
        checks.extend(compare_estimate(&format!("results.estimates[{index}]"), stated, found));
    }
    checks
}

fn compare_estimate(what: &str, stated: &Estimated, found: &Estimated) -> Vec<Check> {
    let compare = |part: &str, value: fn(&Estimated) -> String| {
        Check::equal(format!("{what}.{part}"), value(stated), value(found))
    };
    let name = (stated.name != found.name).then(|| compare("name", |one| one.name.clone().unwrap_or_default()));
    let numbers = [
        compare("owners", |one| one.owners.to_string()),
        compare("estimate", |one| one.estimate.clone()),
        compare("sd", |one| one.sd.clone()),
        compare("interval[0]", |one| one.interval[0].clone()),
        compare("interval[1]", |one| one.interval[1].clone()),
        compare("interval_kind", |one| kind_word(one.interval_kind)),
    ];
    name.into_iter().chain(numbers).collect()
}

/// The word for a kind of interval, as records have it.
fn kind_word(kind: IntervalKind) -> String {
    serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn unstated(found: &Estimated) -> Check {
    let [low, high] = &found.interval;
    let name = found.name.as_ref().map(|name| format!(" of {name}")).unwrap_or_default();
    Check::not_stated(
        format!("estimate{name}"),
        format!("{}, sd {}, {low} to {high} at 95 %", found.estimate, found.sd),
    )
}

fn listed(counts: &[impl ToString]) -> String {
    let shown: Vec<String> = counts.iter().take(8).map(ToString::to_string).collect();
    format!("{}{}", shown.join(", "), if counts.len() > 8 { ", …" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Hint, release::Collected, signed::Signer};
    use uptack::{
        plan::{Prior, Request, plan},
        privacy::{Delta, Epsilon},
    };

    /// A record of 200 owners and this sum, with noise of scale 2. Its claims are another mechanism's.
    fn noisy_record(sum: i64) -> (Record, Card) {
        let mut request = Request::new(200, Prior::at(20));
        request.release = Some((Epsilon::new(2.0).unwrap(), Delta::new(1e-4).unwrap()));
        let mut card = Card::new(&request, &plan(&request).unwrap());
        let signer = Signer::generate();
        card.signer = Some(signer.public().to_string());
        card.mechanism = "randomized-response(t=0.99) + laplace(scale=2)".parse().unwrap();
        let batch = Collected { reports: 200, counts: Vec::new(), sums: Some(vec![sum]), start: 0, finish: 1 };
        (Record::new(&signer.sign(&card).unwrap(), &batch, 1_900_000_000).unwrap(), card)
    }

    fn failing(checks: Vec<Check>, what: &str) -> usize {
        checks.iter().filter(|check| check.what.starts_with(what) && !check.holds()).count()
    }

    #[test]
    fn a_record_with_noise_has_sums_and_no_tallies_and_is_recomputed() {
        let (mut record, card) = noisy_record(-3);
        let channel = card.mechanism.count_channel();
        record.results = Some(record.estimated(&channel, Confidence::new(0.99).unwrap(), IntervalKind::Exact).unwrap());
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""sums":[-3]"#) && !text.contains("counts") && !text.contains("tall"), "{text}");
        let (read, _) = Record::read(&text).unwrap();
        assert_eq!(read, record);
        assert!(matches!(Document::from_json(&text).unwrap(), Document::Record(_)));
        assert_eq!(failing(sums(&record, &card), "sums"), 0);
        assert_eq!(failing(estimates(&record, &card), "results"), 0);
        // The estimates are those of this sum and no other.
        let other = Record { released: Released::Sums(vec![-2]), ..record.clone() };
        assert!(failing(estimates(&other, &card), "results") >= 1);
        // Nor does noise explain everything.
        let far = Record { released: Released::Sums(vec![-200]), ..record };
        assert_eq!(failing(sums(&far, &card), "sums"), 1);
        assert_eq!(failing(estimates(&far, &card), "results"), 1);
    }

    #[test]
    fn records_whose_sums_are_not_of_the_cards_kind_are_refused() {
        let (record, card) = noisy_record(17);
        let mut plain = card.clone();
        plain.mechanism = "randomized-response(t=0.99)".parse().unwrap();
        assert!(record.tallies_of(&plain).unwrap_err().to_string().contains("carry noise"));
        let counts = || Released::Counts { counts: vec![17, 183], tallies: Vec::new() };
        for (released, words) in [(counts(), "have no noise"), (Released::Sums(vec![17, 17]), "one sum for each")] {
            let changed = Record { released, ..record.clone() };
            assert!(changed.tallies_of(&card).unwrap_err().to_string().contains(words), "{words}");
            assert!(Record::read(&serde_json::to_string(&changed).unwrap()).is_err());
            assert!(sums_fail(&changed, &card), "{words}");
        }
    }

    /// Nobody could say which of them was released.
    #[test]
    fn records_that_contradict_themselves_are_not_read() {
        let (record, _) = noisy_record(17);
        let text = serde_json::to_string(&record).unwrap();
        let tally = r#"{"answers":[{"1":17,"0":183}]}"#;
        let with = |text: &str, field: &str, value: &str| text.replacen('{', &format!("{{\"{field}\":{value},"), 1);
        let without_sums = text.replace(r#""sums":[17]"#, r#""counts":[17,183]"#);
        for (changed, words) in [
            (with(&text, "counts", "[17,183]"), "stand beside exact counts"),
            (with(&text, "tally", tally), "stand beside exact counts"),
            (with(&text, "tallies", "[]"), "stand beside exact counts"),
            (with(&with(&without_sums, "tally", tally), "tallies", "[]"), "stands beside those of a ballot"),
        ] {
            let error = Record::parse(&changed).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(error.hint(), Some(Hint::DistrustDocument));
        }
    }

    fn sums_fail(record: &Record, card: &Card) -> bool {
        failing(sums(record, card), "sums") + failing(sums(record, card), "counts") > 0
    }
}
