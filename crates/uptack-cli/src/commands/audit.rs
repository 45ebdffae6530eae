//! `uptack audit`

use std::ffi::OsString;

use clap::Args;
use uptack::Channel;
use uptack::audit::{Audit, AuditCoins, Claims, Event, Finding, Fit, ForeignAudit, ForeignReport, Report, Verdict};
use uptack::estimate::Confidence;
use uptack::privacy::{Delta, Epsilon};
use uptack::simulate::Progress;
use uptack::{Fraction, Mechanism, answer_name, display};
use uptack_document::{AuditDocument, ForeignDocument};

use super::randomizer;
use crate::arguments::{confidence, count};
use crate::failure::{Failure, Result};
use crate::layout::joined;
use crate::mechanism;
use crate::output::{Table, grouped, print_result, readable};
use crate::progress::watched;

/// Run the real sampler as an adversary would, and try to prove the privacy claims wrong
#[derive(Args)]
#[command(
    long_about = "Runs the real sampler, not the law, as an adversary would, and tries to prove the privacy claims wrong.

For each view it looks for the event that tells yes from no best and bounds the epsilon that this event proves from \
below. Further checks see whether the law drawn is the law stated, whether owners draw independently, and whether the \
number of coins read depends on the truth. Of mechanisms with noise it also attacks what one honest aggregator hides, and \
the draws of noise. All bounds and checks together hold with the stated confidence.

With -- COMMAND anybody's randomizer is audited instead: it gets one truth per line, 1 or 0, on standard input and writes \
one line for each to standard output. The adversary looks at the line, at its length and, if lines are numbers, at their size.

Exits with 0 if everything is consistent and with 2, after printing its findings, if anything is violated.",
    after_help = "Examples:
  uptack audit 'normal-form(f=0.5,r=0.01)'
  uptack audit 'randomized-response(t=0.8)' --samples 3e7 --owners 100 \\
    --delta 1e-3 --json
  uptack audit 'paired(b=0.5,sy=0.2,sn=0.05)' --seed 1
  uptack audit 'randomized-response(t=0.999) + laplace(scale=1)' --samples 1e6
  uptack audit --claimed-epsilon 1 --samples 1e5 -- awk \\
    'BEGIN {srand(1)} {print (rand() < 0.73) ? $1 : 1 - $1}'"
)]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    mechanism: Option<String>,
    /// How many calls of the sampler to spend; an owner of a batch counts as one. By default 1e7, of a command 1e6
    #[arg(long, value_parser = count)]
    samples: Option<u64>,
    /// The size of the crowd that is released, the target included
    #[arg(long, default_value = "20", value_parser = count, conflicts_with = "command")]
    owners: u64,
    /// The delta of the claim for the release
    #[arg(long, default_value = "1e-8", conflicts_with = "command")]
    delta: Fraction,
    /// How sure all bounds and checks together are
    #[arg(long, default_value = "0.999", value_parser = confidence)]
    confidence: Confidence,
    /// Toss reproducible coins, instead of the operating system's
    #[arg(long, value_parser = count, conflicts_with = "command")]
    seed: Option<u64>,
    /// The epsilon that is claimed of a command's output; without it the audit says what the outputs prove
    #[arg(long, value_name = "EPSILON", requires = "command")]
    claimed_epsilon: Option<f64>,
    /// The delta that is claimed with it
    #[arg(long, value_name = "DELTA", default_value = "0", requires = "command")]
    claimed_delta: f64,
    /// A randomizer of anybody's, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Audit a sampler that is broken on purpose: last-output-unprotected, biased-threshold, reused-coin,
    /// truth-dependent-length or wrong-branch; with noise also noise-averaged, noise-scale, noise-one-sided or noise-missing
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "KIND", hide = true)]
    broken: Option<uptack::audit::BrokenControl>,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<()> {
    match &arguments.mechanism {
        Some(mechanism) => run_sampler(arguments, mechanism, json),
        None => run_command(arguments, json),
    }
}

impl Arguments {
    fn of_command(&self) -> Result<ForeignAudit> {
        let delta = Some(self.claimed_delta).filter(|delta| *delta != 0.0);
        Ok(ForeignAudit {
            epsilon: self.claimed_epsilon.map(Epsilon::new).transpose()?,
            delta: delta.map(Delta::new).transpose()?,
            samples: self.samples.unwrap_or(SAMPLES_OF_COMMAND),
            confidence: self.confidence,
        })
    }

    fn of_sampler(&self) -> Audit {
        Audit {
            samples: self.samples.unwrap_or(SAMPLES),
            owners: self.owners,
            confidence: self.confidence,
            coins: self.seed.map_or(AuditCoins::System, AuditCoins::Seeded),
        }
    }

    fn command_line(&self) -> String {
        joined(self.command.iter().map(|part| part.to_string_lossy()), " ")
    }
}

const SAMPLES: u64 = 10_000_000;
const SAMPLES_OF_COMMAND: u64 = 1_000_000;

/// Audits somebody else's randomizer.
fn run_command(arguments: &Arguments, json: bool) -> Result<()> {
    let audit = arguments.of_command()?;
    let report = watched("outputs", audit.samples, |progress| randomizer::listen(&arguments.command, audit, progress))?;
    let command = arguments.command_line();
    let document = ForeignDocument::new(&command, &audit, &report);
    print_result(json, &document, || describe_foreign(&command, &audit, &report))?;
    conclude_foreign(report.verdict, arguments.confidence)
}

fn run_sampler(arguments: &Arguments, mechanism: &str, json: bool) -> Result<()> {
    let named = mechanism::read(mechanism)?;
    let delta = arguments.delta.to_f64();
    let audit = arguments.of_sampler();
    let claims = Claims::of(&named.channel, arguments.owners, delta)?;
    let report = examine(arguments, &audit, &named.channel, &claims)?;
    let document = AuditDocument::new(named.mechanism.to_string(), &audit, delta, &report);
    print_result(json, &document, || describe(&named.mechanism, &audit, delta, &report))?;
    conclude(report.verdict, arguments.confidence)
}

#[cfg(debug_assertions)]
fn examine(arguments: &Arguments, audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report> {
    Ok(match arguments.broken {
        Some(control) => audit.run_broken(channel, claims, control)?,
        None => follow(audit, channel, claims)?,
    })
}

#[cfg(not(debug_assertions))]
fn examine(_: &Arguments, audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report> {
    follow(audit, channel, claims)
}

/// Runs the audit and shows how far it is.
fn follow(audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report> {
    let work = |progress: &Progress| audit.run_with(channel, claims, progress);
    Ok(watched("calls of the sampler", audit.samples, work)?)
}

/// A sampler that does not keep its claims is a failure of the program.
fn conclude(verdict: Verdict, confidence: Confidence) -> Result<()> {
    if verdict == Verdict::Consistent {
        return Ok(());
    }
    Err(Failure::environment("the audit contradicts what is claimed of the sampler").with_hint(format!(
        "a sound sampler is accused with probability {} at most: run it again, and do not answer with a build \
         that is accused twice",
        readable(confidence.miss())
    )))
}

fn conclude_foreign(verdict: Verdict, confidence: Confidence) -> Result<()> {
    if verdict == Verdict::Consistent {
        return Ok(());
    }
    Err(Failure::environment("the audit contradicts what is claimed of the command")
        .with_hint(format!("a sound one is accused with probability {} at most", readable(confidence.miss()))))
}

fn describe(mechanism: &Mechanism, audit: &Audit, delta: f64, report: &Report) -> String {
    format!(
        "{mechanism}\n\n\
         {} calls of the sampler; everything together at confidence {}\n\n{}\n{}\n{}{}\n",
        grouped(report.samples),
        audit.confidence.level(),
        views_table(report, audit.owners, delta).render(),
        checks_table(report).render(),
        evidence(report),
        verdict(report.verdict),
    )
}

/// One row per view: what is claimed of it, and what the audit proves.
fn views_table(report: &Report, owners: u64, delta: f64) -> Table {
    let mut table = Table::new(&["view", "claimed", "proved", "verdict"]);
    for (answer, finding) in report.answers.iter().enumerate() {
        table.row(finding_row(&format!("answer {}", answer_name(answer)), finding));
    }
    table.row(finding_row("linked", &report.linked));
    if let Some(finding) = &report.one_aggregator {
        table.row(finding_row("one honest aggregator", finding));
    }
    let release = format!("release ({} owners, delta {})", grouped(owners), display::claim(delta));
    table.row(finding_row(&release, &report.release));
    table.row(finding_row("bytes of coins read", &report.coins.length));
    table.row(finding_row("linked, with another owner's cell", &report.coins.neighbour));
    table
}

fn checks_table(report: &Report) -> Table {
    let mut table = Table::new(&["check", "p-value", "verdict"]);
    table.row(fit_row("the law drawn is the law stated", &report.law));
    table.row(fit_row("owners draw independently", &report.coins.independence));
    if let Some(noise) = &report.noise {
        table.row(fit_row("the noise drawn is the noise stated", noise));
    }
    let replays = &report.coins.replays;
    let differing = format!("{} of {} replays differ", replays.differing, replays.replayed);
    table.row(["coins read do not depend on the truth", &differing, verdict(replays.verdict)]);
    table
}

fn finding_row(name: &str, finding: &Finding) -> [String; 4] {
    [
        name.to_owned(),
        display::claim(finding.claimed),
        display::lower_end(finding.observed_lower),
        verdict(finding.verdict).to_owned(),
    ]
}

fn fit_row(name: &str, fit: &Fit) -> [String; 3] {
    [name.to_owned(), readable(fit.p_value), verdict(fit.verdict).to_owned()]
}

fn describe_foreign(command: &str, audit: &ForeignAudit, report: &ForeignReport) -> String {
    let findings = [&report.output, &report.length].into_iter().chain(&report.size);
    format!(
        "{command}\n\n{} outputs; delta {}; everything together at confidence {}\n\n{}\n{}{}\n",
        grouped(report.samples),
        display::claim(audit.delta.map_or(0.0, Delta::value)),
        audit.confidence.level(),
        foreign_table(report).render(),
        listed("against the claim", violations(findings)),
        verdict(report.verdict),
    )
}

/// One row per adversary, named by what it looks at.
fn foreign_table(report: &ForeignReport) -> Table {
    let mut table = Table::new(&["seen", "claimed", "proved", "verdict"]);
    table.row(finding_row("the output", &report.output));
    table.row(finding_row("its length", &report.length));
    if let Some(finding) = &report.size {
        table.row(finding_row("its size", finding));
    }
    table
}

/// What contradicts a claim, in words.
fn evidence(report: &Report) -> String {
    let coins = &report.coins;
    let views = report.answers.iter().chain([&report.linked, &report.release, &coins.length, &coins.neighbour]);
    let fits = [&report.law, &coins.independence].into_iter().chain(&report.noise);
    listed("against the claims", violations(views.chain(&report.one_aggregator)).chain(misfits(fits)))
}

/// The events that contradict what is claimed.
fn violations<'a>(findings: impl Iterator<Item = &'a Finding>) -> impl Iterator<Item = String> {
    findings.filter(|finding| finding.is_violated()).filter_map(|finding| finding.event.as_ref()).map(event_words)
}

fn event_words(event: &Event) -> String {
    let (yes, no) = (event.yes, event.no);
    format!("{}: {} of {} for yes, {} of {} for no", event.description, yes.hits, yes.trials, no.hits, no.trials)
}

/// The worst deviation of each law that does not fit.
fn misfits<'a>(fits: impl Iterator<Item = &'a Fit>) -> impl Iterator<Item = String> {
    let violated = fits.filter(|fit| fit.verdict == Verdict::Violated);
    violated.filter_map(|fit| fit.worst.as_ref()).map(|worst| {
        format!("{}: {} of {}, stated probability {}", worst.what, worst.hits, worst.trials, readable(worst.stated))
    })
}

/// The lines under a heading; nothing if there are none.
fn listed(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("{heading}:\n{lines}\n") }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Consistent => "consistent",
        Verdict::Violated => "violated",
    }
}
