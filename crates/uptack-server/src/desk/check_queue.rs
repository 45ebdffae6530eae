//! The queue for the check of cards: one check at a time, a bounded number that wait, and a share for each analyst.

use std::sync::Arc;
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::{
    base::{
        listener::Shares,
        problem::{Answer, Problem},
    },
    error::Error,
};

/// Checks that run or wait. Each keeps a card in memory.
const MOST: usize = 32;
/// Those of one analyst. Fewer would refuse a client that repeats a request which takes long.
const MOST_OF_ONE: usize = 8;

/// The checks that run or wait.
pub(crate) struct CheckQueue {
    /// Checks are expensive: one at a time.
    turn: Arc<Semaphore>,
    places: Arc<Shares<String>>,
}

impl Default for CheckQueue {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), places: Shares::new(MOST, MOST_OF_ONE) }
    }
}

impl CheckQueue {
    /// Runs a check when it is its turn. A caller that hangs up while it waits leaves the queue. A check that has begun keeps its
    /// place and its turn until it is done, whether or not anybody still waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        analyst: &str,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T> {
        let place = self.places.take(analyst.to_owned()).ok_or_else(too_many)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.expect("the semaphore is never closed");
        let checked = spawn_blocking(move || {
            let _held = (place, turn);
            check()
        });
        checked.await.map_err(|_| Error::environment("the check of a card's claims failed").into())
    }
}

fn too_many() -> Problem {
    Problem::busy("The desk is already checking as many cards as it can. Try again in a moment.", 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    };

    /// Yields until other tasks have come as far as they can.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn checks_of_callers_who_hang_up_neither_pile_up_nor_run_side_by_side() {
        let (queue, begun) = (Arc::new(CheckQueue::default()), Arc::new(AtomicUsize::new(0)));
        let (release, held) = mpsc::channel::<()>();
        let (running, is_running) = mpsc::channel::<()>();
        let (queue_of_first, begun_by_first) = (Arc::clone(&queue), Arc::clone(&begun));
        let first = tokio::spawn(async move {
            let check = move || {
                begun_by_first.fetch_add(1, Ordering::SeqCst);
                running.send(()).unwrap();
                held.recv().unwrap();
            };
            queue_of_first.run("mallory", check).await
        });
        spawn_blocking(move || is_running.recv().unwrap()).await.unwrap();
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        // Forty more that hang up while they wait: none of them begins, and none leaves anything behind.
        for _ in 0..40 {
            let (queue, begun) = (Arc::clone(&queue), Arc::clone(&begun));
            let gone = tokio::spawn(async move {
                queue.run("mallory", move || begun.fetch_add(1, Ordering::SeqCst)).await.unwrap();
            });
            settle().await;
            gone.abort();
            let _ = gone.await;
        }
        assert_eq!((begun.load(Ordering::SeqCst), queue.places.taken()), (1, 1));
        // An honest caller waits for the one check that had begun, and for nothing else.
        let honest = {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.run("ada", || 7).await.unwrap() })
        };
        settle().await;
        assert!(!honest.is_finished());
        release.send(()).unwrap();
        assert_eq!(honest.await.unwrap(), 7);
        assert_eq!(queue.places.taken(), 0);
    }

    #[tokio::test]
    async fn one_analyst_fills_its_share_of_the_queue_and_no_more() {
        let queue = CheckQueue::default();
        let places: Vec<_> = (0..MOST_OF_ONE).map(|_| queue.places.take("mallory".to_owned()).unwrap()).collect();
        let refused = queue.run("mallory", || ()).await.unwrap_err();
        assert_eq!(refused.status().as_u16(), 503);
        assert!(queue.run("ada", || ()).await.is_ok());
        drop(places);
        assert!(queue.run("mallory", || ()).await.is_ok());
    }
}
