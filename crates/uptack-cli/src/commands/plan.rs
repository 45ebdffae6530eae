//! `uptack plan`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use uptack::Fraction;
use uptack::card::Card;
use uptack::plan::{self, AnySolved, Asked, Form, Over, Solved, Unknown};
use uptack_chart::Sheet;
use uptack_document::{PlanError, Purpose, Wanted, any_plan_json, plan_json, plan_sheet, sheet_points};

use super::contributions;
use super::privacy::views_table;
use crate::arguments::{TrustArguments, count, fraction, number, range};
use crate::choices::OptionsArgument;
use crate::failure::{Failure, Result};
use crate::output::{ChartFile, Table, check_card_path, print_result, readable, write_card};
use crate::progress::watched;

/// Choose the best mechanism, and certify what it gives away
///
/// Whichever of --error, --epsilon and --owners is left out is solved for; with all three given the plan is checked. With
/// --options or --counts, several counts are published, and the plan is for everything together.
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
  uptack plan --owners 50000 --yes 500 --linked-epsilon 1.5
  uptack plan --options car,bus,bike,walk --owners 9000 --yes 1500 --epsilon 1
  uptack plan --counts 288 --most-yes 2 --owners 50000 --yes 100 --epsilon 1 \\
    --linked-epsilon 12")]
pub(crate) struct Arguments {
    /// How many owners will answer
    #[arg(long, value_parser = count)]
    owners: Option<u64>,
    /// Roughly how many of them would say yes, or have one of the options: a number, or a range such as 0..500
    #[arg(long, value_parser = range)]
    yes: (u64, u64),
    /// Each owner has one of these options: names, a file with one name per line, or how many there are
    #[arg(long, value_name = "K|A,B,…|FILE")]
    options: Option<OptionsArgument>,
    /// This many counts are published, such as the questions of a ballot or the windows of a series
    #[arg(long, value_name = "C", conflicts_with = "options", value_parser = count)]
    counts: Option<u64>,
    /// To how many of the counts one owner adds at most; by default one
    #[arg(long, value_name = "N", requires = "counts", conflicts_with = "options", value_parser = count)]
    most_yes: Option<u64>,
    /// The largest ε of the published counts
    #[arg(long, value_parser = number)]
    epsilon: Option<f64>,
    /// The δ of the published counts
    #[arg(long, default_value = "1e-8", value_parser = number)]
    delta: f64,
    #[command(flatten)]
    trust: TrustArguments,
    /// The largest share of owners who take part
    #[arg(long, value_parser = fraction)]
    participation: Option<Fraction>,
    /// The share of owners assumed to flip their coins as they should
    #[arg(long, default_value = "1", value_parser = fraction)]
    honest: Fraction,
    /// The smallest batch that may be released; by default all owners
    #[arg(long, value_parser = count)]
    minimum_batch: Option<u64>,
    /// The largest standard deviation of the estimate
    #[arg(long, value_parser = number)]
    error: Option<f64>,
    /// What to solve for; by default what is left out
    #[arg(long, value_enum)]
    solve: Option<UnknownArgument>,
    /// How many answers an owner writes; by default any number if --answer-epsilon is given, else one
    #[arg(long, value_enum)]
    form: Option<FormArgument>,
    /// What is minimized
    #[arg(long, value_enum, default_value = "sd")]
    objective: ObjectiveArgument,
    /// Which error counts if --yes is a range
    #[arg(long, value_enum, default_value = "worst")]
    over: OverArgument,
    /// Consider only this family of mechanisms
    #[arg(long)]
    mechanism: Option<String>,
    /// Write a chart of the error against ε and against the owners, as .svg or .png
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Write the query card to this file, as TOML or JSON by its extension
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnknownArgument {
    Error,
    Epsilon,
    Owners,
}

impl From<UnknownArgument> for Unknown {
    fn from(argument: UnknownArgument) -> Self {
        match argument {
            UnknownArgument::Error => Self::Error,
            UnknownArgument::Epsilon => Self::Epsilon,
            UnknownArgument::Owners => Self::Owners,
        }
    }
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

impl From<FormArgument> for Form {
    fn from(argument: FormArgument) -> Self {
        match argument {
            FormArgument::One => Self::One,
            FormArgument::Several => Self::Several,
            FormArgument::Any => Self::Any,
        }
    }
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
    /// The largest standard deviation in the range
    Worst,
    /// The mean of the standard deviations at all whole numbers of the range
    Mean,
}

impl From<OverArgument> for Over {
    fn from(argument: OverArgument) -> Self {
        match argument {
            OverArgument::Worst => Self::Worst,
            OverArgument::Mean => Self::Mean,
        }
    }
}

/// A solved plan, as text.
struct PlanText(Solved);

impl std::ops::Deref for PlanText {
    type Target = Solved;

    fn deref(&self) -> &Solved {
        &self.0
    }
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    let chart = arguments.chart.as_deref().map(ChartFile::new).transpose()?;
    arguments.out.as_deref().map_or(Ok(()), check_card_path)?;
    let asked = arguments.asked()?;
    if asked != Asked::YesNo {
        return arguments.run_contributions(asked, json);
    }
    let outcome = PlanText(arguments.plan()?);
    if let Some(chart) = chart {
        chart.write(&drawn(&outcome))?;
    }
    if let Some(path) = &arguments.out {
        write_card(path, &Card::new(&outcome.request, &outcome.plan))?;
    }
    print_result(json, &plan_json(&outcome), || outcome.describe(arguments.out.as_deref()))
}

fn drawn(solved: &Solved) -> Sheet {
    let points = sheet_points(&solved.request, &solved.plan);
    watched("points of the chart", points, |progress| plan_sheet(&solved.request, &solved.plan, progress))
}

impl Arguments {
    /// What is asked: a yes/no question, unless options or counts are given.
    fn asked(&self) -> Result<Asked> {
        // Numbers that are too large are refused by the planner, like those that are too small.
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(match (&self.options, self.counts) {
            (Some(options), _) => Asked::Options(number(options.names()?.len() as u64)),
            (None, Some(counts)) => Asked::Counts { counts: number(counts), most: number(self.most_yes.unwrap_or(1)) },
            (None, None) => Asked::YesNo,
        })
    }

    fn run_contributions(&self, asked: Asked, json: bool) -> Result<()> {
        self.check_contributions()?;
        let wanted = Wanted { asked, ..self.wanted() };
        let solved = watched("of the plan", plan::PROGRESS, |progress| wanted.plan_any(progress)).map_err(refused)?;
        let document = any_plan_json(&solved)?;
        match solved {
            AnySolved::YesNo(solved) => print_result(json, &document, || PlanText(*solved).describe(None)),
            AnySolved::Contributions(solved) => contributions::print_plan(&solved, &document, json),
        }
    }

    /// Refuses what only plans of yes/no questions have.
    fn check_contributions(&self) -> Result<()> {
        let given = [
            (self.out.is_some(), "--out"),
            (self.chart.is_some(), "--chart"),
            (self.mechanism.is_some(), "--mechanism"),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, "--out")) => {
                Err(Failure::request("--out: cards ask yes/no questions, and not for options or counts")
                    .with_hint("leave it out; --json prints the whole plan"))
            }
            Some((_, option)) => Err(Failure::request(format!("{option}: it is for plans of yes/no questions"))
                .with_hint("leave it out, or plan without --options and --counts")),
            None => Ok(()),
        }
    }

    fn plan(&self) -> Result<Solved> {
        watched("of the plan", plan::PROGRESS, |progress| self.wanted().plan(progress)).map_err(refused)
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            owners: self.owners,
            over: self.over.into(),
            epsilon: self.epsilon,
            delta: self.delta,
            answer_epsilon: self.trust.answer_epsilon,
            trust: self.trust.wanted(),
            participation: self.participation.clone(),
            honest: self.honest.clone(),
            minimum_batch: self.minimum_batch,
            error: self.error,
            solve: self.solve.map(Unknown::from),
            form: self.form.map(Form::from),
            paper_objective: matches!(self.objective, ObjectiveArgument::Paper),
            family: self.mechanism.clone(),
            ..Wanted::new(Purpose::Comparing, self.yes)
        }
    }
}

/// Why there is no plan, in the words of the options.
pub(crate) fn refused(error: PlanError) -> Failure {
    const ERROR: &str = "it is the largest standard deviation of the estimate, as in --error 8";
    match error {
        PlanError::TooLittle => Failure::request("too little is known to plan")
            .with_hint("give two of --owners, --epsilon and --error, or --owners with a local epsilon"),
        PlanError::NoError => Failure::request("--error is needed to solve for the rest").with_hint(ERROR),
        PlanError::BadError => Failure::request("--error: it must be a positive number").with_hint(ERROR),
        PlanError::BatchWithoutOwners => Failure::request("a minimum batch needs --owners")
            .with_hint("where owners are solved for, the minimum batch is all of them"),
        PlanError::OutOfRange { error, .. } | PlanError::Refused(error) => error.into(),
    }
}

impl PlanText {
    fn describe(&self, card: Option<&Path>) -> String {
        let best = &self.plan.best;
        let linked = self.linked_words().map(|words| format!("{words}\n")).unwrap_or_default();
        let written = card.map(|path| format!("\nThe card was written to {}.\n", path.display())).unwrap_or_default();
        format!(
            "{}\n\nError: {} (standard deviation), ± {} at 95 %.\n{}\n{}\n{linked}\n{}\n{}\n{}\n{}{written}",
            best.mechanism,
            readable(best.sd),
            readable(best.interval95_halfwidth),
            self.solved_words(),
            self.trust_words().join("\n"),
            views_table(&best.views),
            self.families_table().render(),
            self.rule_words(),
            self.tradeoff_table(),
        )
    }

    /// The best of each family; the plan is marked, wherever it stands.
    fn families_table(&self) -> Table {
        let rows = self.families().into_iter().map(|(choice, more)| {
            let is_plan = std::ptr::eq(choice, &self.plan.best);
            [choice.mechanism.to_string(), readable(choice.sd), more, contributions::plan_mark(is_plan)]
        });
        Table::new(&["mechanism", "sd", "above the least", ""]).with_rows(rows)
    }

    fn tradeoff_table(&self) -> String {
        contributions::tradeoff_table(&self.plan.tradeoff, self.request.linked_epsilon)
    }
}
