//! `uptack plan`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use uptack::Fraction;
use uptack::card::Card;
use uptack::plan::{self, Choice, Form, Noise, Objective, Over, Prior, Request, Rule, Solved, Trust, Unknown};
use uptack::privacy::{Delta, Epsilon};
use uptack::simulate::Progress;

use crate::arguments::{count, fraction, range};
use crate::card_file;
use crate::failure::Failure;
use crate::output::{Table, check_writable, print, print_json, readable, write_whole};
use crate::plan_chart::{self, Picture};
use crate::progress::watched;
use crate::trust_arguments::{TrustArguments, Trusted};
use crate::views::{views_json, views_table};

/// Choose the best mechanism, and prove what it gives away
///
/// Whichever of --error, --epsilon and --owners is left out is solved for; with all three given the plan is checked.
#[derive(Args)]
#[command(after_help = "Examples:
  uptack plan --owners 50000 --yes 500 --epsilon 1 --delta 1e-8
  uptack plan --owners 50000 --yes 500 --epsilon 1 --answer-epsilon 1.0986 \\
    --form several --out card.toml
  uptack plan --owners 1e6 --yes 0..20000 --over mean --error 10
  uptack plan --yes 500 --epsilon 1 --error 8 --solve owners
  uptack plan --owners 50000 --yes 500 --epsilon 1 --noise aggregators \\
    --linked-epsilon 9
  uptack plan --owners 50000 --yes 500 --epsilon 1 --chart plan.svg
  uptack plan --owners 50000 --yes 500 --linked-epsilon 1.5")]
pub(crate) struct Arguments {
    /// How many owners will answer
    #[arg(long, value_parser = count)]
    owners: Option<u64>,
    /// Roughly how many of them hold yes: a number, or a range such as 0..500
    #[arg(long, value_parser = range)]
    yes: (u64, u64),
    /// The largest ε of the published counts
    #[arg(long)]
    epsilon: Option<f64>,
    /// The δ of the published counts
    #[arg(long, default_value = "1e-8")]
    delta: f64,
    #[command(flatten)]
    trust: TrustArguments,
    /// The largest share of owners who take part
    #[arg(long, value_parser = fraction)]
    participation: Option<Fraction>,
    /// The share of owners who are counted on to toss their coins
    #[arg(long, default_value = "1", value_parser = fraction)]
    honest: Fraction,
    /// The smallest batch that may be released; by default all owners
    #[arg(long, value_parser = count)]
    minimum_batch: Option<u64>,
    /// The largest standard deviation of the estimate
    #[arg(long)]
    error: Option<f64>,
    /// What to solve for; by default what is left out
    #[arg(long, value_enum)]
    solve: Option<UnknownArgument>,
    /// How answers are written; by default any way if --answer-epsilon is given, else one answer
    #[arg(long, value_enum)]
    form: Option<FormArgument>,
    /// What is minimized
    #[arg(long, value_enum, default_value = "sd")]
    objective: ObjectiveArgument,
    /// Which error is meant where --yes is a range
    #[arg(long, value_enum, default_value = "worst")]
    over: OverArgument,
    /// Only this family, by its name
    #[arg(long)]
    mechanism: Option<String>,
    /// Write a chart of the error against ε and against the owners, as .svg or .png
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Write the query card, as TOML or JSON by its ending
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnknownArgument {
    Error,
    Epsilon,
    Owners,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormArgument {
    /// One answer, through secure aggregation
    One,
    /// Several answers that nobody can link
    Several,
    /// Either
    Any,
}

#[derive(Clone, Copy, ValueEnum)]
enum ObjectiveArgument {
    /// The standard deviation of the combined estimator
    Sd,
    /// The paper's Var P("Yes"|Yes) + Var P("Yes"|No), at a standard deviation of at most --error
    Paper,
}

#[derive(Clone, Copy, ValueEnum)]
enum OverArgument {
    Worst,
    Mean,
}

/// What was planned, for printing.
struct Outcome(Solved);

impl std::ops::Deref for Outcome {
    type Target = Solved;

    fn deref(&self) -> &Solved {
        &self.0
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let picture = arguments.chart.as_deref().map(Picture::of).transpose()?;
    arguments.chart.as_deref().map_or(Ok(()), check_writable)?;
    arguments.out.as_deref().map_or(Ok(()), card_file::check_place)?;
    let outcome = watched("of the plan", plan::PROGRESS, |progress| arguments.solve(progress))?;
    let sheet = picture.map(|_| plan_chart::draw(&outcome.request, &outcome.plan)).transpose()?;
    if let (Some(path), Some(picture), Some(sheet)) = (&arguments.chart, picture, &sheet) {
        write_whole(path, &picture.bytes(sheet)?)?;
    }
    if let Some(path) = &arguments.out {
        card_file::write(path, &Card::new(&outcome.request, &outcome.plan))?;
    }
    if json { print_json(&outcome.json()) } else { print(&outcome.describe(arguments.out.as_deref())) }
}

impl Arguments {
    fn solve(&self, progress: &Progress) -> Result<Outcome, Failure> {
        let request = self.request()?;
        let unknown = self.unknown()?;
        let unknown = match unknown {
            None | Some(UnknownArgument::Error) => Unknown::Error,
            Some(UnknownArgument::Epsilon) => Unknown::Epsilon,
            Some(UnknownArgument::Owners) => Unknown::Owners,
        };
        if unknown != Unknown::Error && self.error.is_none() {
            return Err(Failure::request("--error is needed to solve for the rest")
                .with_hint("it is the largest standard deviation of the estimate, as in --error 8"));
        }
        Ok(Outcome(plan::solve(&request, unknown, self.error, progress)?))
    }

    fn trusted(&self) -> Trusted {
        self.trust.complete((Noise::None, Trust::Owners))
    }

    /// Whether local bounds are all that is asked for: noise needs the ε of what is published.
    fn bounded_locally(&self) -> bool {
        let Trusted { noise, linked_given, .. } = self.trusted();
        noise == Noise::None && (self.trust.answer_epsilon.is_some() || linked_given)
    }

    /// What is left out; none where all three are given.
    fn unknown(&self) -> Result<Option<UnknownArgument>, Failure> {
        if let Some(unknown) = self.solve {
            return Ok(Some(unknown));
        }
        Ok(match (self.owners, self.epsilon, self.error) {
            (Some(_), Some(_), None) => Some(UnknownArgument::Error),
            (Some(_), None, None) if self.bounded_locally() => Some(UnknownArgument::Error),
            (Some(_), Some(_), Some(_)) => None,
            (Some(_), None, Some(_)) => Some(UnknownArgument::Epsilon),
            (None, Some(_), Some(_)) => Some(UnknownArgument::Owners),
            _ => {
                return Err(Failure::request("too little is known to plan")
                    .with_hint("give two of --owners, --epsilon and --error, or --owners with a local epsilon"));
            }
        })
    }

    fn request(&self) -> Result<Request, Failure> {
        let objective = match (self.objective, self.error) {
            (ObjectiveArgument::Sd, _) => Objective::Sd,
            (ObjectiveArgument::Paper, Some(error)) => Objective::Paper { error },
            (ObjectiveArgument::Paper, None) => return Err(plan::paper_objective_alone().into()),
        };
        let Trusted { noise, trust, linked, .. } = self.trusted();
        let wants_release = matches!(self.unknown(), Ok(Some(UnknownArgument::Epsilon))) || !self.bounded_locally();
        // Several answers cancel each other's noise in the tallies: these must not give away more than one answer may.
        let unbounded_tallies = linked.is_none() && !matches!(self.form, Some(FormArgument::One));
        let default = self.trust.answer_epsilon.filter(|_| unbounded_tallies);
        let release = match self.epsilon.or(default) {
            Some(epsilon) => Some((Epsilon::new(epsilon)?, Delta::new(self.delta)?)),
            None if wants_release => Some((Epsilon::new(1.0)?, Delta::new(self.delta)?)),
            None => None,
        };
        if self.error.is_some_and(|error| !(error.is_finite() && error > 0.0)) {
            return Err(Failure::request("--error: it must be a positive number")
                .with_hint("it is the largest standard deviation of the estimate, as in --error 8"));
        }
        let owners = match (self.owners, self.minimum_batch) {
            (Some(owners), _) => owners,
            (None, None) => self.yes.1.max(2),
            (None, Some(_)) => {
                return Err(Failure::request("a minimum batch needs --owners")
                    .with_hint("where owners are solved for, the minimum batch is all of them"));
            }
        };
        let over = match self.over {
            OverArgument::Worst => Over::Worst,
            OverArgument::Mean => Over::Mean,
        };
        Ok(Request {
            release,
            answer_epsilon: self.trust.answer_epsilon,
            linked_epsilon: linked,
            noise,
            trust,
            participation: self.participation.as_ref().map(Fraction::to_f64),
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch.unwrap_or(owners),
            form: match self.form {
                Some(FormArgument::One) => Form::One,
                Some(FormArgument::Several) => Form::Several,
                Some(FormArgument::Any) => Form::Any,
                None if self.trust.answer_epsilon.is_some() => Form::Any,
                None => Form::One,
            },
            objective,
            family: self.mechanism.clone(),
            ..Request::new(owners, Prior { low: self.yes.0, high: self.yes.1, over })
        })
    }
}

impl Outcome {
    fn solved_name(&self) -> &'static str {
        match self.unknown {
            Unknown::Error => "error",
            Unknown::Epsilon => "epsilon",
            Unknown::Owners => "owners",
        }
    }

    fn json(&self) -> Value {
        let mut document = choice_json(&self.plan.best, self.plan.minimum_batch);
        let alternative = |choice: &Choice| choice_json(choice, self.plan.minimum_batch);
        document["alternatives"] = self.plan.alternatives.iter().map(alternative).collect();
        document["solved"] = json!({"name": self.solved_name(), "value": self.value()});
        document["owners"] = json!(self.plan.owners);
        document["claim_owners"] = json!(self.plan.claim_owners);
        let degraded = self.plan.robustness.iter();
        document["robustness"] =
            degraded.map(|(honest, epsilon)| json!({"honest": honest.to_f64(), "epsilon": epsilon})).collect();
        document["accounting_calls"] = json!(self.plan.calls);
        document["gap"] = json!(self.plan.gap);
        let bounds = self.plan.tradeoff.iter();
        document["tradeoff"] = bounds.map(|entry| json!({"linked": entry.linked, "sd": entry.sd})).collect();
        document["trust"] = json!(match self.plan.trust {
            Trust::OneAggregator => "one-aggregator",
            Trust::Owners => "owners",
        });
        document["rule"] = json!(match self.plan.rule {
            Rule::Best => "best",
            Rule::Simplest(_) => "simplest",
        });
        document
    }

    fn describe(&self, card: Option<&Path>) -> String {
        let best = &self.plan.best;
        let written = card.map_or(String::new(), |path| format!("\nThe card is in {}.\n", path.display()));
        format!(
            "{}\n\nError: {} (standard deviation), ± {} at 95 %.\n{}\n\n{}\n{}\n\n{}\n{}\n{}{written}",
            best.mechanism,
            readable(best.sd),
            readable(best.interval95_halfwidth),
            self.solved_words(),
            views_table(&best.views),
            self.trust_words().join("\n"),
            self.families_table().render(),
            self.rule_words(),
            self.tradeoff_table(),
        )
    }

    /// The best of each family; the plan is marked, wherever it stands.
    fn families_table(&self) -> Table {
        let mut table = Table::new(&["mechanism", "sd", "above the least", ""]);
        for (choice, more) in self.families() {
            let mark = if std::ptr::eq(choice, &self.plan.best) { "the plan" } else { "" };
            table.row([choice.mechanism.to_string(), readable(choice.sd), more, mark.to_owned()]);
        }
        table
    }

    /// What a bound on the linked ε costs; nothing without noise.
    fn tradeoff_table(&self) -> String {
        if self.plan.tradeoff.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["linked ε at most", "sd", ""]);
        for entry in &self.plan.tradeoff {
            let linked = entry.linked.map_or("none".to_owned(), |linked| linked.to_string());
            let planned = if entry.linked == self.request.linked_epsilon { "the plan" } else { "" };
            table.row([linked, readable(entry.sd), planned.to_owned()]);
        }
        format!("\nWhat protection costs that holds if nobody is honest:\n\n{}", table.render())
    }
}

fn choice_json(choice: &Choice, minimum_batch: u64) -> Value {
    json!({
        "mechanism": choice.mechanism,
        "noise": choice.channel.noise(),
        "sd": choice.sd,
        "interval95_halfwidth": choice.interval95_halfwidth,
        "views": views_json(&choice.views),
        "minimum_batch": minimum_batch,
    })
}
