//! The keys under which clients seal shares to this aggregator.
//!
//! One key is current: the one that is handed out. A key that has been replaced still opens
//! reports for as long as reports that were sealed under it may be on their way, so that no
//! acknowledged report becomes unreadable; then it is deleted.

use std::collections::HashMap;
use uptack_dap::protocol::{HpkeConfig, HpkeKeypair};

use crate::{
    aggregator::store::Store,
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
        store.replace_key(now).await?;
        Self::read(store)?.ok_or_else(|| Error::environment("the new key was not stored"))
    }

    /// Deletes keys that were retired before `before`.
    pub(crate) async fn purge(store: &Store, before: u64) -> Result<Self> {
        store.delete_keys_retired_before(before).await?;
        Self::read(store)?.ok_or_else(|| Error::environment("no key is left"))
    }

    /// The public half of the current key.
    pub(crate) fn current(&self) -> &HpkeConfig {
        &self.current
    }

    pub(crate) fn created(&self) -> u64 {
        self.created
    }

    pub(crate) fn find(&self, id: u8) -> Option<&HpkeKeypair> {
        self.by_id.get(&id)
    }

    fn read(store: &Store) -> Result<Option<Self>> {
        let mut by_id = HashMap::new();
        let mut current = None;
        for key in store.keys()? {
            let keypair = HpkeKeypair::from_bytes(&key.config, key.private_key)
                .ok_or_else(|| Error::environment("a stored key is damaged"))?;
            if key.is_current {
                current = Some((keypair.config().clone(), key.created));
            }
            by_id.insert(keypair.id(), keypair);
        }
        Ok(current.map(|(current, created)| Self { current, created, by_id }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uptack_dap::task::AggregatorRole;

    #[tokio::test]
    async fn a_replaced_key_still_opens_until_it_is_purged() {
        let id = |keys: &Keys| u8::from(*keys.current().id());
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path(), AggregatorRole::Leader, None).unwrap();
        let first = Keys::load(&store, 100).await.unwrap();
        let again = Keys::load(&store, 150).await.unwrap();
        assert_eq!(first.current(), again.current());
        let second = Keys::rotate(&store, 200).await.unwrap();
        assert_ne!(id(&first), id(&second));
        assert!(second.find(id(&first)).is_some());
        let kept = Keys::purge(&store, 200).await.unwrap();
        assert!(kept.find(id(&first)).is_some());
        let purged = Keys::purge(&store, 201).await.unwrap();
        assert!(purged.find(id(&first)).is_none());
        assert_eq!(purged.current(), second.current());
    }
}
