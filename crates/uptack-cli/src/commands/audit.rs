//! `uptack audit`

use std::ffi::OsString;

use clap::Args;
use uptack::Channel;
use uptack::audit::{Audit, AuditCoins, Claims, Event, Finding, ForeignAudit, ForeignReport, Report, Verdict};
use uptack::estimate::Confidence;
use uptack::privacy::{Delta, Epsilon};
use uptack::simulate::Progress;
use uptack::{Fraction, answer_name, display};
use uptack_document::{AuditDocument, ForeignDocument};

use super::randomizer;
use crate::arguments::{confidence, count};
use crate::failure::Failure;
use crate::mechanism;
use crate::output::{Table, grouped, print, print_json, readable};
use crate::progress::{self, Step, watched};

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

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    match &arguments.mechanism {
        Some(mechanism) => run_sampler(arguments, mechanism, json),
        None => run_command(arguments, json),
    }
}

/// Audits somebody else's randomizer.
fn run_command(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let delta = arguments.claimed_delta;
    let audit = ForeignAudit {
        epsilon: arguments.claimed_epsilon.map(Epsilon::new).transpose()?,
        delta: if delta == 0.0 { None } else { Some(Delta::new(delta)?) },
        samples: arguments.samples.unwrap_or(SAMPLES_OF_COMMAND),
        confidence: arguments.confidence,
    };
    let report = watched("outputs", audit.samples, |progress| randomizer::listen(&arguments.command, audit, progress))?;
    let command: Vec<String> = arguments.command.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let command = command.join(" ");
    if json {
        print_json(&ForeignDocument::new(&command, &audit, &report))?;
    } else {
        print(&describe_foreign(&command, &audit, &report))?;
    }
    match report.verdict {
        Verdict::Consistent => Ok(()),
        Verdict::Violated => Err(Failure::environment("the audit contradicts what is claimed of the command")
            .with_hint(format!(
                "a sound one is accused with probability {} at most",
                readable(arguments.confidence.miss())
            ))),
    }
}

const SAMPLES: u64 = 10_000_000;
const SAMPLES_OF_COMMAND: u64 = 1_000_000;

fn run_sampler(arguments: &Arguments, mechanism: &str, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(mechanism)?;
    let delta = arguments.delta.to_f64();
    let audit = Audit {
        samples: arguments.samples.unwrap_or(SAMPLES),
        owners: arguments.owners,
        confidence: arguments.confidence,
        coins: arguments.seed.map_or(AuditCoins::System, AuditCoins::Seeded),
    };
    let claims = Claims::of(&named.channel, arguments.owners, delta)?;
    let report = examine(arguments, &audit, &named.channel, &claims)?;
    let mechanism = named.mechanism.to_string();
    if json {
        print_json(&AuditDocument::new(mechanism, &audit, delta, &report))?;
    } else {
        print(&describe(&mechanism, arguments, delta, &report))?;
    }
    conclude(&report, arguments.confidence)
}

#[cfg(debug_assertions)]
fn examine(arguments: &Arguments, audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report, Failure> {
    Ok(match arguments.broken {
        Some(control) => audit.run_broken(channel, claims, control)?,
        None => follow(audit, channel, claims)?,
    })
}

#[cfg(not(debug_assertions))]
fn examine(_: &Arguments, audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report, Failure> {
    follow(audit, channel, claims)
}

/// Runs the audit and shows how far it is.
fn follow(audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report, Failure> {
    let progress = Progress::default();
    let now = || Step { what: "calls of the sampler", done: progress.done(), all: audit.samples };
    Ok(progress::follow(now, || audit.run_with(channel, claims, &progress))?)
}

/// A sampler that does not keep its claims is a failure of the program.
fn conclude(report: &Report, confidence: Confidence) -> Result<(), Failure> {
    match report.verdict {
        Verdict::Consistent => Ok(()),
        Verdict::Violated => Err(Failure::environment("the audit contradicts what is claimed of the sampler")
            .with_hint(format!(
                "a sound sampler is accused with probability {} at most: run it again, and do not answer with a build \
                 that is accused twice",
                readable(confidence.miss())
            ))),
    }
}

fn describe(mechanism: &str, arguments: &Arguments, delta: f64, report: &Report) -> String {
    let mut views = Table::new(&["view", "claimed", "proved", "verdict"]);
    let mut view = |name: String, finding: &Finding| {
        let (claimed, proved) = (display::claim(finding.claimed), display::lower_end(finding.observed_lower));
        views.row([name, claimed, proved, verdict(finding.verdict).to_owned()]);
    };
    for (answer, finding) in report.answers.iter().enumerate() {
        view(format!("answer {}", answer_name(answer)), finding);
    }
    view("linked".to_owned(), &report.linked);
    if let Some(finding) = &report.one_aggregator {
        view("one honest aggregator".to_owned(), finding);
    }
    view(format!("release ({} owners, delta {})", grouped(arguments.owners), display::claim(delta)), &report.release);
    view("bytes of coins read".to_owned(), &report.coins.length);
    view("linked, with another owner's cell".to_owned(), &report.coins.neighbour);
    let mut checks = Table::new(&["check", "p-value", "verdict"]);
    for (name, fit) in
        [("the law drawn is the law stated", &report.law), ("owners draw independently", &report.coins.independence)]
    {
        checks.row([name.to_owned(), readable(fit.p_value), verdict(fit.verdict).to_owned()]);
    }
    if let Some(noise) = &report.noise {
        let name = "the noise drawn is the noise stated".to_owned();
        checks.row([name, readable(noise.p_value), verdict(noise.verdict).to_owned()]);
    }
    let replays = &report.coins.replays;
    checks.row([
        "coins read do not depend on the truth".to_owned(),
        format!("{} of {} replays differ", replays.differing, replays.replayed),
        verdict(replays.verdict).to_owned(),
    ]);
    format!(
        "{mechanism}\n\n\
         {} calls of the sampler; everything together at confidence {}\n\n{}\n{}\n{}{}\n",
        grouped(report.samples),
        arguments.confidence.level(),
        views.render(),
        checks.render(),
        evidence(report),
        verdict(report.verdict),
    )
}

fn describe_foreign(command: &str, audit: &ForeignAudit, report: &ForeignReport) -> String {
    let mut views = Table::new(&["seen", "claimed", "proved", "verdict"]);
    let seen = [
        ("the output", Some(&report.output)),
        ("its length", Some(&report.length)),
        ("its size", report.size.as_ref()),
    ];
    for (name, finding) in seen.into_iter().filter_map(|(name, finding)| Some((name, finding?))) {
        let (claimed, proved) = (display::claim(finding.claimed), display::lower_end(finding.observed_lower));
        views.row([name.to_owned(), claimed, proved, verdict(finding.verdict).to_owned()]);
    }
    let findings = [&report.output, &report.length].into_iter().chain(&report.size);
    let events = findings.filter(|finding| finding.is_violated()).filter_map(|finding| finding.event.as_ref());
    let lines: String = events.map(|event| format!("  {}\n", event_words(event))).collect();
    let against = if lines.is_empty() { lines } else { format!("against the claim:\n{lines}\n") };
    let delta = audit.delta.map_or(0.0, Delta::value);
    format!(
        "{command}\n\n{} outputs; delta {}; everything together at confidence {}\n\n{}\n{against}{}\n",
        grouped(report.samples),
        display::claim(delta),
        audit.confidence.level(),
        views.render(),
        verdict(report.verdict),
    )
}

fn event_words(event: &Event) -> String {
    let (yes, no) = (event.yes, event.no);
    format!("{}: {} of {} for yes, {} of {} for no", event.description, yes.hits, yes.trials, no.hits, no.trials)
}

/// What contradicts a claim, in words.
fn evidence(report: &Report) -> String {
    let views =
        report.answers.iter().chain([&report.linked, &report.release, &report.coins.length, &report.coins.neighbour]);
    let views = views.chain(&report.one_aggregator);
    let events =
        views.filter(|finding| finding.is_violated()).filter_map(|finding| finding.event.as_ref()).map(event_words);
    let fits = [&report.law, &report.coins.independence]
        .into_iter()
        .chain(&report.noise)
        .filter(|fit| fit.verdict == Verdict::Violated);
    let misfits = fits.filter_map(|fit| fit.worst.as_ref()).map(|worst| {
        format!("{}: {} of {}, stated probability {}", worst.what, worst.hits, worst.trials, readable(worst.stated))
    });
    let lines: String = events.chain(misfits).map(|line| format!("  {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("against the claims:\n{lines}\n") }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Consistent => "consistent",
        Verdict::Violated => "violated",
    }
}
