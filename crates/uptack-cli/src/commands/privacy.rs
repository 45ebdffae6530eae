//! `uptack privacy`

use std::sync::Arc;

use clap::Args;
use uptack::card::Card as QueryCard;
use uptack::privacy::{self, Accountant, Delta, Epsilon, Repeated, Target, Views, WorkLimit};
use uptack::simulate::Progress;
use uptack::{Channel, Fraction};
use uptack_document::PrivacyCard;

use crate::arguments::{count, fraction};
use crate::failure::Failure;
use crate::layout;
use crate::mechanism;
use crate::output::{grouped, print, print_json};
use crate::progress::{self, Step};
use crate::views::views_table;

/// Show what a mechanism gives away, in every view
///
/// Numbers are certified over every crowd and rounded up.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack privacy 'normal-form(f=0.5,r=8.2e-5)' --owners 50000
  uptack privacy 'normal-form(f=0.5,r=0.00205)' --owners 2000 --epsilon 1 --json
  uptack privacy 'randomized-response(t=0.8)' --owners 5000 --delta 1e-6 \\
    --repeat 288
  uptack privacy 'normal-form(f=0.5,r=8.2e-5)' --owners 50000 --honest 90%")]
pub(crate) struct Arguments {
    /// name(key=value, …), a query card, or a file that `uptack channel --json` wrote
    mechanism: String,
    /// The size of the crowd, the target among them; a card has its own
    #[arg(long, value_parser = count)]
    owners: Option<u64>,
    /// Show ε at this δ; by default that of the card, or 1e-8
    #[arg(long, conflicts_with = "epsilon")]
    delta: Option<f64>,
    /// Show δ at this ε
    #[arg(long)]
    epsilon: Option<f64>,
    /// How often one owner answers, with fresh coins each time
    #[arg(long, value_parser = count)]
    repeat: Option<u64>,
    /// The share of owners who toss their coins as they should; by default that of the card, or all
    #[arg(long, value_parser = fraction)]
    honest: Option<Fraction>,
    /// How much work each view may take, as a multiple of the default (a few seconds); where it ends, the bounds found so far are shown
    #[arg(long, value_parser = count, default_value = "1")]
    work: u64,
}

/// Longer lines of running text are hard to read.
const LONGEST_LINE: usize = 100;
/// Where neither the request nor a card says otherwise.
const USUAL_DELTA: f64 = 1e-8;

impl Arguments {
    fn target(&self, card: Option<&QueryCard>) -> Result<Target, Failure> {
        Ok(match (self.epsilon, self.delta, card) {
            (Some(epsilon), ..) => Target::Epsilon(Epsilon::new(epsilon)?),
            (None, Some(delta), _) => Target::Delta(Delta::new(delta)?),
            (None, None, Some(card)) => Target::Delta(card.delta()),
            (None, None, None) => Target::Delta(Delta::new(USUAL_DELTA)?),
        })
    }

    fn limit(&self) -> WorkLimit {
        WorkLimit::default().times(self.work)
    }

    /// The owners who are counted on; those of a card are its smallest batch, for which its claims are made.
    fn honest_owners(&self, card: Option<&QueryCard>) -> Result<u64, Failure> {
        let owners = match (self.owners, card) {
            (Some(owners), _) => owners,
            (None, Some(card)) => card.minimum_batch,
            (None, None) => {
                return Err(
                    Failure::request("how many owners are there?").with_hint("give --owners, as in --owners 50000")
                );
            }
        };
        let honest = self.honest.clone().or_else(|| card.map(|card| card.honest.clone()));
        Ok(privacy::honest_owners(owners, &honest.unwrap_or_else(Fraction::one))?)
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let stated = named.card.as_ref();
    let owners = arguments.honest_owners(stated)?;
    let target = arguments.target(stated)?;
    // A card that claims more than is true is refused, whatever else is asked of it.
    let verified = stated.map(|stated| stated.verify(WorkLimit::default())).transpose();
    let verified = verified.map_err(|error| Failure::from(error).at(&arguments.mechanism))?;
    let same = |views: &Views| views.release.owners() == owners && views.release.target() == target;
    let views = match verified.filter(same) {
        Some(views) => views,
        None => follow(&named.channel, owners, target, arguments.limit())?,
    };
    let card = card(&named.channel, views, arguments.repeat, arguments.limit())?;
    let mechanism = named.mechanism.to_string();
    if json {
        return print_json(&card.json(&mechanism));
    }
    print(&describe(&card, &mechanism))
}

/// Computes all views and shows how much of the work allowed is done.
fn follow(channel: &Channel, owners: u64, target: Target, limit: WorkLimit) -> Result<Views, Failure> {
    let progress = Arc::new(Progress::default());
    let million = 1_000_000;
    let all = Views::work(channel, owners, limit).div_ceil(million);
    let now = || Step { what: "million steps at most", done: (progress.done() / million).min(all), all };
    Ok(progress::follow(now, || Views::of_watched(channel, owners, target, limit, Some(&progress)))?)
}

/// Composes so many answers and shows how many steps that took so far: how many it takes is not known in advance.
fn compose(views: &Views, accountant: &Accountant, target: Target, times: u64) -> Result<Repeated, Failure> {
    let progress = Arc::new(Progress::default());
    let accountant = accountant.clone().watched(Some(&progress));
    let now = || Step { what: "million steps", done: progress.done() / 1_000_000, all: 0 };
    Ok(progress::follow(now, || Repeated::of(views, &accountant, target, times))?)
}

fn card(channel: &Channel, views: Views, repeat: Option<u64>, limit: WorkLimit) -> Result<PrivacyCard, Failure> {
    let (owners, target) = (views.release.owners(), views.release.target());
    let accountant = privacy::release(channel, owners)?.with_limit(limit);
    let repeated = repeat.map(|times| compose(&views, &accountant, target, times)).transpose()?;
    let statement = privacy::statement(channel, &views, &accountant, repeated.as_ref());
    Ok(PrivacyCard { owners, target, views, repeated, statement })
}

fn describe(card: &PrivacyCard, mechanism: &str) -> String {
    let owners = grouped(card.owners);
    let table = views_table(&card.views);
    let statement = layout::fitted(&card.statement, layout::width().min(LONGEST_LINE));
    format!("{mechanism}, {owners} honest owners\n\n{table}\n{statement}\n")
}
