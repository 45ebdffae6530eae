//! `uptack audit`

use clap::Args;
use serde::Serialize;
use uptack::Channel;
use uptack::audit::{Audit, AuditCoins, Claims, CoinFindings, Finding, Fit, Report, Verdict};
use uptack::estimate::Confidence;
use uptack::simulate::Progress;
use uptack::{Fraction, answer_name, display};

use crate::arguments::{confidence, count};
use crate::failure::Failure;
use crate::mechanism;
use crate::output::{Table, grouped, print, print_json, readable};
use crate::progress::{self, Step};

/// Run the real sampler as an adversary would, and try to prove the privacy claims wrong
#[derive(Args)]
#[command(
    long_about = "Runs the real sampler, not the law, as an adversary would, and tries to prove the privacy claims wrong.

For each view it looks for the event that tells yes from no best and bounds the epsilon that this event proves from \
below. Further checks see whether the law drawn is the law stated, whether owners draw independently, and whether the \
number of coins read depends on the truth. Of mechanisms with noise it also attacks what one honest aggregator hides, and \
the draws of noise. All bounds and checks together hold with the stated confidence.

Exits with 0 if everything is consistent and with 2, after printing its findings, if anything is violated.",
    after_help = "Examples:
  uptack audit 'normal-form(f=0.5,r=0.01)'
  uptack audit 'randomized-response(t=0.8)' --samples 3e7 --owners 100 \\
    --delta 1e-3 --json
  uptack audit 'paired(b=0.5,sy=0.2,sn=0.05)' --seed 1
  uptack audit 'randomized-response(t=0.999) + laplace(scale=1)' --samples 1e6"
)]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    mechanism: String,
    /// How many calls of the sampler to spend; an owner of a batch counts as one
    #[arg(long, default_value = "1e7", value_parser = count)]
    samples: u64,
    /// The size of the crowd that is released, the target included
    #[arg(long, default_value = "20", value_parser = count)]
    owners: u64,
    /// The delta of the claim for the release
    #[arg(long, default_value = "1e-8")]
    delta: Fraction,
    /// How sure all bounds and checks together are
    #[arg(long, default_value = "0.999", value_parser = confidence)]
    confidence: Confidence,
    /// Toss reproducible coins, instead of the operating system's
    #[arg(long, value_parser = count)]
    seed: Option<u64>,
    /// Audit a sampler that is broken on purpose: last-output-unprotected, biased-threshold, reused-coin,
    /// truth-dependent-length or wrong-branch; with noise also noise-averaged, noise-scale, noise-one-sided or noise-missing
    #[cfg(feature = "broken-controls")]
    #[arg(long, value_name = "KIND")]
    broken: Option<uptack::audit::BrokenControl>,
}

#[derive(Serialize)]
struct Document<'a> {
    mechanism: String,
    owners: u64,
    delta: f64,
    confidence: f64,
    samples: u64,
    seed: Option<u64>,
    views: Views<'a>,
    law: &'a Fit,
    noise: Option<&'a Fit>,
    coins: &'a CoinFindings,
    verdict: Verdict,
}

#[derive(Serialize)]
struct Views<'a> {
    answers: &'a [Finding],
    linked: &'a Finding,
    one_aggregator: Option<&'a Finding>,
    release: &'a Finding,
}

pub(crate) fn run(arguments: &Arguments, json: bool) -> Result<(), Failure> {
    let named = mechanism::read(&arguments.mechanism)?;
    let delta = arguments.delta.to_f64();
    let audit = Audit {
        samples: arguments.samples,
        owners: arguments.owners,
        confidence: arguments.confidence,
        coins: arguments.seed.map_or(AuditCoins::System, AuditCoins::Seeded),
    };
    let claims = Claims::of(&named.channel, arguments.owners, delta)?;
    let report = examine(arguments, &audit, &named.channel, &claims)?;
    let mechanism = named.mechanism.to_string();
    if json {
        print_json(&document(mechanism, arguments, delta, &report))?;
    } else {
        print(&describe(&mechanism, arguments, delta, &report))?;
    }
    conclude(&report, arguments.confidence)
}

#[cfg(feature = "broken-controls")]
fn examine(arguments: &Arguments, audit: &Audit, channel: &Channel, claims: &Claims) -> Result<Report, Failure> {
    Ok(match arguments.broken {
        Some(control) => audit.run_broken(channel, claims, control)?,
        None => follow(audit, channel, claims)?,
    })
}

#[cfg(not(feature = "broken-controls"))]
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

fn document<'a>(mechanism: String, arguments: &Arguments, delta: f64, report: &'a Report) -> Document<'a> {
    Document {
        mechanism,
        owners: arguments.owners,
        delta,
        confidence: arguments.confidence.level(),
        samples: report.samples,
        seed: arguments.seed,
        views: Views {
            answers: &report.answers,
            linked: &report.linked,
            one_aggregator: report.one_aggregator.as_ref(),
            release: &report.release,
        },
        law: &report.law,
        noise: report.noise.as_ref(),
        coins: &report.coins,
        verdict: report.verdict,
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

/// What contradicts a claim, in words.
fn evidence(report: &Report) -> String {
    let views =
        report.answers.iter().chain([&report.linked, &report.release, &report.coins.length, &report.coins.neighbour]);
    let views = views.chain(&report.one_aggregator);
    let events =
        views.filter(|finding| finding.is_violated()).filter_map(|finding| finding.event.as_ref()).map(|event| {
            let (yes, no) = (event.yes, event.no);
            format!(
                "{}: {} of {} for yes, {} of {} for no",
                event.description, yes.hits, yes.trials, no.hits, no.trials
            )
        });
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
