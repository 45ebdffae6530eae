//! Opening queries in the store: once for each key that an analyst gives, and within the desk's limits.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Query, QueryState, Store, find, insert};
use crate::error::{Error, Result};

/// For how many seconds a key is remembered; for longer if its query still runs.
const REMEMBERED: u64 = 24 * 3600;

/// Who asks for what. A repeated request is recognized by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpeningRequest {
    pub(crate) analyst: String,
    /// The analyst's own name for this request.
    pub(crate) key: String,
    /// SHA-256 of the request's body.
    pub(crate) digest: [u8; 32],
}

/// The seconds over which an analyst's requests are counted.
pub(crate) const QUOTA_PERIOD: u64 = 600;

/// How much room queries that are not over may take, and how much one analyst may ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) queries: u64,
    /// Bytes of their cards.
    pub(crate) bytes: u64,
    /// Requests of one analyst that open queries, within [`QUOTA_PERIOD`].
    pub(crate) requests: u64,
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OpeningOutcome {
    /// Its queries are in the store, by name.
    Queries(Vec<String>),
    /// The key was used for another request.
    OtherRequest,
    /// Another analyst asks the same card for the same window.
    OtherAnalyst,
    /// The same card was asked for the same window before, and is over.
    Over(QueryState),
    /// There is no room for them.
    Full,
    /// The analyst has asked too much; it may ask again after this many seconds.
    TooMany(u64),
}

impl Store {
    /// The outcome of a request that was made before; none if it is new.
    pub(crate) fn opened(&self, request: &OpeningRequest) -> Result<Option<OpeningOutcome>> {
        remembered(&self.lock(), request)
    }

    /// For how many seconds an analyst may open nothing more; none if it may.
    pub(crate) fn quota_wait(&self, analyst: &str, room: Room, now: u64) -> Result<Option<u64>> {
        quota_wait(&self.lock(), analyst, room, now)
    }

    /// Inserts a request's queries, all or none, and remembers the request with them. A request that was made before
    /// changes nothing.
    pub(crate) fn open_queries(
        &self,
        request: &OpeningRequest,
        queries: &[Query],
        room: Room,
        now: u64,
    ) -> Result<OpeningOutcome> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        forget(&transaction, now)?;
        if let Some(before) = remembered(&transaction, request)? {
            return Ok(before);
        }
        if let Some(seconds) = quota_wait(&transaction, &request.analyst, room, now)? {
            return Ok(OpeningOutcome::TooMany(seconds));
        }
        for query in queries {
            if let Some(refused) = insert_new(&transaction, query)? {
                return Ok(refused);
            }
        }
        if !fits(&transaction, room)? {
            return Ok(OpeningOutcome::Full);
        }
        let names = names(queries);
        remember(&transaction, request, &names, now)?;
        transaction.commit()?;
        self.note_change();
        Ok(OpeningOutcome::Queries(names))
    }
}

fn names(queries: &[Query]) -> Vec<String> {
    queries.iter().map(|query| query.name().to_owned()).collect()
}

/// Inserts a query unless its analyst asked for it before; says why if it cannot be opened.
fn insert_new(connection: &Connection, query: &Query) -> Result<Option<OpeningOutcome>> {
    match find(connection, query.name())? {
        None => insert(connection, query).map(|()| None),
        Some(known) if known.analyst != query.analyst => Ok(Some(OpeningOutcome::OtherAnalyst)),
        Some(known) if matches!(known.state, QueryState::Opening | QueryState::Open) => Ok(None),
        Some(known) => Ok(Some(OpeningOutcome::Over(known.state))),
    }
}

/// Forgets old keys whose queries are over.
fn forget(connection: &Connection, now: u64) -> Result<()> {
    connection.execute(
        "DELETE FROM openings WHERE created < ?1 AND NOT EXISTS (
            SELECT 1 FROM json_each(openings.queries) AS name JOIN queries ON queries.query = name.value
            WHERE queries.state IN ('opening', 'open', 'closed'))",
        [now.saturating_sub(REMEMBERED) as i64],
    )?;
    Ok(())
}

fn remembered(connection: &Connection, request: &OpeningRequest) -> Result<Option<OpeningOutcome>> {
    let statement = "SELECT digest, queries FROM openings WHERE analyst = ?1 AND key = ?2";
    let found = connection.query_row(statement, [&request.analyst, &request.key], |row| Ok((row.get(0)?, row.get(1)?)));
    let found: Option<(Vec<u8>, String)> = found.optional()?;
    let Some((digest, names)) = found else { return Ok(None) };
    if digest != request.digest {
        return Ok(Some(OpeningOutcome::OtherRequest));
    }
    let names = serde_json::from_str(&names).map_err(|_| Error::environment("storage: an opening's row is damaged"))?;
    Ok(Some(OpeningOutcome::Queries(names)))
}

fn remember(connection: &Connection, request: &OpeningRequest, names: &[String], now: u64) -> Result<()> {
    let names = serde_json::to_string(names).expect("names are strings");
    connection.execute(
        "INSERT INTO openings(analyst, key, digest, created, queries) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![request.analyst, request.key, request.digest, now as i64, names],
    )?;
    Ok(())
}

/// Until when an analyst's requests within the period are as many as it may make: until the oldest that counts is forgotten.
fn quota_wait(connection: &Connection, analyst: &str, room: Room, now: u64) -> Result<Option<u64>> {
    let statement = "SELECT created FROM openings WHERE analyst = ?1 AND created > ?2 ORDER BY created DESC
         LIMIT 1 OFFSET ?3";
    let after = now.saturating_sub(QUOTA_PERIOD) as i64;
    let counted = params![analyst, after, room.requests.saturating_sub(1) as i64];
    let created: Option<i64> = connection.query_row(statement, counted, |row| row.get(0)).optional()?;
    Ok(created.map(|created| (created as u64 + QUOTA_PERIOD).saturating_sub(now).max(1)))
}

/// Whether the queries that are not over fit into the room.
fn fits(connection: &Connection, room: Room) -> Result<bool> {
    let statement = "SELECT count(*), coalesce(sum(length(CAST(card AS BLOB))), 0) FROM queries
         WHERE state IN ('opening', 'open')";
    let (queries, bytes): (i64, i64) = connection.query_row(statement, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(queries as u64 <= room.queries && bytes as u64 <= room.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desk::store::tests::query;

    const ROOM: Room = Room { queries: 3, bytes: 100, requests: 100 };

    fn request(key: &str) -> OpeningRequest {
        OpeningRequest { analyst: "ada".to_owned(), key: key.to_owned(), digest: [7; 32] }
    }

    fn opened(names: &[&str]) -> OpeningOutcome {
        OpeningOutcome::Queries(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_key_opens_once_and_stands_for_one_request() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let open = |request: &OpeningRequest, name: &str| store.open_queries(request, &[query(name)], ROOM, 5).unwrap();
        assert_eq!(open(&request("k"), "a"), opened(&["a"]));
        // A card made a moment later would differ; the first one is kept.
        assert_eq!(open(&request("k"), "b"), opened(&["a"]));
        assert!(store.query("b").unwrap().is_none());
        assert_eq!(store.opened(&request("k")).unwrap(), Some(opened(&["a"])));
        assert_eq!(open(&OpeningRequest { digest: [8; 32], ..request("k") }, "b"), OpeningOutcome::OtherRequest);
        // Keys are per analyst, and the card still belongs to the analyst who asked first.
        let other = OpeningRequest { analyst: "grace".to_owned(), ..request("k") };
        let hers = Query { analyst: Some("grace".to_owned()), ..query("a") };
        assert_eq!(store.open_queries(&other, &[hers], ROOM, 5).unwrap(), OpeningOutcome::OtherAnalyst);
        drop(store);
        let store = Store::open(directory.path()).unwrap();
        assert_eq!(store.opened(&request("k")).unwrap(), Some(opened(&["a"])));
        // An old key is kept as long as its query runs, and forgotten afterwards.
        forget(&store.lock(), 5 + 2 * REMEMBERED).unwrap();
        assert!(store.opened(&request("k")).unwrap().is_some());
        store.cancel("a", "taken back").unwrap();
        forget(&store.lock(), 5 + REMEMBERED).unwrap();
        assert!(store.opened(&request("k")).unwrap().is_some());
        forget(&store.lock(), 6 + REMEMBERED).unwrap();
        assert!(store.opened(&request("k")).unwrap().is_none());
    }

    #[test]
    fn an_analyst_who_opens_card_after_card_has_to_wait_and_others_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let room = Room { queries: 1000, bytes: 1 << 20, requests: 3 };
        let open = |analyst: &str, key: &str, now: u64| {
            let request = OpeningRequest { analyst: analyst.to_owned(), ..request(key) };
            let asked = Query { analyst: Some(analyst.to_owned()), ..query(&format!("{analyst}-{key}")) };
            store.open_queries(&request, &[asked], room, now).unwrap()
        };
        for (key, now) in [("1", 1000), ("2", 1001), ("3", 1002)] {
            assert!(matches!(open("mallory", key, now), OpeningOutcome::Queries(_)));
        }
        assert_eq!(open("mallory", "4", 1003), OpeningOutcome::TooMany(QUOTA_PERIOD - 3));
        assert_eq!(store.quota_wait("mallory", room, 1003).unwrap(), Some(QUOTA_PERIOD - 3));
        assert!(store.query("mallory-4").unwrap().is_none());
        // A repeated request opens nothing, and is answered; others are not concerned.
        assert!(matches!(open("mallory", "3", 1003), OpeningOutcome::Queries(_)));
        assert!(matches!(open("ada", "1", 1003), OpeningOutcome::Queries(_)));
        // One request is forgotten after the other.
        assert!(matches!(open("mallory", "4", 1000 + QUOTA_PERIOD), OpeningOutcome::Queries(_)));
        assert_eq!(open("mallory", "5", 1000 + QUOTA_PERIOD), OpeningOutcome::TooMany(1));
    }

    #[test]
    fn beyond_the_room_nothing_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let series = ["a", "b", "c"].map(query);
        assert_eq!(store.open_queries(&request("1"), &series, ROOM, 5).unwrap(), opened(&["a", "b", "c"]));
        assert_eq!(store.open_queries(&request("2"), &[query("d")], ROOM, 5).unwrap(), OpeningOutcome::Full);
        assert!(store.query("d").unwrap().is_none() && store.opened(&request("2")).unwrap().is_none());
        store.cancel("a", "taken back").unwrap();
        let mut large = query("d");
        large.signed.card = "x".repeat(97);
        assert_eq!(store.open_queries(&request("2"), &[large], ROOM, 5).unwrap(), OpeningOutcome::Full);
        assert_eq!(store.open_queries(&request("2"), &[query("d")], ROOM, 5).unwrap(), opened(&["d"]));
        // A query that is over is not opened again, nor are the others of the same request.
        store.cancel("b", "taken back").unwrap();
        let again = store.open_queries(&request("3"), &[query("e"), query("a")], ROOM, 5).unwrap();
        assert_eq!(again, OpeningOutcome::Over(QueryState::Cancelled));
        assert!(store.query("e").unwrap().is_none());
    }
}
