//! Work on several threads, and uniform numbers from seeded coins.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use uptack::{Coins, SeededCoins};

use crate::error::Result;

/// Works on all items, on several threads. The results are in order, whatever the number of threads.
pub(crate) fn in_parallel<I: Sync, T: Send>(
    threads: usize,
    items: &[I],
    work: impl Fn(usize, &I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        items.get(index).map(|item| (index, work(index, item)))
    };
    let worker = || std::iter::from_fn(take).collect::<Vec<_>>();
    let mut results = on_threads(threads.clamp(1, items.len().max(1)), &worker);
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Runs a worker on each thread, and returns the results of all of them.
fn on_threads<T: Send>(threads: usize, worker: &(impl Fn() -> Vec<T> + Sync)) -> Vec<T> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(joined).collect()
    })
}

/// Waits for what a thread returns; if it panicked, so does the caller.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A uniform number from 0 to 1, without 1: a multiple of 2⁻⁵³.
pub(crate) fn uniform(coins: &mut SeededCoins) -> Result<f64> {
    let mut bytes = [0; 8];
    coins.fill(&mut bytes)?;
    Ok((u64::from_le_bytes(bytes) >> 11) as f64 / (1u64 << 53) as f64)
}
