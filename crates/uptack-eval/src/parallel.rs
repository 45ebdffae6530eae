//! Pieces of work on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;

/// Does `count` pieces of work on several threads; results are in order, whatever the number of threads.
pub(crate) fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: &(impl Fn(usize) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<T, Error>)>> = Mutex::new(Vec::with_capacity(count));
    let worker = || {
        while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < count) {
            let result = work(index);
            // A poisoned lock means that another thread panicked, which the scope passes on.
            if let Ok(mut results) = results.lock() {
                results.push((index, result));
            }
        }
    };
    std::thread::scope(|scope| {
        (0..threads.clamp(1, count.max(1))).for_each(|_| {
            scope.spawn(worker);
        });
    });
    let mut results = results.into_inner().map_err(|_| Error::new("a thread of the evaluation failed"))?;
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
