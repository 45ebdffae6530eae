//! `uptack privacy`, and the table of guarantees that `uptack plan` prints too.

use std::iter;

use clap::Args;
use uptack::card::{Card as QueryCard, CardViews};
use uptack::display::lower_end;
use uptack::privacy::{
    self, Accountant, Delta, Enclosure, Epsilon, Guarantee, Repeated, Target, View, Views, WorkLimit,
};
use uptack::{Channel, Fraction, answer_name};
use uptack_document::PrivacyDocument;

use super::contributions;
use crate::arguments::{count, fraction, number};
use crate::failure::{Failure, Result, ResultExt};
use crate::input::{Loaded, LoadedContributions, LoadedMechanism, read_any_mechanism};
use crate::layout;
use crate::output::{Table, grouped, print_result, readable_up};
use crate::progress::{watched_steps, watched_without_total};

/// Show what a mechanism gives away, in every view
///
/// Every bound holds whatever the truths of the other owners are, and is rounded up.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack privacy 'normal-form(f=0.5,r=8.2e-5)' --owners 50000
  uptack privacy 'normal-form(f=0.5,r=0.00205)' --owners 2000 --epsilon 1 --json
  uptack privacy 'randomized-response(t=0.8)' --owners 5000 --delta 1e-6 \\
    --repeat 288
  uptack privacy 'normal-form(f=0.5,r=8.2e-5)' --owners 50000 --honest 90%
  uptack privacy 'choice(k=12,r=2.5e-4) + laplace(scale=1.9)' --owners 50000
  uptack privacy 'contributions(counts=288,most=2,r=1e-5) + laplace(scale=4)' \\
    --owners 50000")]
pub(crate) struct Arguments {
    /// name(key=value, …), a query card, or a file that `uptack channel --json` wrote
    mechanism: String,
    /// The size of the crowd, including the target; by default the card's
    #[arg(long, value_parser = count)]
    owners: Option<u64>,
    /// Show ε at this δ; by default the card's, or 1e-8
    #[arg(long, conflicts_with = "epsilon", value_parser = number)]
    delta: Option<f64>,
    /// Show δ at this ε
    #[arg(long, value_parser = number)]
    epsilon: Option<f64>,
    /// How many times each owner answers, with fresh coins each time
    #[arg(long, value_parser = count)]
    repeat: Option<u64>,
    /// The share of owners assumed to flip their coins as they should; by default the card's, or all
    #[arg(long, value_parser = fraction)]
    honest: Option<Fraction>,
    /// How much work each view may take, as a multiple of the default (a few seconds); when it runs out, the bounds
    /// found so far are shown
    #[arg(long, value_parser = count, default_value = "1")]
    work: u64,
}

/// Longer lines of running text are hard to read.
const LONGEST_LINE: usize = 100;
/// Where neither the request nor a card says otherwise.
const USUAL_DELTA: f64 = 1e-8;

impl Arguments {
    /// The ε that was given; otherwise the δ that was given, the card's δ or the usual one.
    fn target(&self, card: Option<&QueryCard>) -> Result<Target> {
        if let Some(epsilon) = self.epsilon {
            return Ok(Target::Epsilon(Epsilon::new(epsilon)?));
        }
        let stated = card.map(|card| card.delta().value());
        let delta = self.delta.or(stated).unwrap_or(USUAL_DELTA);
        Ok(Target::Delta(Delta::new(delta)?))
    }

    fn limit(&self) -> WorkLimit {
        WorkLimit::default().times(self.work)
    }

    /// The owners who are counted on; those of a card are its smallest batch, for which its claims are made.
    fn honest_owners(&self, card: Option<&QueryCard>) -> Result<u64> {
        let owners = self.owners.or(card.map(|card| card.minimum_batch)).ok_or_else(no_owners)?;
        let honest = self.honest.clone().or_else(|| card.map(|card| card.honest.clone()));
        Ok(privacy::honest_owners(owners, &honest.unwrap_or_else(Fraction::one))?)
    }

    /// All views, computed anew unless they are the ones that the card claims.
    fn views(&self, named: &LoadedMechanism) -> Result<Views> {
        let card = named.card.as_ref();
        let (owners, target) = (self.honest_owners(card)?, self.target(card)?);
        // A card with a false claim is refused, whatever else is asked about it.
        let verified = card.map(|card| card.verify(WorkLimit::default())).transpose().at(&self.mechanism)?;
        match verified {
            Some(CardViews::YesNo(views)) if views.release.owners() == owners && views.release.target() == target => {
                Ok(*views)
            }
            _ => compute_views(&named.channel, owners, target, self.limit()),
        }
    }
}

fn no_owners() -> Failure {
    Failure::request("how many owners are there?").with_hint("give --owners, as in --owners 50000")
}

/// Computes all views and shows how much of the work allowed is done.
fn compute_views(channel: &Channel, owners: u64, target: Target, limit: WorkLimit) -> Result<Views> {
    let most = Views::work(channel, owners, limit);
    Ok(watched_steps(most, |progress| Views::of_watched(channel, owners, target, limit, Some(progress)))?)
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let (named, mechanism) = match read_any_mechanism(&arguments.mechanism)? {
        Loaded::YesNo(named) => {
            let mechanism = named.mechanism.to_string();
            (*named, mechanism)
        }
        Loaded::Contributions(asked) => match asked.yes_no() {
            Some(yes_no) => (LoadedMechanism::new(yes_no), asked.to_string()),
            None => return run_contributions(arguments, &asked, json),
        },
    };
    let views = arguments.views(&named)?;
    let card = card(&named.channel, views, arguments.repeat, arguments.limit())?;
    print_result(json, &card.json(&mechanism), || describe(&card, &mechanism))
}

fn run_contributions(arguments: &Arguments, asked: &LoadedContributions, json: bool) -> Result<()> {
    let card = asked.card.as_ref();
    card.map_or(Ok(()), |card| card.verify(WorkLimit::default()).map(drop)).at(&arguments.mechanism)?;
    let (owners, target) = (arguments.honest_owners(card)?, arguments.target(card)?);
    contributions::run_privacy(asked, owners, target, (arguments.repeat, arguments.limit()), json)
}

/// Composes this many answers and shows how many steps that has taken so far.
fn compose(views: &Views, accountant: &Accountant, target: Target, times: u64) -> Result<Repeated> {
    Ok(watched_without_total(|progress| {
        let accountant = accountant.clone().watched(Some(progress));
        Repeated::of(views, &accountant, target, times)
    })?)
}

fn card(channel: &Channel, views: Views, repeat: Option<u64>, limit: WorkLimit) -> Result<PrivacyDocument> {
    let (owners, target) = (views.release.owners(), views.release.target());
    let accountant = privacy::release(channel, owners)?.with_limit(limit);
    let repeated = repeat.map(|times| compose(&views, &accountant, target, times)).transpose()?;
    let statement = privacy::statement(channel, &views, &accountant, repeated.as_ref());
    Ok(PrivacyDocument { owners, target, views, repeated, statement })
}

fn describe(card: &PrivacyDocument, mechanism: &str) -> String {
    let statement = layout::fitted(&card.statement, layout::width().min(LONGEST_LINE));
    format!("{mechanism}, {} honest owners\n\n{}\n{statement}\n", grouped(card.owners), views_table(&card.views))
}

/// All views as a table; ε and δ are upper ends, because those are the claims.
pub(crate) fn views_table(views: &Views) -> String {
    match views.one_aggregator {
        Some(epsilon) => views_by_trust(views, epsilon),
        None => plain_views(views),
    }
}

fn plain_views(views: &Views) -> String {
    let mut table = Table::new(&["view", "ε", "δ", "worst crowd", "certificate"]);
    for (answer, &epsilon) in views.answers.iter().enumerate() {
        table.row(pure_row(format!("answer {}", answer_name(answer)), epsilon));
    }
    table.row(pure_row("linked".to_owned(), views.linked));
    let claims = iter::once(&views.release).chain(&views.answers_with_release);
    table.with_rows(claims.map(guarantee_row)).render()
}

/// The same for mechanisms with aggregators' noise: each view with the parties that must be honest for it.
fn views_by_trust(views: &Views, one_aggregator: Enclosure) -> String {
    let mut table = Table::new(&["view", "holds if these are honest", "ε", "δ", "worst crowd", "certificate"]);
    let [epsilon, delta] = pure_cells(views.linked);
    table.row(["linked", "nobody", &epsilon, &delta]);
    let epsilon = readable_up(one_aggregator.upper());
    table.row(["one aggregator", "one aggregator", &epsilon, "0", "any", "exact"]);
    let claims = iter::once(&views.release).chain(&views.owners_alone).chain(&views.answers_with_release);
    table.with_rows(claims.map(|claim| trusting_row(claim, views.release.owners()))).render()
}

/// A row of [`guarantee_row`] with the parties that must be honest, after the view.
fn trusting_row(claim: &Guarantee, owners: u64) -> [String; 6] {
    let [view, epsilon, delta, crowd, certificate] = guarantee_row(claim);
    [view, honest_parties(claim.view(), owners), epsilon, delta, crowd, certificate]
}

fn pure_row(view: String, epsilon: Option<f64>) -> [String; 3] {
    let [epsilon, delta] = pure_cells(epsilon);
    [view, epsilon, delta]
}

/// ε and δ of a guarantee whose δ is 0; without a guarantee there is no δ either.
fn pure_cells(epsilon: Option<f64>) -> [String; 2] {
    let delta = if epsilon.is_some() { "0" } else { "" };
    [readable_up(epsilon), delta.to_owned()]
}

fn honest_parties(view: View, owners: u64) -> String {
    let owners = format!("{} owners", grouped(owners));
    match view {
        View::Release => format!("one aggregator and {owners}"),
        View::OwnersAlone => owners,
        View::AnswerWithRelease(_) => "nobody".to_owned(),
    }
}

fn guarantee_row(claim: &Guarantee) -> [String; 5] {
    let [epsilon, delta] = epsilon_and_delta(claim);
    [claim.view().to_string(), epsilon, delta, worst_crowd(claim), certificate(claim)]
}

/// The worst crowd found, if a number of *yes* describes it.
fn worst_crowd(claim: &Guarantee) -> String {
    claim.crowd().map_or_else(|| "all alike".to_owned(), |yes| format!("{} yes", grouped(yes)))
}

fn epsilon_and_delta(claim: &Guarantee) -> [String; 2] {
    let upper = claim.value().map(|ends| ends.upper());
    match (claim.target(), upper) {
        (Target::Delta(delta), Some(_)) => [readable_up(upper), readable_up(delta.value())],
        (Target::Delta(_), None) => [readable_up(upper), format!("≥ {}", lower_end(claim.floor()))],
        (Target::Epsilon(epsilon), _) => [readable_up(epsilon.value()), readable_up(upper)],
    }
}

fn certificate(claim: &Guarantee) -> String {
    let certificate = claim.certificate();
    if claim.value().is_none() {
        "exact".to_owned()
    } else if certificate.closed() {
        "closed".to_owned()
    } else {
        format!("open, gap {}", readable_up(certificate.gap()))
    }
}
