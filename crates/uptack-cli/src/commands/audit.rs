//! `uptack audit`, of our sampler or of somebody else's randomizer: truths on its standard input, outputs on its standard
//! output, one line each.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use uptack::Progress;
use uptack::audit::{
    Audit, AuditCoins, ClaimedEpsilons, Event, Finding, Fit, ForeignAudit, ForeignOutputs, ForeignReport, Report,
    Verdict,
};
use uptack::contribution::Contributions;
use uptack::estimate::Confidence;
use uptack::privacy::{Delta, Epsilon};
use uptack::{Channel, Fraction, answer_name, display};
use uptack_document::{AuditDocument, ForeignDocument};

use crate::arguments::{confidence, count, number};
use crate::failure::{Failure, Result};
use crate::input::{Loaded, LoadedMechanism, read_any_mechanism};
use crate::layout::joined;
use crate::output::{Table, grouped, print_result, readable};
use crate::progress::watched;

/// Run the real sampler as an adversary would, and try to disprove the privacy claims
#[derive(Args)]
#[command(
    long_about = "Runs the real sampler, not a model of it, as an adversary would, and tries to disprove the privacy claims.

For each view, it looks for the event that best tells yes from no, and computes a lower bound on the epsilon that this \
event proves. Further checks test whether outputs follow the stated law, whether owners draw independently, and whether \
the number of coins read depends on the truth. Of a mechanism with options it tells some of them apart. For mechanisms with noise it also attacks what one honest aggregator \
hides, and tests the draws of noise. All bounds and checks together hold with the stated confidence.

With -- COMMAND, any other randomizer is audited instead: it gets one truth per line, 1 or 0, on standard input, and \
writes one line for each to standard output. The adversary looks at the line, at its length and, if lines are numbers, at their size.

Exits with 0 if everything is consistent and with 2, after printing its findings, if anything is violated.",
    after_help = "Examples:
  uptack audit 'normal-form(f=0.5,r=0.01)'
  uptack audit 'randomized-response(t=0.8)' --samples 3e7 --owners 100 \\
    --delta 1e-3 --json
  uptack audit 'paired(b=0.5,sy=0.2,sn=0.05)' --seed 1
  uptack audit 'randomized-response(t=0.999) + laplace(scale=1)' --samples 1e6
  uptack audit 'choice(k=4,r=0.01) + laplace(scale=2)' --samples 1e6
  uptack audit --claimed-epsilon 1 --samples 1e5 -- awk \\
    'BEGIN {srand(1)} {print (rand() < 0.73) ? $1 : 1 - $1}'"
)]
pub(crate) struct Arguments {
    /// name(key=value, …), or a file that `uptack channel --json` wrote
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    mechanism: Option<String>,
    /// How many calls of the sampler to make; each owner of a batch counts as one. By default 1e7, or 1e6 for a command
    #[arg(long, value_parser = count)]
    samples: Option<u64>,
    /// The size of the crowd whose release is attacked, including the target
    #[arg(long, default_value = "20", value_parser = count, conflicts_with = "command")]
    owners: u64,
    /// The delta of the claim for the release
    #[arg(long, default_value = "1e-8", conflicts_with = "command")]
    delta: Fraction,
    /// The confidence with which all bounds and checks hold together
    #[arg(long, default_value = "0.999", value_parser = confidence)]
    confidence: Confidence,
    /// Flip reproducible coins with this seed, instead of the operating system's
    #[arg(long, value_parser = count, conflicts_with = "command")]
    seed: Option<u64>,
    /// The epsilon that is claimed for the command's output; without it, the audit reports what the outputs prove
    // Where a mechanism is given, the parser does not ask for a command.
    #[arg(long, value_name = "EPSILON", requires = "command", conflicts_with = "mechanism", value_parser = number)]
    claimed_epsilon: Option<f64>,
    /// The delta that is claimed with it
    #[arg(long, value_name = "DELTA", default_value = "0", requires = "command", conflicts_with = "mechanism", value_parser = number)]
    claimed_delta: f64,
    /// The randomizer to audit, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Audit a sampler that is broken on purpose: last-output-unprotected, biased-threshold, reused-coin,
    /// truth-dependent-length or wrong-branch; with noise also noise-averaged, noise-scale, noise-one-sided or noise-missing; with
    /// options doubled-option, reused-coin or noise-missing-on-one
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "KIND", hide = true)]
    broken: Option<String>,
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
    let report = watched("outputs", audit.samples, |progress| listen(&arguments.command, audit, progress))?;
    let command = arguments.command_line();
    let document = ForeignDocument::new(&command, &audit, &report);
    print_result(json, &document, || describe_foreign(&command, &audit, &report))?;
    conclude_foreign(report.verdict, arguments.confidence)
}

fn run_sampler(arguments: &Arguments, mechanism: &str, json: bool) -> Result<()> {
    let (named, text) = match read_any_mechanism(mechanism)? {
        Loaded::YesNo(named) => {
            let text = named.mechanism.to_string();
            (*named, text)
        }
        Loaded::Contributions(asked) => match asked.yes_no() {
            Some(yes_no) => (LoadedMechanism::new(yes_no), asked.to_string()),
            None => return run_contributions(arguments, &asked, json),
        },
    };
    let delta = arguments.delta.to_f64();
    let audit = arguments.of_sampler();
    let claims = ClaimedEpsilons::of(&named.channel, arguments.owners, delta)?;
    let report = examine(arguments, &audit, &named.channel, &claims)?;
    print_report(arguments, text, &audit, delta, &report, json)
}

/// Audits the sampler of a mechanism with options. Its claims are pure, so that δ is 0.
fn run_contributions(arguments: &Arguments, asked: &Contributions, json: bool) -> Result<()> {
    let audit = arguments.of_sampler();
    let claims = ClaimedEpsilons::of_contributions(asked);
    let report = examine_contributions(arguments, &audit, asked, &claims)?;
    print_report(arguments, asked.to_string(), &audit, claims.delta, &report, json)
}

fn print_report(
    arguments: &Arguments,
    mechanism: String,
    audit: &Audit,
    delta: f64,
    report: &Report,
    json: bool,
) -> Result<()> {
    let document = AuditDocument::new(mechanism.clone(), audit, delta, report);
    print_result(json, &document, || describe(&mechanism, audit, delta, report))?;
    conclude(report.verdict, arguments.confidence)
}

#[cfg(debug_assertions)]
fn examine(arguments: &Arguments, audit: &Audit, channel: &Channel, claims: &ClaimedEpsilons) -> Result<Report> {
    Ok(match &arguments.broken {
        Some(control) => audit.run_broken(channel, claims, control.parse()?)?,
        None => follow(audit, channel, claims)?,
    })
}

#[cfg(not(debug_assertions))]
fn examine(_: &Arguments, audit: &Audit, channel: &Channel, claims: &ClaimedEpsilons) -> Result<Report> {
    follow(audit, channel, claims)
}

#[cfg(debug_assertions)]
fn examine_contributions(
    arguments: &Arguments,
    audit: &Audit,
    asked: &Contributions,
    claims: &ClaimedEpsilons,
) -> Result<Report> {
    Ok(match &arguments.broken {
        Some(control) => audit.run_broken_contributions(asked, claims, control.parse()?)?,
        None => follow_contributions(audit, asked, claims)?,
    })
}

#[cfg(not(debug_assertions))]
fn examine_contributions(
    _: &Arguments,
    audit: &Audit,
    asked: &Contributions,
    claims: &ClaimedEpsilons,
) -> Result<Report> {
    follow_contributions(audit, asked, claims)
}

/// Runs the audit of contributions and shows how far it is.
fn follow_contributions(audit: &Audit, asked: &Contributions, claims: &ClaimedEpsilons) -> Result<Report> {
    let work = |progress: &Progress| audit.run_contributions_with(asked, claims, progress);
    Ok(watched("calls of the sampler", audit.samples, work)?)
}

/// Runs the audit and shows how far it is.
fn follow(audit: &Audit, channel: &Channel, claims: &ClaimedEpsilons) -> Result<Report> {
    let work = |progress: &Progress| audit.run_with(channel, claims, progress);
    Ok(watched("calls of the sampler", audit.samples, work)?)
}

/// A sampler that does not keep its claims is a failure of the program.
fn conclude(verdict: Verdict, confidence: Confidence) -> Result<()> {
    if verdict == Verdict::Consistent {
        return Ok(());
    }
    Err(Failure::environment("the audit contradicts the sampler's claims").with_hint(format!(
        "a sound sampler fails with probability at most {}: run the audit again, and do not answer with a build that \
         fails twice",
        readable(confidence.miss())
    )))
}

fn conclude_foreign(verdict: Verdict, confidence: Confidence) -> Result<()> {
    if verdict == Verdict::Consistent {
        return Ok(());
    }
    Err(Failure::environment("the audit contradicts the claim about the command")
        .with_hint(format!("a sound randomizer fails with probability at most {}", readable(confidence.miss()))))
}

fn describe(mechanism: &str, audit: &Audit, delta: f64, report: &Report) -> String {
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

/// One row per view: its claim, and what the audit proves.
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

/// The events that contradict the claims.
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

/// No output is longer.
const LONGEST_LINE: usize = 1 << 16;
/// How long to wait for a randomizer that writes nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// Truths, and outputs, handed over at a time.
const TOGETHER: usize = 1 << 10;
/// How many of these may wait.
const WAITING: usize = 64;

/// Some lines, or why there are no more of them.
type OutputLines = Result<Vec<Vec<u8>>>;

/// Runs the command and collects its output for every truth.
pub(super) fn listen(command: &[OsString], audit: ForeignAudit, progress: &Progress) -> Result<ForeignReport> {
    let mut outputs = audit.listen()?;
    let mut running = Running(start(command)?);
    let lines = running.converse(audit.samples);
    hear_all(&lines, &mut outputs, audit.samples, progress)?;
    running.check()?;
    Ok(outputs.report()?)
}

fn start(command: &[OsString]) -> Result<Child> {
    let (program, arguments) = command.split_first().ok_or_else(|| Failure::request("there is no command to run"))?;
    let started = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    started.map_err(|error| Failure::request(start_words(&error)).at(program.to_string_lossy()))
}

/// Why a program cannot be run, in words; the system's own if there are no better ones.
fn start_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        io::ErrorKind::PermissionDenied => "it is not executable".to_owned(),
        _ => error.to_string(),
    }
}

/// The command; it is ended when nobody listens any more.
struct Running(Child);

impl Running {
    /// Writes truths to the command and returns the lines that it writes.
    fn converse(&mut self, samples: u64) -> Receiver<OutputLines> {
        let (input, output) = (self.0.stdin.take(), self.0.stdout.take());
        let (sender, lines) = sync_channel(WAITING);
        // Both threads end with the pipes, which end with the process.
        thread::spawn(move || input.map(|input| write_truths(input, samples)));
        thread::spawn(move || output.map(|output| read_lines(output, &sender)));
        lines
    }

    /// Waits for the end of the command, which must be a success.
    fn check(&mut self) -> Result<()> {
        let status = self.0.wait().map_err(|error| Failure::environment(format!("the command: {error}")))?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure::request(format!("the command failed ({status})"))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn write_truths(mut input: ChildStdin, samples: u64) {
    let mut index = 0;
    while index < samples {
        let end = samples.min(index + TOGETHER as u64);
        let text: String = (index..end).map(|each| if ForeignOutputs::truth(each) { "1\n" } else { "0\n" }).collect();
        // A command that stops reading stops writing too, which shows in its outputs.
        if input.write_all(text.as_bytes()).is_err() {
            return;
        }
        index = end;
    }
}

fn read_lines(output: ChildStdout, sender: &SyncSender<OutputLines>) {
    let mut reader = BufReader::new(output);
    loop {
        let lines = read_some(&mut reader);
        let last = !matches!(&lines, Ok(lines) if !lines.is_empty());
        if sender.send(lines).is_err() || last {
            return;
        }
    }
}

/// The lines that are there, at least one unless it is the end.
fn read_some(reader: &mut BufReader<ChildStdout>) -> OutputLines {
    let mut lines = Vec::new();
    while lines.is_empty() || (lines.len() < TOGETHER && reader.buffer().contains(&b'\n')) {
        match read_line(reader)? {
            Some(line) => lines.push(line),
            None => break,
        }
    }
    Ok(lines)
}

/// The next line, without its end; none at the end of the output.
fn read_line(reader: &mut BufReader<ChildStdout>) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.take(LONGEST_LINE as u64 + 2).read_until(b'\n', &mut line);
    if read.map_err(|error| Failure::environment(format!("the command's output: {error}")))? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > LONGEST_LINE {
        return Err(too_long());
    }
    Ok(Some(line))
}

fn too_long() -> Failure {
    Failure::request(format!("the command wrote a line of more than {LONGEST_LINE} bytes"))
        .with_hint("it must write one line for each truth")
}

fn hear_all(
    lines: &Receiver<OutputLines>,
    outputs: &mut ForeignOutputs,
    samples: u64,
    progress: &Progress,
) -> Result<()> {
    loop {
        let heard = receive(lines, outputs.seen())?;
        if heard.is_empty() {
            return expect_all(outputs.seen(), samples);
        }
        if outputs.seen() + heard.len() as u64 > samples {
            return Err(miscounted("more", samples));
        }
        heard.iter().for_each(|line| outputs.hear(line));
        progress.advance_by(heard.len() as u64);
    }
}

/// The next lines, none at the end; `seen` lines came before.
fn receive(lines: &Receiver<OutputLines>, seen: u64) -> OutputLines {
    match lines.recv_timeout(PATIENCE) {
        Ok(lines) => lines,
        Err(RecvTimeoutError::Disconnected) => Ok(Vec::new()),
        Err(RecvTimeoutError::Timeout) => Err(silent_after(seen)),
    }
}

fn silent_after(seen: u64) -> Failure {
    let seconds = PATIENCE.as_secs();
    Failure::request(format!("the command wrote nothing for {seconds} s, after {seen} lines"))
        .with_hint("it must write one line for each truth, and end when its input does")
}

fn expect_all(seen: u64, samples: u64) -> Result<()> {
    if seen < samples { Err(miscounted(&format!("{seen}"), samples)) } else { Ok(()) }
}

fn miscounted(lines: &str, truths: u64) -> Failure {
    let link = if lines == "more" { "than the" } else { "for" };
    Failure::request(format!("the command wrote {lines} lines {link} {truths} truths"))
        .with_hint("it must write exactly one line for each truth")
}
