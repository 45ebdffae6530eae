//! Long computations, off the threads that serve requests: a few at a time, and each only once however many ask for it.

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::lock;

/// Computations at once. More would leave the desk's other work without a core on a small machine.
const AT_ONCE: usize = 2;
/// Computations that run or wait; further ones are refused until there is a place.
const MOST_WAITING: usize = 12;
/// Results that are kept of each kind.
const KEPT: usize = 64;

/// The places for computations.
pub(super) struct WorkPool {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for WorkPool {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(AT_ONCE)), waiting: Arc::new(Semaphore::new(MOST_WAITING)) }
    }
}

/// Results, and computations under way, by their key; the latest last.
pub(super) struct Computations<T>(Mutex<VecDeque<(String, Computation<T>)>>);

type Computation<T> = Shared<BoxFuture<'static, Option<Arc<T>>>>;

impl<T> Default for Computations<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Computations<T> {
    /// The job of this key, or the one that `begin` begins. Only the latest are kept.
    fn find_or_begin(&self, key: &str, begin: impl FnOnce() -> Option<Computation<T>>) -> Option<Computation<T>> {
        let mut known = lock(&self.0);
        if let Some((_, job)) = known.iter().find(|(other, _)| other == key) {
            return Some(job.clone());
        }
        let job = begin()?;
        known.push_back((key.to_owned(), job.clone()));
        if known.len() > KEPT {
            known.pop_front();
        }
        Some(job)
    }
}

/// The outcome of asking for a computation.
pub(super) enum Computed<T> {
    Done(Arc<T>),
    /// It is still being computed; ask again.
    Later,
    /// There is no place for it.
    Busy,
}

impl WorkPool {
    /// The result of a computation, if it is there within `patience`; if not, the computation goes on. Each key is
    /// computed once.
    pub(super) async fn find<T: Send + Sync + 'static>(
        &self,
        jobs: &Computations<T>,
        key: &str,
        patience: Duration,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Computed<T> {
        let Some(job) = jobs.find_or_begin(key, || self.begin(compute)) else { return Computed::Busy };
        match tokio::time::timeout(patience, job).await {
            Ok(Some(result)) => Computed::Done(result),
            // It panicked, and waiting longer would not help.
            Ok(None) => Computed::Busy,
            Err(_) => Computed::Later,
        }
    }

    /// Begins a computation, if there is a place for it.
    fn begin<T: Send + Sync + 'static>(&self, compute: impl FnOnce() -> T + Send + 'static) -> Option<Computation<T>> {
        let place = Arc::clone(&self.waiting).try_acquire_owned().ok()?;
        // A task of its own: the request may be gone before it is done.
        let task = tokio::spawn(run(place, Arc::clone(&self.running), compute));
        Some(async move { task.await.ok().flatten() }.boxed().shared())
    }

    /// The result of a computation that nobody else asks for; none if there is no place for it.
    pub(super) async fn once<T: Send + Sync + 'static>(
        &self,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Arc<T>> {
        self.begin(compute)?.await
    }
}

/// Waits for a turn, then computes. The place is free again afterwards.
async fn run<T: Send + 'static>(
    place: OwnedSemaphorePermit,
    running: Arc<Semaphore>,
    compute: impl FnOnce() -> T + Send + 'static,
) -> Option<Arc<T>> {
    let turn = running.acquire_owned().await.ok()?;
    let computed = tokio::task::spawn_blocking(move || {
        let _held = (place, turn);
        compute()
    });
    computed.await.ok().map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn the_same_is_computed_once_and_too_much_is_refused() {
        let (work, jobs) = (WorkPool::default(), Computations::<u32>::default());
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let waits = || {
            let held = Arc::clone(&held);
            move || {
                held.lock().unwrap().recv().unwrap();
                7
            }
        };
        let moment = Duration::from_millis(1);
        assert!(matches!(work.find(&jobs, "a", moment, waits()).await, Computed::Later));
        // The same again begins nothing; others wait for their turn until there are too many.
        assert!(matches!(work.find(&jobs, "a", moment, || unreachable!()).await, Computed::Later));
        for other in 1..MOST_WAITING {
            assert!(matches!(work.find(&jobs, &other.to_string(), moment, waits()).await, Computed::Later));
        }
        assert!(matches!(work.find(&jobs, "more", moment, || unreachable!()).await, Computed::Busy));
        for _ in 0..MOST_WAITING {
            release.send(()).unwrap();
        }
        assert!(matches!(work.find(&jobs, "a", LONG, || unreachable!()).await, Computed::Done(seven) if *seven == 7));
        assert!(matches!(work.find(&jobs, "11", LONG, || unreachable!()).await, Computed::Done(_)));
        assert_eq!(work.once(|| 3).await.as_deref(), Some(&3));
    }
}
