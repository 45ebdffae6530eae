//! `uptack verify`

use std::path::PathBuf;

use clap::Args;
use uptack::card::{Check, Trust, Verdict};
use uptack::privacy::WorkLimit;
use uptack_dap::release::verification::{Document, Verifier};
use uptack_dap::signed::PublicKey;
use uptack_document::{check_holds, verification_json};

use super::result::trust_words;
use crate::arguments::count;
use crate::card_file;
use crate::failure::{Failure, Result, ResultExt};
use crate::input::read_small_file;
use crate::layout::joined;
use crate::output::{Table, print_result};
use crate::progress::watched_steps;

/// Recompute everything that a card or a release record states
///
/// Takes a query card (TOML or JSON), a signed card, or the record that `uptack result --out` wrote, and needs no desk
/// and no network. The query's name, the signature, the mechanism's integers, every claim, the predicted error, the
/// tallies and the estimates are computed again. Numbers have to be equal to the last digit; a claim may be rounded up.
/// Exits with 1 if anything is off, and says what.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack verify card.toml
  uptack verify record.json --json
  uptack verify record.json --desk-key ed25519:…

The sums themselves are the desk's word: nobody else saw them. SECURITY.md says who stands behind them.")]
pub(crate) struct Arguments {
    /// The card or record
    file: PathBuf,
    /// The key that must have signed the card; by default the key that the card names, which proves less
    #[arg(long, value_name = "KEY")]
    desk_key: Option<PublicKey>,
    /// Accept claims that are sound but larger than they need to be
    #[arg(long)]
    allow_wider: bool,
    /// How much work each claim may take, as a multiple of the default (a few seconds)
    #[arg(long, value_parser = count, default_value = "1")]
    work: u64,
}

/// What is longer is cut off in the table, not in JSON.
const LONGEST_SHOWN: usize = 100;

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let document = arguments.read()?;
    let checks = arguments.verify(&document).at(arguments.file.display())?;
    let holds = |check: &Check| check_holds(check, arguments.allow_wider);
    // What a false claim would rest on is of no interest.
    let trust = if checks.iter().all(holds) { trust(&document) } else { Vec::new() };
    let verification = verification_json(document.name(), &checks, &trust, arguments.allow_wider);
    print_result(json, &verification, || describe(&document, &checks, &trust))?;
    conclude(&checks, holds)
}

impl Arguments {
    fn read(&self) -> Result<Document> {
        let text = read_small_file(&self.file)?;
        if card_file::is_toml(&self.file) {
            return Ok(Document::Card(Box::new(card_file::parse(&self.file, &text)?)));
        }
        Document::from_json(&text)
            .at(self.file.display())
            .with_hint("give a query card (.toml or JSON), a signed card, or what `uptack result --out` wrote")
    }

    /// Checks everything and shows how much of the work allowed is done.
    fn verify(&self, document: &Document) -> Result<Vec<Check>> {
        let verifier = Verifier { desk_key: self.desk_key.as_ref(), limit: WorkLimit::default().times(self.work) };
        Ok(watched_steps(verifier.work(document), |progress| verifier.verify(document, progress))?)
    }
}

/// Whom the claims of the document's card rest on.
fn trust(document: &Document) -> Vec<Trust> {
    document.card().ok().and_then(|card| card.trust().ok()).unwrap_or_default()
}

fn conclude(checks: &[Check], holds: impl Fn(&Check) -> bool) -> Result<()> {
    let failed: Vec<&Check> = checks.iter().filter(|check| !holds(check)).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names = joined(failed.iter().map(|check| shown(&check.what)), ", ");
    let message = format!("{} of {} checks fail: {names}", failed.len(), checks.len());
    Err(Failure::request(message).with_hint(advice(&failed)))
}

fn advice(failed: &[&Check]) -> &'static str {
    if failed.iter().all(|check| check.verdict == Verdict::Wider) {
        "these claims are sound but not what was computed here; --allow-wider accepts them"
    } else {
        "do not rely on this document: it does not state what follows from it"
    }
}

fn describe(document: &Document, checks: &[Check], trust: &[Trust]) -> String {
    let table = Table::new(&[document.name(), "stated", "recomputed", ""]).with_rows(checks.iter().map(check_row));
    format!("{}\n{}", table.render(), trust_words(trust))
}

fn check_row(check: &Check) -> [String; 4] {
    let stated = check.stated.as_deref().unwrap_or("-");
    [shown(&check.what), shown(stated), shown(&check.recomputed), word(check.verdict).to_owned()]
}

/// On one line, and without anything that a terminal would obey: the text is a stranger's.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    start.chars().map(escaped).collect::<String>() + more
}

fn escaped(letter: char) -> String {
    if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equal => "holds",
        Verdict::RoundedUp => "holds, rounded up",
        Verdict::Wider => "WIDER",
        Verdict::Wrong => "WRONG",
        Verdict::NotStated => "not stated",
    }
}
