//! From rows to counts, in the library and through the command line.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use uptack::{Mechanism, RowReader, Sampler, SeededCoins, Truth, Truths};

use crate::Size;
use crate::clock::{Rounds, children_cpu_seconds, seconds_of};
use crate::table::{Row, Target};

const MECHANISMS: [(&str, &str); 2] = [
    ("randomized-response", "randomized-response(t=0.8)"),
    ("blended", "blended(b1=0.05, b2=0.25, b3=0.25, f1=0.05, f2=0.4, ry=1e-4, rn=1e-4)"),
];

const MOST_MEMORY: Target = Target::AtMost(64.0);
const LEAST_OWNERS: Target = Target::AtLeast(20.0);

/// The library alone, from memory.
pub fn measure_library(size: &Size) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, text) in MECHANISMS {
        let csv = csv(text, size.owners / 10);
        let mut rounds = Rounds::default();
        for _ in 0..size.rounds {
            rounds.push(seconds_of(|| (0..10).for_each(|_| tally(&csv))));
        }
        let rate = (size.owners / 10 * 10) as f64 / rounds.median() * 1e-6;
        rows.push(Row::new(format!("tally of CSV in the library, {name}"), LEAST_OWNERS, rate, "million owners/s"));
    }
    rows
}

/// `uptack privatize | uptack tally`, with files in a folder that is removed afterwards.
pub fn measure_command_line(size: &Size) -> Vec<Row> {
    let folder = std::env::temp_dir().join(format!("uptack-bench-{}", std::process::id()));
    let measured = fs::create_dir_all(&folder).map_err(Into::into).and_then(|()| commands(size, &folder));
    // A folder left behind harms nobody.
    let _ = fs::remove_dir_all(&folder);
    measured.unwrap_or_else(|error| vec![Row::skipped("privatize to tally", error.to_string())])
}

fn commands(size: &Size, folder: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let uptack = build()?;
    let truths = folder.join("truths");
    write_truths(&truths, size.owners)?;
    let mut rows = Vec::new();
    for (name, mechanism) in MECHANISMS {
        rows.extend(piped(&uptack, name, mechanism, &truths, size)?);
        rows.push(from_file(&uptack, name, mechanism, &truths, size)?);
    }
    Ok(rows)
}

/// The command line as a user builds it.
fn build() -> Result<PathBuf, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let target = root.join("target");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(&root).args(["build", "--release", "--locked", "--package", "uptack-cli", "--target-dir"]);
    if !build.arg(&target).status()?.success() {
        return Err("the command line does not build".into());
    }
    Ok(target.join("release/uptack"))
}

/// Both programs at once, each watched.
fn piped(uptack: &Path, name: &str, mechanism: &str, truths: &Path, size: &Size) -> Result<[Row; 3], Box<dyn Error>> {
    let start = Instant::now();
    let mut privatize =
        Command::new(uptack).arg("privatize").arg(mechanism).arg(truths).stdout(Stdio::piped()).spawn()?;
    let rows = privatize.stdout.take().ok_or("privatize has no output")?;
    let tally = Command::new(uptack).args(["tally", "-"]).stdin(rows).stdout(Stdio::null()).spawn()?;
    let [privatize_memory, tally_memory] = peaks([privatize, tally])?;
    let seconds = start.elapsed().as_secs_f64();
    let rate = size.owners as f64 / seconds * 1e-6;
    Ok([
        Row::new(format!("privatize to tally, {name}"), Target::None, rate, "million owners/s"),
        Row::new(format!("  peak memory of privatize, {name}"), MOST_MEMORY, privatize_memory, "MiB"),
        Row::new(format!("  peak memory of tally, {name}"), MOST_MEMORY, tally_memory, "MiB"),
    ])
}

/// The tally of a file of rows.
fn from_file(uptack: &Path, name: &str, mechanism: &str, truths: &Path, size: &Size) -> Result<Row, Box<dyn Error>> {
    let rows = truths.with_file_name("rows.csv");
    let mut privatize = Command::new(uptack);
    privatize.arg("privatize").arg(mechanism).arg(truths).stdout(File::create(&rows)?);
    succeed(privatize.status()?.success(), "privatize")?;
    let mut rounds = Rounds::default();
    for _ in 0..size.rounds {
        let before = children_cpu_seconds();
        let status = Command::new(uptack).arg("tally").arg(&rows).stdout(Stdio::null()).status()?;
        succeed(status.success(), "tally")?;
        rounds.push(children_cpu_seconds() - before);
    }
    let rate = size.owners as f64 / rounds.median() * 1e-6;
    Ok(Row::new(format!("tally of a CSV file, {name}"), LEAST_OWNERS, rate, "million owners/s"))
}

/// The most memory that each program held, in MiB, as the kernel noted it (Linux only).
///
/// The mark only rises, so that what is read last is missed by no more than what came in the last moment.
fn peaks(mut programs: [Child; 2]) -> Result<[f64; 2], Box<dyn Error>> {
    let mut peaks = [f64::NAN; 2];
    let mut ended = [None; 2];
    while ended.contains(&None) {
        for (program, (peak, ended)) in programs.iter_mut().zip(peaks.iter_mut().zip(&mut ended)) {
            *peak = high_water_mark(program.id()).unwrap_or(*peak);
            *ended = program.try_wait()?;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let success = ended.iter().flatten().all(|status| status.success());
    succeed(success, "privatize | uptack tally")?;
    Ok(peaks)
}

/// A process that has ended has none.
fn high_water_mark(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
}

fn succeed(success: bool, command: &str) -> Result<(), Box<dyn Error>> {
    if success { Ok(()) } else { Err(format!("`uptack {command}` failed").into()) }
}

fn write_truths(path: &Path, owners: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for owner in 0..owners {
        file.write_all(if owner % 100 == 37 { b"yes\n" } else { b"no\n" })?;
    }
    file.flush()
}

/// What a crowd would write.
fn csv(text: &str, owners: usize) -> Vec<u8> {
    let channel = text.parse::<Mechanism>().expect("a mechanism of the family").channel();
    let truths: Truths = (0..owners).map(|owner| Truth::from_bool(owner % 100 == 37)).collect();
    let drawn = Sampler::new(&channel).draw_many_seeded(&truths, &mut SeededCoins::new(1));
    let line = |cell: &uptack::Cell| {
        let outputs: Vec<String> = cell.outputs().iter().map(ToString::to_string).collect();
        outputs.join(",") + "\n"
    };
    let lines: Vec<String> = channel.cells().iter().map(line).collect();
    drawn.iter().flat_map(|cell| lines[cell].bytes()).collect()
}

fn tally(csv: &[u8]) {
    let mut rows = RowReader::new(None);
    csv.chunks(1 << 16).for_each(|bytes| rows.feed(bytes).expect("rows of outputs"));
    std::hint::black_box(rows.finish().expect("a crowd"));
}
