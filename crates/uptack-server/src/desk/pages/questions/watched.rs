//! Values by name that many wait for and one task looks at: the cost of a look does not grow with the number of those who wait.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

use crate::base::lock;

/// Values by name.
pub(in crate::desk::pages) type Latest<T> = Arc<HashMap<String, T>>;

/// The values that are followed, and the latest of each.
pub(in crate::desk::pages) struct Watched<T> {
    names: Arc<Mutex<FollowedNames>>,
    latest: watch::Sender<Latest<T>>,
}

/// How many follow each name, and whether somebody looks for them.
#[derive(Default)]
struct FollowedNames {
    followers: BTreeMap<String, usize>,
    is_looking: bool,
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Self { names: Arc::default(), latest: watch::Sender::new(Arc::default()) }
    }
}

impl<T> Watched<T> {
    /// Follows these names for as long as the result is kept.
    pub(super) fn follow(&self, names: &[String]) -> Followed<T> {
        let mut followed = lock(&self.names);
        for name in names {
            *followed.followers.entry(name.clone()).or_default() += 1;
        }
        Followed { names: names.to_vec(), all: Arc::clone(&self.names), latest: self.latest.subscribe() }
    }

    /// Whether somebody has to begin looking: true for one caller, until there is nothing to look at.
    pub(super) fn begins_looking(&self) -> bool {
        let mut names = lock(&self.names);
        let begins = !names.is_looking && !names.followers.is_empty();
        names.is_looking |= begins;
        begins
    }

    /// Every name that is followed, once; none if nobody follows any, and then nobody looks any more.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let mut names = lock(&self.names);
        names.is_looking = !names.followers.is_empty();
        names.is_looking.then(|| names.followers.keys().cloned().collect())
    }

    /// Tells the followers what was seen, if any value is not what it was.
    pub(super) fn publish(&self, found: HashMap<String, T>)
    where
        T: PartialEq,
    {
        self.latest.send_if_modified(|latest| {
            let is_new = **latest != found;
            if is_new {
                *latest = Arc::new(found);
            }
            is_new
        });
    }
}

/// Somebody who follows some names.
pub(super) struct Followed<T> {
    names: Vec<String>,
    all: Arc<Mutex<FollowedNames>>,
    latest: watch::Receiver<Latest<T>>,
}

impl<T> Followed<T> {
    /// Waits until a value is not what it was; forever if nobody looks.
    pub(super) async fn changed(&mut self) {
        if self.latest.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// The latest values, also of names that others follow.
    pub(super) fn latest(&self) -> Latest<T> {
        Arc::clone(&self.latest.borrow())
    }
}

impl<T> Drop for Followed<T> {
    fn drop(&mut self) {
        let mut all = lock(&self.all);
        for name in &self.names {
            if let Some(followers) = all.followers.get_mut(name) {
                *followers -= 1;
                if *followers == 0 {
                    all.followers.remove(name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sixty_who_follow_the_same_cost_one_look() {
        let watched = Watched::<u32>::default();
        let names = ["a", "b"].map(str::to_owned);
        let mut followed: Vec<Followed<u32>> = (0..60).map(|_| watched.follow(&names)).collect();
        assert!(watched.begins_looking() && !watched.begins_looking(), "one task looks for all");
        let mut looks = 0;
        for value in [1, 1, 2] {
            let names = watched.names().unwrap();
            looks += names.len();
            watched.publish(names.into_iter().map(|name| (name, value)).collect());
        }
        assert_eq!(looks, 3 * 2, "each name once for each look");
        for one in &mut followed {
            one.changed().await;
            assert_eq!(one.latest()["b"], 2);
            assert!(!one.latest.has_changed().unwrap());
        }
        // A look that finds nothing new wakes nobody.
        watched.publish(names.iter().map(|name| (name.clone(), 2)).collect());
        assert!(!followed[0].latest.has_changed().unwrap());
        followed.truncate(1);
        assert_eq!(watched.names().unwrap(), names);
        followed.clear();
        assert!(watched.names().is_none() && !watched.begins_looking());
        let _again = watched.follow(&names[..1]);
        assert!(watched.begins_looking() && watched.names().unwrap() == ["a"]);
    }
}
