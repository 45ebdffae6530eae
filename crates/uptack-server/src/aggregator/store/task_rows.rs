//! What is stored of one task.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use super::SqlResult;

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

    pub(crate) fn prepare(self, statement: &str) -> SqlResult<CachedStatement<'a>> {
        self.connection.prepare_cached(statement)
    }

    /// Reads the one row that a statement always finds.
    pub(crate) fn get<T>(
        self,
        statement: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.prepare(statement)?.query_row(parameters, read)
    }

    /// Reads the first row that a statement finds, if there is one.
    pub(crate) fn find<T>(
        self,
        statement: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        self.get(statement, parameters, read).optional()
    }

    /// Reads all rows that a statement finds.
    pub(crate) fn list<T>(
        self,
        statement: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> SqlResult<Vec<T>> {
        self.prepare(statement)?.query_map(parameters, read)?.collect()
    }

    /// Runs a statement.
    pub(crate) fn run(self, statement: &str, parameters: impl Params) -> SqlResult<()> {
        self.execute(statement, parameters).map(drop)
    }

    /// Runs a statement, and says how many rows it changed.
    pub(crate) fn execute(self, statement: &str, parameters: impl Params) -> SqlResult<usize> {
        self.prepare(statement)?.execute(parameters)
    }
}
