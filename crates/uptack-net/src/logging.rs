//! Structured logs for the programs of this project.

use tracing_subscriber::filter::LevelFilter;

/// Writes one JSON object a line to standard error, from `level` up. Later calls change nothing.
///
/// Log lines carry names of tasks, counts, states and reasons: no token, no key, no share, no
/// report, and no address of a client.
pub fn init(level: tracing::Level) {
    let _ = tracing_subscriber::fmt()
        .json()
        .with_max_level(LevelFilter::from_level(level))
        .with_writer(std::io::stderr)
        .try_init();
}

/// Logs from `INFO` up, or from `DEBUG` up.
pub fn init_verbose(verbose: bool) {
    init(if verbose { tracing::Level::DEBUG } else { tracing::Level::INFO });
}
