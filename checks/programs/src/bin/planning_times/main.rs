//! Prints how long planning takes, and its ratio to one certificate, as `bench/README.md` has it:
//! `cargo run --release -p uptack-checks --bin planning_times`; with a number, that many rounds instead of three; with a second
//! number, only the row that it counts to.

#![allow(clippy::print_stdout)]

mod cases;

fn main() {
    let number = |place: usize| std::env::args().nth(place).and_then(|argument| argument.parse().ok());
    let (rounds, row) = (number(1).unwrap_or(3), number(2));
    println!("| request | at most | plan | one certificate | ratio | calls |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let wanted = |index: usize| row.is_none_or(|row| row == index + 1);
    for (_, case) in cases::cases().into_iter().enumerate().filter(|(index, _)| wanted(*index)) {
        let measured = case.measure(processor_seconds, rounds);
        println!(
            "| {} | {} s | {:.2} s | {:.1} ms | {:.0} | {} |",
            case.what,
            case.most,
            measured.plan,
            1e3 * measured.certificate,
            measured.plan / measured.certificate,
            measured.calls
        );
    }
}

/// Seconds that all threads of this process spent on processors; where the system does not say, on the wall.
fn processor_seconds() -> f64 {
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|text| {
        // Fields are counted behind the program's name, which may hold spaces.
        let fields: Vec<f64> =
            text.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect();
        Some(fields.get(11)? + fields.get(12)?)
    });
    ticks.map_or_else(wall_seconds, |ticks| ticks / TICKS_A_SECOND)
}

/// As Linux counts for every program.
const TICKS_A_SECOND: f64 = 100.0;

fn wall_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}
