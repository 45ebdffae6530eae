//! `uptack plan`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use uptack::Fraction;
use uptack::card::Card;
use uptack::display::{self, Rounding};
use uptack::plan::{self, Choice, Form, Noise, Objective, Over, Plan, Prior, Request, Rule, Trust};
use uptack::privacy::{Delta, Epsilon};
use uptack::simulate::Progress;

use crate::arguments::{count, fraction, range};
use crate::card_file;
use crate::failure::Failure;
use crate::output::{Table, check_writable, grouped, print, print_json, readable, readable_up, write_whole};
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
    solve: Option<Unknown>,
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
enum Unknown {
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

struct Outcome {
    request: Request,
    plan: Plan,
    solved: (&'static str, f64),
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
        let given = |name: &str| {
            Failure::request(format!("--{name} is needed to solve for the rest"))
                .with_hint("it is the largest standard deviation of the estimate, as in --error 8")
        };
        let (plan, solved) = match unknown {
            None | Some(Unknown::Error) => {
                let plan = plan::plan_with(&request, progress)?;
                self.check_error(&request, &plan)?;
                let sd = plan.best.sd;
                (plan, ("error", sd))
            }
            Some(Unknown::Epsilon) => {
                let plan = plan::solve_epsilon_with(&request, self.error.ok_or_else(|| given("error"))?, progress)?;
                let epsilon = plan.epsilon().unwrap_or(f64::INFINITY);
                (plan, ("epsilon", epsilon))
            }
            Some(Unknown::Owners) => {
                let plan = plan::solve_owners_with(&request, self.error.ok_or_else(|| given("error"))?, progress)?;
                let owners = plan.owners as f64;
                (plan, ("owners", owners))
            }
        };
        let release = match (unknown, request.release) {
            (Some(Unknown::Epsilon), Some((_, delta))) => Some((Epsilon::new(solved.1)?, delta)),
            (_, release) => release,
        };
        let request = Request { owners: plan.owners, minimum_batch: plan.minimum_batch, release, ..request };
        Ok(Outcome { request, plan, solved })
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
    fn unknown(&self) -> Result<Option<Unknown>, Failure> {
        if let Some(unknown) = self.solve {
            return Ok(Some(unknown));
        }
        Ok(match (self.owners, self.epsilon, self.error) {
            (Some(_), Some(_), None) => Some(Unknown::Error),
            (Some(_), None, None) if self.bounded_locally() => Some(Unknown::Error),
            (Some(_), Some(_), Some(_)) => None,
            (Some(_), None, Some(_)) => Some(Unknown::Epsilon),
            (None, Some(_), Some(_)) => Some(Unknown::Owners),
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
        let wants_release = matches!(self.unknown(), Ok(Some(Unknown::Epsilon))) || !self.bounded_locally();
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

    fn check_error(&self, request: &Request, plan: &Plan) -> Result<(), Failure> {
        let Some(error) = self.error.filter(|&error| plan.best.sd > error) else { return Ok(()) };
        Err(plan::unattainable(request, error).into())
    }
}

impl Outcome {
    fn json(&self) -> Value {
        let mut document = choice_json(&self.plan.best, self.plan.minimum_batch);
        let alternative = |choice: &Choice| choice_json(choice, self.plan.minimum_batch);
        document["alternatives"] = self.plan.alternatives.iter().map(alternative).collect();
        document["solved"] = json!({"name": self.solved.0, "value": self.solved.1});
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
            self.trust_words(),
            self.families().render(),
            self.rule_words(),
            self.tradeoff_table(),
        )
    }

    /// The best of each family, the least error first; the plan is marked, wherever it stands.
    fn families(&self) -> Table {
        let mut choices: Vec<&Choice> = std::iter::once(&self.plan.best).chain(&self.plan.alternatives).collect();
        choices.sort_by(|one, other| one.sd.total_cmp(&other.sd));
        let least = choices[0].sd;
        let mut table = Table::new(&["mechanism", "sd", "above the least", ""]);
        for choice in choices {
            let more = match choice.sd / least - 1.0 {
                0.0 => "least".to_owned(),
                more => format!("+{}", display::percent(more, 2, Rounding::Up)),
            };
            let mark = if std::ptr::eq(choice, &self.plan.best) { "the plan" } else { "" };
            table.row([choice.mechanism.to_string(), readable(choice.sd), more, mark.to_owned()]);
        }
        table
    }

    /// Who has to be honest.
    fn trust_words(&self) -> String {
        let batch = grouped(self.plan.minimum_batch);
        if self.plan.trust == Trust::OneAggregator {
            let nobody = match self.plan.best.views.linked {
                Some(linked) => format!("an owner's answer gives away at most ε = {}", readable_up(linked)),
                None => "nothing protects an owner's answer".to_owned(),
            };
            return format!(
                "If one of the two aggregators is honest, what is published gives away at most ε = {}, δ = 0, whoever else is \
                 not.\nIf nobody is, {nobody}. Batches below {batch} are not released.",
                readable_up(self.plan.epsilon())
            );
        }
        let degraded: Vec<String> = self.plan.robustness.iter().map(robust).collect();
        let noise = if self.plan.best.channel.noise().is_some() { " and one honest aggregator" } else { "" };
        format!(
            "Certified for {} honest owners{noise}; batches below {batch} are not released.\n\
             With fewer honest owners than that, ε of the release is {}.",
            grouped(self.plan.claim_owners),
            degraded.join(", ")
        )
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

    fn solved_words(&self) -> String {
        match self.solved {
            ("epsilon", value) => format!("The least ε for that error: {}.", readable_up(value)),
            ("owners", value) if self.plan.trust == Trust::OneAggregator => {
                format!("{} owners are enough for that error; more of them only add to it.", grouped(value as u64))
            }
            ("owners", value) => format!("The fewest owners for that error: {}.", grouped(value as u64)),
            _ => self.gap_words(),
        }
    }

    /// How much better anything else could be.
    fn gap_words(&self) -> String {
        let which = match self.plan.trust {
            Trust::OneAggregator => "of one answer",
            Trust::Owners => "of the families below",
        };
        match self.plan.gap {
            Some(gap) => format!(
                "No mechanism {which} can have an error that is smaller by more than {} %.",
                readable_up(100.0 * gap)
            ),
            None if self.request.noise != Noise::None => {
                "How near the least error this is was not bounded: coins and noise together have no order.".to_owned()
            }
            None => "The objective is not the error; how near the least of it this is was not bounded.".to_owned(),
        }
    }

    fn rule_words(&self) -> String {
        match self.plan.rule {
            Rule::Best if matches!(self.request.objective, Objective::Paper { .. }) => {
                "The plan is the best of them by the paper's objective, which is not the error.".to_owned()
            }
            Rule::Best => "The plan is the best of them.".to_owned(),
            Rule::Simplest(_) => {
                format!("The plan is the simplest of those within {} % of the best.", 100.0 * plan::EQUAL)
            }
        }
    }
}

fn robust((honest, epsilon): &(Fraction, Option<f64>)) -> String {
    let epsilon = readable_up(*epsilon);
    format!("{epsilon} with {} %", 100.0 * honest.to_f64())
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
