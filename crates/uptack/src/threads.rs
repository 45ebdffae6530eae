//! Independent computations on threads of their own.

use std::thread::{self, ScopedJoinHandle};

/// The result of a thread; if it panicked, the panic goes on here.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// How many threads the machine runs at a time.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The values of a function at all arguments, computed on all cores. The cores take turns, because neighbouring arguments
/// cost about the same.
pub(crate) fn on_all_cores(arguments: &[f64], function: impl Fn(f64) -> f64 + Sync) -> Vec<f64> {
    let cores = cores().min(arguments.len()).max(1);
    let every_nth =
        |first| arguments.iter().skip(first).step_by(cores).map(|argument| function(*argument)).collect::<Vec<f64>>();
    let mut values = vec![0.0; arguments.len()];
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|first| scope.spawn(move || every_nth(first))).collect();
        for (first, thread) in threads.into_iter().enumerate() {
            let places = values.iter_mut().skip(first).step_by(cores);
            places.zip(joined(thread)).for_each(|(place, found)| *place = found);
        }
    });
    values
}
