//! Work on several threads. Results never depend on how many there are.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

/// How many threads the machine runs at a time.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The values of a function at 0, 1, …, `count` − 1, in this order, computed on `threads` threads. Each thread takes the
/// next number that no other has taken.
///
/// ```
/// use uptack::parallel;
/// assert_eq!(parallel::map(2, 5, |index| index * index), [0, 1, 4, 9, 16]);
/// ```
pub fn map<T: Send>(threads: usize, count: usize, function: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_while(threads, count, |index| Some(function(index)))
}

/// Like [`map`], but a thread stops at the first `None`, and the result holds only the values that were computed.
pub fn map_while<T: Send>(threads: usize, count: usize, function: impl Fn(usize) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index < count { Some((index, function(index)?)) } else { None }
    };
    let worker = || iter::from_fn(&take).collect::<Vec<_>>();
    let mut values: Vec<(usize, T)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(joined).collect()
    });
    values.sort_unstable_by_key(|(index, _)| *index);
    values.into_iter().map(|(_, value)| value).collect()
}

/// The result of a thread; if it panicked, the panic goes on here.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
