//! Tasks as they are stored.

use rusqlite::{Connection, OptionalExtension, params};
use uptack_dap::{
    protocol::TaskId,
    task::{self, AggregatorTask},
};

use crate::aggregator::store::{SqlResult, StoreError, TaskRows, WriteResult, read_u64};

/// Stores a task, or finds the one of this name if its definition is the same. Returns what is stored.
pub(crate) fn register(
    connection: &Connection,
    task: &AggregatorTask,
) -> WriteResult<(i64, AggregatorTask), &'static str> {
    match find(connection, &task.parameters.task_id)? {
        Some((row, Some(text))) => match task::parse_aggregator_task(&text) {
            Ok(stored) if is_same(&stored, task) => Ok((row, stored)),
            _ => Err(StoreError::Refused("a task of this name is already served with another definition")),
        },
        Some((_, None)) => Err(StoreError::Refused("a task of this name was removed; names are not used twice")),
        None => Ok((insert(connection, task)?, task.clone())),
    }
}

/// The rows and definitions of all tasks that have not been removed.
pub(crate) fn definitions(connection: &Connection) -> SqlResult<Vec<(i64, Vec<u8>)>> {
    connection
        .prepare("SELECT task, definition FROM tasks WHERE definition IS NOT NULL")?
        .query_map([], |row| row.try_into())?
        .collect()
}

/// Deletes all that is kept of a task. Its name stays taken: its reports cannot come back.
pub(crate) fn remove(rows: TaskRows<'_>) -> WriteResult<()> {
    for table in TABLES_OF_A_TASK {
        rows.execute(&format!("DELETE FROM {table} WHERE task = ?1"), [rows.task])?;
    }
    rows.execute("UPDATE tasks SET definition = NULL WHERE task = ?1", [rows.task])?;
    Ok(())
}

/// The time below which a task takes no more reports; nothing if the task has been removed.
pub(crate) fn floor(rows: TaskRows<'_>) -> SqlResult<Option<u64>> {
    let statement = "SELECT floor FROM tasks WHERE task = ?1 AND definition IS NOT NULL";
    rows.find(statement, [rows.task], |row| read_u64(row, 0))
}

const TABLES_OF_A_TASK: [&str; 9] = [
    "enrolled",
    "report_ids",
    "reports",
    "pending",
    "leader_jobs",
    "helper_jobs",
    "batches",
    "collected",
    "collection_jobs",
];

/// A task's row, and its definition unless it has been removed.
type StoredTask = (i64, Option<Vec<u8>>);

fn find(connection: &Connection, id: &TaskId) -> SqlResult<Option<StoredTask>> {
    let statement = "SELECT task, definition FROM tasks WHERE task_id = ?1";
    connection.query_row(statement, [id.as_ref()], |row| row.try_into()).optional()
}

fn insert(connection: &Connection, task: &AggregatorTask) -> SqlResult<i64> {
    let id = task.parameters.task_id.as_ref();
    connection.execute("INSERT INTO tasks(task_id, definition) VALUES (?1, ?2)", params![id, to_json(task)])?;
    Ok(connection.last_insert_rowid())
}

fn to_json(task: &AggregatorTask) -> Vec<u8> {
    serde_json::to_vec(task).expect("task definitions are plain data")
}

/// Whether two tasks have the same definition. What is derived from the pair's secret is not compared: a task keeps its
/// first keys when the secret is replaced.
fn is_same(stored: &AggregatorTask, asked: &AggregatorTask) -> bool {
    to_json(&without_derived(stored)) == to_json(&without_derived(asked))
}

/// The task without what is derived from the pair's secret.
fn without_derived(task: &AggregatorTask) -> AggregatorTask {
    let mut task = task.clone();
    if task.card_signature.is_some() {
        task.verify_key = Default::default();
        (task.aggregator_token, task.aggregator_token_hash) = (None, None);
    }
    task
}
