//! The keys under which clients seal shares to this aggregator.
//!
//! One key is current: the one that is handed out. A key that has been replaced still opens
//! reports for as long as reports that were sealed under it may be on their way, so that no
//! acknowledged report becomes unreadable; then it is deleted.

use rusqlite::{Connection, params};
use std::collections::HashMap;
use uptack_dap::protocol::{self, Decode, HpkeConfig, HpkeConfigId, HpkeKeypair, HpkePrivateKey, encode};

use crate::{
    aggregator::store::{SqlResult, Store, StoreError, WriteResult},
    error::{Error, Result},
};

/// All keys that open reports.
#[derive(Clone)]
pub(crate) struct Keys {
    current: HpkeConfig,
    created: u64,
    by_id: HashMap<u8, HpkeKeypair>,
}

impl Keys {
    /// Reads the keys, and makes the first one if there is none.
    pub(crate) async fn load(store: &Store, now: u64) -> Result<Self> {
        if let Some(keys) = Self::read(store)? {
            return Ok(keys);
        }
        Self::rotate(store, now).await
    }

    /// Makes a new current key and retires the one before.
    pub(crate) async fn rotate(store: &Store, now: u64) -> Result<Self> {
        store.write(move |connection| insert_key(connection, now)).await?;
        Self::read(store)?.ok_or_else(|| Error::environment("the new key was not stored"))
    }

    /// Deletes keys that were retired before `before`.
    pub(crate) async fn purge(store: &Store, before: u64) -> Result<Self> {
        let purge = move |connection: &Connection| -> WriteResult<usize> {
            Ok(connection.execute("DELETE FROM hpke_keys WHERE retired < ?1", [before as i64])?)
        };
        store.write(purge).await?;
        Self::read(store)?.ok_or_else(|| Error::environment("no key is left"))
    }

    pub(crate) fn current(&self) -> &HpkeConfig {
        &self.current
    }

    pub(crate) fn created(&self) -> u64 {
        self.created
    }

    pub(crate) fn find(&self, id: &HpkeConfigId) -> Option<&HpkeKeypair> {
        self.by_id.get(&u8::from(*id))
    }

    fn read(store: &Store) -> Result<Option<Self>> {
        let mut by_id = HashMap::new();
        let mut current = None;
        for row in store.read(stored_keys)? {
            let config =
                HpkeConfig::get_decoded(&row.config).map_err(|_| Error::environment("a stored key is damaged"))?;
            if row.is_current {
                current = Some((config.clone(), row.created as u64));
            }
            let id = u8::from(*config.id());
            by_id.insert(id, HpkeKeypair::new(config, row.private_key));
        }
        Ok(current.map(|(current, created)| Self { current, created, by_id }))
    }
}

struct StoredKey {
    config: Vec<u8>,
    private_key: HpkePrivateKey,
    created: i64,
    /// Not retired.
    is_current: bool,
}

fn stored_keys(connection: &Connection) -> SqlResult<Vec<StoredKey>> {
    connection
        .prepare("SELECT config, private_key, created, retired IS NULL FROM hpke_keys")?
        .query_map([], |row| {
            Ok(StoredKey {
                config: row.get(0)?,
                private_key: HpkePrivateKey::new(row.get(1)?),
                created: row.get(2)?,
                is_current: row.get(3)?,
            })
        })?
        .collect()
}

fn insert_key(connection: &Connection, now: u64) -> WriteResult<()> {
    let id = free_id(connection)?.ok_or_else(|| StoreError::broken("255 keys are in use"))?;
    connection.execute("UPDATE hpke_keys SET retired = ?1 WHERE retired IS NULL", [now as i64])?;
    let keypair = protocol::generate_keypair(id);
    connection.execute(
        "INSERT INTO hpke_keys(id, config, private_key, created) VALUES (?1, ?2, ?3, ?4)",
        params![id, encode(keypair.config()), keypair.private_key().as_ref(), now as i64],
    )?;
    Ok(())
}

/// The first free id after the newest, so that an id is used again as late as possible.
fn free_id(connection: &Connection) -> SqlResult<Option<u8>> {
    let used: Vec<u8> = connection
        .prepare("SELECT id FROM hpke_keys ORDER BY created, id")?
        .query_map([], |row| row.get(0))?
        .collect::<SqlResult<_>>()?;
    let newest = used.last().copied().unwrap_or(0);
    let mut following = (1..=u8::MAX).map(|step| newest.wrapping_add(step));
    Ok(following.find(|id| !used.contains(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack_dap::task::AggregatorRole;

    #[tokio::test]
    async fn a_replaced_key_still_opens_until_it_is_purged() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, None).unwrap();
        let first = Keys::load(&store, 100).await.unwrap();
        let again = Keys::load(&store, 150).await.unwrap();
        assert_eq!(first.current(), again.current());
        let second = Keys::rotate(&store, 200).await.unwrap();
        assert_ne!(first.current().id(), second.current().id());
        assert!(second.find(first.current().id()).is_some());
        let kept = Keys::purge(&store, 200).await.unwrap();
        assert!(kept.find(first.current().id()).is_some());
        let purged = Keys::purge(&store, 201).await.unwrap();
        assert!(purged.find(first.current().id()).is_none());
        assert_eq!(purged.current(), second.current());
    }
}
