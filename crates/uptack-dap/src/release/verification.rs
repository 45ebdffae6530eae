//! The check by anyone of what a desk hands out: a card, a signed card or a release record.
//!
//! Everything that follows from something else in the document is computed again and compared: the query's name and
//! signature, the mechanism's integers, every claim, the tallies, the estimates. What does not follow from anything, such
//! as the question or the sums themselves, is the desk's word; SECURITY.md says who stands behind the sums.

use serde::Deserialize;
use std::sync::Arc;
use uptack::{
    DiscreteLaplace, Tally,
    card::{Card, Check, Timestamp},
    estimate::{Confidence, IntervalKind},
    privacy::WorkLimit,
    simulate::Progress,
};

use crate::{
    batch, card_task,
    error::{Error, Result},
    release::{
        record::{self, Record},
        results::{Estimated, NamedTally, Results},
    },
    signed::{PublicKey, SignedCard},
};

/// More questions than a ballot may have, so that a hostile record does not keep its reader busy.
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
    /// The key that has to have signed the card; without one, whichever key the card names.
    pub desk_key: Option<&'a PublicKey>,
    /// How much work each claim may take. A claim that does not close within it cannot be confirmed.
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
    /// Reads whichever it is from JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        let fields: Fields = serde_json::from_str(text)
            .map_err(|error| Error::input(format!("not a card or release record in JSON: {error}")))?;
        Ok(match (fields.counts.or(fields.sums), fields.signature) {
            (Some(_), _) => Self::Record(Box::new(Record::parse(text)?)),
            (None, Some(_)) => {
                let signed = serde_json::from_str(text);
                Self::Signed(Box::new(signed.map_err(|error| Error::input(format!("not a signed card: {error}")))?))
            }
            (None, None) => Self::Card(Box::new(Card::from_json(text)?)),
        })
    }

    /// What it is, in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Card(_) => "card",
            Self::Signed(_) => "signed card",
            Self::Record(_) => "release record",
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

impl Verifier<'_> {
    /// Computes everything again that can be, and compares. An error means that the document cannot be read at all.
    ///
    /// `progress` counts elementary steps, of [`Verifier::work`] at most.
    pub fn verify(&self, document: &Document, progress: &Arc<Progress>) -> Result<Vec<Check>> {
        match document {
            Document::Card(card) if self.desk_key.is_some() => {
                let stated = card.signer.clone().unwrap_or_else(|| "nobody".to_owned());
                let mut checks = vec![Check::rule("signature", stated, "the card is not signed", false)];
                checks.extend(card.recompute(self.limit, progress));
                Ok(checks)
            }
            Document::Card(card) => Ok(card.recompute(self.limit, progress)),
            Document::Signed(signed) => self.verify_signed(signed, progress),
            Document::Record(record) => self.verify_record(record, progress),
        }
    }

    /// The elementary steps that a verification takes at most, as far as that can be told beforehand.
    pub fn work(&self, document: &Document) -> u64 {
        document.card().map_or(0, |card| card.work(self.limit))
    }

    fn verify_signed(&self, signed: &SignedCard, progress: &Arc<Progress>) -> Result<Vec<Check>> {
        let card = Card::from_json(&signed.card)?;
        let mut checks = vec![
            Check::equal("query", &signed.query, card_task::task_id(&signed.card).to_string()),
            Check::rule(
                "card",
                format!("{} bytes", signed.card.len()),
                format!("{} bytes in canonical form", card.canonical().len()),
                card.canonical() == signed.card,
            ),
            self.signature(signed, &card),
        ];
        checks.extend(card.recompute(self.limit, progress).into_iter().map(|check| check.within("card")));
        Ok(checks)
    }

    fn signature(&self, signed: &SignedCard, card: &Card) -> Check {
        let stated = card.signer.clone().unwrap_or_else(|| "nobody".to_owned());
        let named = card.signer.as_deref().and_then(|key| key.parse::<PublicKey>().ok());
        let (key, whose) = match (self.desk_key, named) {
            (Some(pinned), _) => (*pinned, "the key that you gave"),
            (None, Some(named)) => (named, "the key that the card names"),
            (None, None) => return Check::rule("signature", stated, "the card names no key", false),
        };
        match key.verify(signed.card.as_bytes(), &signed.signature) {
            Ok(()) if named == Some(key) => Check::rule("signature", stated, format!("by {whose}"), true),
            Ok(()) => Check::rule("signature", stated, "by another key than the card names", false),
            Err(_) => Check::rule("signature", stated, format!("not by {key}, {whose}"), false),
        }
    }

    fn verify_record(&self, record: &Record, progress: &Arc<Progress>) -> Result<Vec<Check>> {
        let card = Card::from_json(&record.card)?;
        let questions = card.ballot.as_ref().map_or(1, |ballot| ballot.queries.len());
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

/// The sums against the number of reports, the card and the tallies.
fn sums(record: &Record, card: &Card) -> Vec<Check> {
    let mut checks = Vec::new();
    if let (Some(noise), Some(sums)) = (card.mechanism.noise(), &record.sums) {
        checks.push(explained_by_noise(noise, record.reports, sums));
    } else if card.ballot.is_none() {
        let sum = record.counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        checks.push(Check::equal("reports", record.reports.to_string(), sum.to_string()));
    } else {
        let most = record.counts.iter().copied().max().unwrap_or(0);
        let rule = format!("no count is above it; the largest is {most}");
        checks.push(Check::rule("reports", record.reports.to_string(), rule, most <= record.reports));
    }
    let enough = card.minimum_batch <= record.reports;
    let rule = format!("at least the card's minimum batch, {}", card.minimum_batch);
    checks.push(Check::rule("reports", record.reports.to_string(), rule, enough));
    let closes = card.closes.map_or("an unknown time".to_owned(), |closes| closes.to_string());
    let after = matches!(
        (record.collected.parse::<Timestamp>(), card.window()),
        (Ok(collected), Ok((_, closes))) if collected.seconds() >= closes
    );
    checks.push(Check::rule("collected", &record.collected, format!("not before {closes}"), after));
    match record.tallies_of(card) {
        Ok((None, None)) if record.tally.is_none() && record.tallies.is_none() => {}
        Ok(found) => checks.extend(compare_tallies(record, &found)),
        Err(error) => {
            let (what, stated) = match &record.sums {
                Some(sums) => ("sums", listed(sums)),
                None => ("counts", listed(&record.counts)),
            };
            checks.push(Check::rule(what, stated, error.to_string(), false));
        }
    }
    checks
}

fn explained_by_noise(noise: &DiscreteLaplace, reports: u64, sums: &[i64]) -> Check {
    let range = batch::plausible(noise, reports);
    let rule = format!("each within {} to {}, as far as noise can plausibly reach", range.start(), range.end());
    Check::rule("sums", listed(sums), rule, sums.iter().all(|sum| range.contains(&i128::from(*sum))))
}

fn compare_tallies(record: &Record, found: &record::Tallies) -> Vec<Check> {
    match (&record.tally, &record.tallies, found) {
        (Some(stated), None, (Some(found), _)) => compare_tally("tally", stated, found),
        (None, Some(stated), (_, Some(found))) if stated.len() == found.len() => {
            let pairs = stated.iter().zip(found).enumerate();
            let compare = |(index, (stated, found)): (usize, (&NamedTally, &NamedTally))| {
                let what = format!("tallies[{index}]");
                let mut checks = vec![Check::equal(format!("{what}.name"), &stated.name, &found.name)];
                checks.extend(compare_tally(&what, &stated.tally, &found.tally));
                checks
            };
            pairs.flat_map(compare).collect()
        }
        (_, stated, (_, found)) => {
            let count = |tallies: &Option<Vec<NamedTally>>| tallies.as_ref().map_or(1, Vec::len).to_string();
            vec![Check::rule("tallies", count(stated), format!("{}, as the card asks", count(found)), false)]
        }
    }
}

fn compare_tally(what: &str, stated: &Tally, found: &Tally) -> Vec<Check> {
    let mut checks =
        vec![Check::equal(format!("{what}.owners"), stated.owners().to_string(), found.owners().to_string())];
    if stated.answers().len() != found.answers().len() {
        let count = |tally: &Tally| tally.answers().len().to_string();
        checks.push(Check::equal(format!("{what}.answers"), count(stated), count(found)));
        return checks;
    }
    for (answer, (stated, found)) in stated.answers().iter().zip(found.answers()).enumerate() {
        let mut outputs: Vec<_> = stated.keys().chain(found.keys()).collect();
        outputs.sort_unstable();
        outputs.dedup();
        for output in outputs {
            let [stated, found] = [stated, found].map(|counts| counts.get(output).copied().unwrap_or(0).to_string());
            checks.push(Check::equal(format!("{what}.answers[{answer}].{output}"), stated, found));
        }
    }
    checks
}

/// The estimates that follow from the sums, whether they are stated or not.
fn estimates(record: &Record, card: &Card) -> Vec<Check> {
    let channel = card.mechanism.channel();
    let found = record.tallies_of(card).and_then(|(tally, tallies)| {
        let (confidence, interval) = match &record.results {
            Some(results) => (results.confidence()?, results.interval),
            None => (Confidence::new(0.95)?, IntervalKind::Auto),
        };
        Record { tally, tallies, ..record.clone() }.estimated(&channel, confidence, interval)
    });
    match (&record.results, found) {
        (Some(stated), Ok(found)) => compare_results(stated, &found),
        (None, Ok(found)) => found.estimates.iter().map(unstated).collect(),
        (Some(stated), Err(error)) => vec![Check::rule("results", &stated.confidence, error.to_string(), false)],
        (None, Err(error)) => vec![Check::not_stated("results", error.to_string())],
    }
}

fn compare_results(stated: &Results, found: &Results) -> Vec<Check> {
    let mut checks = vec![Check::equal("results.confidence", &stated.confidence, &found.confidence)];
    if stated.estimates.len() != found.estimates.len() {
        let count = |results: &Results| results.estimates.len().to_string();
        checks.push(Check::equal("results.estimates", count(stated), count(found)));
        return checks;
    }
    for (index, (stated, found)) in stated.estimates.iter().zip(&found.estimates).enumerate() {
        let mut check = |part: &str, value: &dyn Fn(&Estimated) -> String| {
            checks.push(Check::equal(format!("results.estimates[{index}].{part}"), value(stated), value(found)));
        };
        if stated.name != found.name {
            check("name", &|one| one.name.clone().unwrap_or_default());
        }
        check("owners", &|one| one.owners.to_string());
        check("estimate", &|one| one.estimate.clone());
        check("sd", &|one| one.sd.clone());
        check("interval[0]", &|one| one.interval[0].clone());
        check("interval[1]", &|one| one.interval[1].clone());
        check("interval_kind", &|one| format!("{:?}", one.interval_kind));
    }
    checks
}

fn unstated(found: &Estimated) -> Check {
    let [low, high] = &found.interval;
    let name = found.name.as_ref().map_or(String::new(), |name| format!(" of {name}"));
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
    use crate::{batch::Collected, signed::Signer};
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
        let channel = card.mechanism.channel();
        record.results = Some(record.estimated(&channel, Confidence::new(0.99).unwrap(), IntervalKind::Exact).unwrap());
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.contains(r#""sums":[-3]"#) && !text.contains("counts") && !text.contains("tall"), "{text}");
        let (read, _) = Record::read(&text).unwrap();
        assert_eq!(read, record);
        assert!(matches!(Document::from_json(&text).unwrap(), Document::Record(_)));
        assert_eq!(failing(sums(&record, &card), "sums"), 0);
        assert_eq!(failing(estimates(&record, &card), "results"), 0);
        // The estimates are those of this sum and no other.
        let other = Record { sums: Some(vec![-2]), ..record.clone() };
        assert!(failing(estimates(&other, &card), "results") >= 1);
        // Nor does noise explain everything.
        let far = Record { sums: Some(vec![-200]), ..record };
        assert_eq!(failing(sums(&far, &card), "sums"), 1);
        assert_eq!(failing(estimates(&far, &card), "results"), 1);
    }

    #[test]
    fn records_whose_sums_are_not_of_the_cards_kind_are_refused() {
        let (record, card) = noisy_record(17);
        let mut plain = card.clone();
        plain.mechanism = "randomized-response(t=0.99)".parse().unwrap();
        assert!(record.tallies_of(&plain).unwrap_err().to_string().contains("carry noise"));
        for (counts, sums, words) in [
            (vec![17, 183], None, "have no noise"),
            (Vec::new(), Some(vec![17, 17]), "one sum for each"),
            (vec![17, 183], Some(vec![17]), "one sum for each"),
        ] {
            let changed = Record { counts, sums, ..record.clone() };
            assert!(changed.tallies_of(&card).unwrap_err().to_string().contains(words), "{words}");
            assert!(Record::read(&serde_json::to_string(&changed).unwrap()).is_err());
            assert!(sums_fail(&changed, &card), "{words}");
        }
    }

    fn sums_fail(record: &Record, card: &Card) -> bool {
        failing(sums(record, card), "sums") + failing(sums(record, card), "counts") > 0
    }
}
