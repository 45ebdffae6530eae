//! `uptack plan`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::Fraction;
use uptack::card::Card;
use uptack::display::{self, Rounding};
use uptack::plan::{self, Choice, Form, Noise, Objective, Over, Rule, Trust};
use uptack_chart::Sheet;
use uptack_document::{Outcome, PlanError, Unknown, Wanted, plan_sheet, sheet_points};

use crate::arguments::{count, fraction, range};
use crate::card_file;
use crate::failure::Failure;
use crate::output::{Table, check_writable, grouped, print, print_json, readable, readable_up, write_whole};
use crate::plan_chart::Picture;
use crate::progress::watched;
use crate::trust_arguments::TrustArguments;
use crate::views::views_table;

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
    /// What of the error over a range of yes counts
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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let picture = arguments.chart.as_deref().map(Picture::of).transpose()?;
    arguments.chart.as_deref().map_or(Ok(()), check_writable)?;
    arguments.out.as_deref().map_or(Ok(()), card_file::check_place)?;
    let outcome =
        watched("of the plan", plan::PROGRESS, |progress| arguments.wanted().plan(progress)).map_err(refused)?;
    let sheet = picture.map(|_| drawn(&outcome));
    if let (Some(path), Some(picture), Some(sheet)) = (&arguments.chart, picture, &sheet) {
        write_whole(path, &picture.bytes(sheet)?)?;
    }
    if let Some(path) = &arguments.out {
        card_file::write(path, &Card::new(&outcome.request, &outcome.plan))?;
    }
    if json { print_json(&outcome.json()) } else { print(&Told(&outcome).describe(arguments.out.as_deref())) }
}

fn drawn(outcome: &Outcome) -> Sheet {
    let points = sheet_points(&outcome.request);
    watched("points of the chart", points, |progress| plan_sheet(&outcome.request, &outcome.plan, progress))
}

impl Arguments {
    fn wanted(&self) -> Wanted {
        Wanted {
            owners: self.owners,
            over: match self.over {
                OverArgument::Worst => Over::Worst,
                OverArgument::Mean => Over::Mean,
            },
            epsilon: self.epsilon,
            delta: self.delta,
            answer_epsilon: self.trust.answer_epsilon,
            trust: self.trust.wanted(),
            participation: self.participation.clone(),
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch,
            error: self.error,
            solve: self.solve.map(|unknown| match unknown {
                UnknownArgument::Error => Unknown::Error,
                UnknownArgument::Epsilon => Unknown::Epsilon,
                UnknownArgument::Owners => Unknown::Owners,
            }),
            form: self.form.map(|form| match form {
                FormArgument::One => Form::One,
                FormArgument::Several => Form::Several,
                FormArgument::Any => Form::Any,
            }),
            paper_objective: matches!(self.objective, ObjectiveArgument::Paper),
            family: self.mechanism.clone(),
            ..Wanted::new(self.yes)
        }
    }
}

/// Why there is no plan, in the words of the options.
fn refused(error: PlanError) -> Failure {
    const ERROR: &str = "it is the largest standard deviation of the estimate, as in --error 8";
    match error {
        PlanError::TooLittle => Failure::request("too little is known to plan")
            .with_hint("give two of --owners, --epsilon and --error, or --owners with a local epsilon"),
        PlanError::NoError => Failure::request("--error is needed to solve for the rest").with_hint(ERROR),
        PlanError::BadError => Failure::request("--error: it must be a positive number").with_hint(ERROR),
        PlanError::BatchWithoutOwners => Failure::request("a minimum batch needs --owners")
            .with_hint("where owners are solved for, the minimum batch is all of them"),
        PlanError::Refused(error) => error.into(),
    }
}

/// An outcome in words.
struct Told<'a>(&'a Outcome);

impl Told<'_> {
    fn describe(&self, card: Option<&Path>) -> String {
        let best = &self.0.plan.best;
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
        let mut choices: Vec<&Choice> = std::iter::once(&self.0.plan.best).chain(&self.0.plan.alternatives).collect();
        choices.sort_by(|one, other| one.sd.total_cmp(&other.sd));
        let least = choices[0].sd;
        let mut table = Table::new(&["mechanism", "sd", "above the least", ""]);
        for choice in choices {
            let more = match choice.sd / least - 1.0 {
                0.0 => "least".to_owned(),
                more => format!("+{}", display::percent(more, 2, Rounding::Up)),
            };
            let mark = if std::ptr::eq(choice, &self.0.plan.best) { "the plan" } else { "" };
            table.row([choice.mechanism.to_string(), readable(choice.sd), more, mark.to_owned()]);
        }
        table
    }

    /// Who has to be honest.
    fn trust_words(&self) -> String {
        let batch = grouped(self.0.plan.minimum_batch);
        if self.0.plan.trust == Trust::OneAggregator {
            let nobody = match self.0.plan.best.views.linked {
                Some(linked) => format!("an owner's answer gives away at most ε = {}", readable_up(linked)),
                None => "nothing protects an owner's answer".to_owned(),
            };
            return format!(
                "If one of the two aggregators is honest, what is published gives away at most ε = {}, δ = 0, whoever else is \
                 not.\nIf nobody is, {nobody}. Batches below {batch} are not released.",
                readable_up(self.0.plan.epsilon())
            );
        }
        let degraded: Vec<String> = self.0.plan.robustness.iter().map(robust).collect();
        let noise = if self.0.plan.best.channel.noise().is_some() { " and one honest aggregator" } else { "" };
        format!(
            "Certified for {} honest owners{noise}; batches below {batch} are not released.\n\
             With fewer honest owners than that, ε of the release is {}.",
            grouped(self.0.plan.claim_owners),
            degraded.join(", ")
        )
    }

    /// What a bound on the linked ε costs; nothing without noise.
    fn tradeoff_table(&self) -> String {
        if self.0.plan.tradeoff.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["linked ε at most", "sd", ""]);
        for entry in &self.0.plan.tradeoff {
            let linked = entry.linked.map_or("none".to_owned(), |linked| linked.to_string());
            let planned = if entry.linked == self.0.request.linked_epsilon { "the plan" } else { "" };
            table.row([linked, readable(entry.sd), planned.to_owned()]);
        }
        format!("\nWhat protection costs that holds if nobody is honest:\n\n{}", table.render())
    }

    fn solved_words(&self) -> String {
        match self.0.solved {
            ("epsilon", value) => format!("The least ε for that error: {}.", readable_up(value)),
            ("owners", value) if self.0.plan.trust == Trust::OneAggregator => {
                format!("{} owners are enough for that error; more of them only add to it.", grouped(value as u64))
            }
            ("owners", value) => format!("The fewest owners for that error: {}.", grouped(value as u64)),
            _ => self.gap_words(),
        }
    }

    /// How much better anything else could be.
    fn gap_words(&self) -> String {
        let which = match self.0.plan.trust {
            Trust::OneAggregator => "of one answer",
            Trust::Owners => "of the families below",
        };
        match self.0.plan.gap {
            Some(gap) => format!(
                "No mechanism {which} can have an error that is smaller by more than {} %.",
                readable_up(100.0 * gap)
            ),
            None if self.0.request.noise != Noise::None => {
                "How near the least error this is was not bounded: coins and noise together have no order.".to_owned()
            }
            None => "The objective is not the error; how near the least of it this is was not bounded.".to_owned(),
        }
    }

    fn rule_words(&self) -> String {
        match self.0.plan.rule {
            Rule::Best if matches!(self.0.request.objective, Objective::Paper { .. }) => {
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
