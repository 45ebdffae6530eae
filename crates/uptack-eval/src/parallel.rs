//! Pieces of work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// Does `count` pieces of work on several threads; results are in order, whatever the number of threads.
pub(crate) fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: &(impl Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let taken = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|&index| index < count);
        taken.map(|index| (index, work(index))).collect::<Vec<_>>()
    };
    let mut results: Vec<(usize, Result<T, Error>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
