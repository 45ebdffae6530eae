//! The basis of both servers: listening, logs, counters, refusals, state in SQLite and its backups.

pub(crate) mod backup;
pub(crate) mod bodies;
pub(crate) mod brake;
#[cfg(test)]
pub(crate) mod faults;
pub(crate) mod http;
pub mod listener;
pub mod logging;
pub(crate) mod metrics;
pub(crate) mod problem;
pub(crate) mod sqlite;
pub(crate) mod web_pages;

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks even if a thread panicked while it held the lock: only for values that are never left half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Like [`lock`].
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Like [`lock`].
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
