//! Tries a task that is being served, by whichever aggregators: `try_task FOLDER [REPORTS]`.
//!
//! Reads `client.json` and `collector.json` as `uptack task` writes them, uploads reports whose sum
//! is known, collects their windows and compares. The batch is spent by that: use a task of its own.

use std::{
    io::Write,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use uptack_dap::{
    client::Client,
    collector::Collector,
    protocol::{Measurement, VdafKind},
    task::{self, CollectorTask, TaskParameters},
};

type Failure = Box<dyn std::error::Error>;

const PATIENCE: Duration = Duration::from_secs(600);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(arguments.first().ok_or("usage: try_task FOLDER [REPORTS]")?);
    let parameters: TaskParameters = task::read(&folder.join("client.json"))?;
    let collector: CollectorTask = task::read(&folder.join("collector.json"))?;
    let reports = match arguments.get(1) {
        Some(text) => text.parse()?,
        None => parameters.min_batch_size,
    };

    let client = Client::new(parameters.clone())?;
    let first = parameters.window(now()?);
    let mut expected = vec![0; parameters.vdaf.length()];
    for index in 0..reports as usize {
        let (measurement, adds) = measurement(&parameters.vdaf, index);
        client.upload(&measurement, now()?, PATIENCE).await?;
        for position in adds {
            expected[position] += 1;
        }
    }
    let windows = (parameters.window(now()?) - first) / parameters.time_precision + 1;
    let batch = parameters.batch(first, windows)?;
    let collected = Collector::new(collector)?.collect(&Collector::new_job(), batch, PATIENCE).await?;
    writeln!(std::io::stdout(), "{} reports, counts {:?}", collected.reports, collected.counts)?;
    if collected.counts != expected {
        return Err(format!("expected {expected:?}").into());
    }
    Ok(())
}

/// The measurement with this number, and where it adds one.
fn measurement(kind: &VdafKind, index: usize) -> (Measurement, Vec<usize>) {
    match kind {
        VdafKind::Histogram { length, .. } => {
            // Not all cells alike.
            let cell = (index * index) % length;
            (Measurement::Cell(cell), vec![cell])
        }
        VdafKind::Bits { length, .. } => {
            let adds: Vec<usize> = (0..*length).filter(|bit| (index + bit).is_multiple_of(3)).collect();
            let bits = (0..*length).map(|bit| adds.contains(&bit)).collect();
            (Measurement::Bits(bits), adds)
        }
    }
}

fn now() -> Result<u64, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}
