//! What is stored of one task.

use rusqlite::{CachedStatement, Connection, Params};

/// The rows of one task, in the transaction or the read that a connection is in.
#[derive(Clone, Copy)]
pub(crate) struct TaskRows<'a> {
    connection: &'a Connection,
    pub(crate) task: i64,
}

impl<'a> TaskRows<'a> {
    pub(crate) fn new(connection: &'a Connection, task: i64) -> Self {
        Self { connection, task }
    }

    pub(crate) fn prepare(self, statement: &str) -> rusqlite::Result<CachedStatement<'a>> {
        self.connection.prepare_cached(statement)
    }

    /// Runs a statement.
    pub(crate) fn run(self, statement: &str, parameters: impl Params) -> rusqlite::Result<()> {
        self.execute(statement, parameters).map(drop)
    }

    /// Runs a statement, and says how many rows it changed.
    pub(crate) fn execute(self, statement: &str, parameters: impl Params) -> rusqlite::Result<usize> {
        self.prepare(statement)?.execute(parameters)
    }
}
