//! The keys under which clients seal shares to this aggregator.
//!
//! One key is current: the one that is handed out. A key that has been replaced still opens
//! reports for as long as reports that were sealed under it may be on their way, so that no
//! acknowledged report becomes unreadable; then it is deleted.

use rusqlite::{Connection, params};
use std::collections::HashMap;
use uptack_dap::protocol::{self, Decode, HpkeConfig, HpkeConfigId, HpkeKeypair, HpkePrivateKey, encode};

use crate::{
    aggregator::store::{Store, StoreError},
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
    /// Reads the keys, and makes the first one where there is none.
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
        store
            .write(move |connection| -> std::result::Result<(), StoreError<()>> {
                connection.execute("DELETE FROM hpke_keys WHERE retired < ?1", [before as i64])?;
                Ok(())
            })
            .await?;
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
        let rows: Vec<Row> = store.read(|connection| {
            connection
                .prepare("SELECT config, private_key, created, retired FROM hpke_keys")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
                .collect()
        })?;
        let mut by_id = HashMap::new();
        let mut current = None;
        for (config, private_key, created, retired) in rows {
            let config = HpkeConfig::get_decoded(&config).map_err(|_| Error::environment("a stored key is damaged"))?;
            if retired.is_none() {
                current = Some((config.clone(), created as u64));
            }
            let id = u8::from(*config.id());
            by_id.insert(id, HpkeKeypair::new(config, HpkePrivateKey::new(private_key)));
        }
        Ok(current.map(|(current, created)| Self { current, created, by_id }))
    }
}

/// Configuration, private key, when it was made, when it was replaced.
type Row = (Vec<u8>, Vec<u8>, i64, Option<i64>);

fn insert_key(connection: &Connection, now: u64) -> std::result::Result<(), StoreError<()>> {
    let used: Vec<u8> = connection
        .prepare("SELECT id FROM hpke_keys ORDER BY created, id")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    // The number after the newest, so that a number comes back as late as possible.
    let newest = used.last().copied().unwrap_or(0);
    let free = (1..=u8::MAX)
        .map(|step| newest.wrapping_add(step))
        .find(|id| !used.contains(id))
        .ok_or_else(|| StoreError::Broken("255 keys are in use".to_owned()))?;
    connection.execute("UPDATE hpke_keys SET retired = ?1 WHERE retired IS NULL", [now as i64])?;
    let keypair = protocol::generate_keypair(free);
    connection.execute(
        "INSERT INTO hpke_keys(id, config, private_key, created) VALUES (?1, ?2, ?3, ?4)",
        params![free, encode(keypair.config()), keypair.private_key().as_ref(), now as i64],
    )?;
    Ok(())
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
