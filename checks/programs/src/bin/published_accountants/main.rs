//! Prints the table of `docs/accounting.md` that sets the accounting against the published accountants for shuffled reports:
//! `cargo run --release -p uptack-checks --bin published_accountants`.

#![allow(clippy::print_stdout)]

mod table;

fn main() {
    table::print(processor_seconds);
}

/// Seconds that this thread, which does all the work, spent on a processor; where the system does not say, on the wall.
fn processor_seconds() -> f64 {
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(wall_seconds, |nanoseconds| 1e-9 * nanoseconds)
}

fn wall_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}
