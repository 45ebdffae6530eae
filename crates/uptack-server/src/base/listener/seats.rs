//! How many connections each address may hold, and which one is closed when there are no seats left.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tokio::{sync::Notify, time::Instant};

use crate::base::lock;

/// Where connections come from: an IPv4 address, or an IPv6 network of 64 bits, because one host usually gets all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(IpAddr);

impl ClientAddress {
    /// For requests that came through no listener.
    pub(crate) const UNKNOWN: Self = Self(IpAddr::V6(Ipv6Addr::UNSPECIFIED));

    /// The part of an address that limits apply to.
    pub fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
            address => address,
        })
    }
}

/// The connections of a listener.
pub(super) struct Seats {
    connections: usize,
    per_address: usize,
    started: Instant,
    taken: Mutex<Taken>,
}

type Taken = HashMap<ClientAddress, Vec<Arc<Activity>>>;

/// A connection's seat, free again when it is dropped.
pub(super) struct Seat {
    seats: Arc<Seats>,
    address: ClientAddress,
    activity: Arc<Activity>,
}

/// The activity of a connection.
struct Activity {
    /// A handler works on a request of the connection.
    serving: AtomicBool,
    /// When bytes were last read or written, in milliseconds since the listener started.
    progressed: AtomicU64,
    leave: Notify,
}

impl Activity {
    fn new(now: u64) -> Self {
        Self { serving: AtomicBool::new(false), progressed: AtomicU64::new(now), leave: Notify::new() }
    }

    /// Connections of lower rank are given up first.
    fn rank(&self) -> (bool, u64) {
        (self.serving.load(Ordering::Relaxed), self.progressed.load(Ordering::Relaxed))
    }
}

impl Seats {
    pub(super) fn new(connections: usize, per_address: usize) -> Arc<Self> {
        Arc::new(Self { connections, per_address, started: Instant::now(), taken: Mutex::default() })
    }

    /// A seat for a new connection.
    ///
    /// An address that already has its full share gives up its own worst connection. When all seats are taken, the address
    /// that holds the most gives up one, unless the newcomer holds as many.
    pub(super) fn admit(self: &Arc<Self>, address: ClientAddress) -> Option<Arc<Seat>> {
        let mut taken = lock(&self.taken);
        if !self.make_room(&mut taken, address) {
            return None;
        }
        let activity = Arc::new(Activity::new(self.now()));
        taken.entry(address).or_default().push(Arc::clone(&activity));
        Some(Arc::new(Seat { seats: Arc::clone(self), address, activity }))
    }

    /// Closes a connection for a newcomer if necessary; says whether the newcomer is admitted.
    fn make_room(&self, taken: &mut Taken, newcomer: ClientAddress) -> bool {
        let own = taken.get(&newcomer).map_or(0, Vec::len);
        if own >= self.per_address {
            evict(taken, newcomer);
            return true;
        }
        if taken.values().map(Vec::len).sum::<usize>() < self.connections {
            return true;
        }
        match taken.iter().max_by_key(|(_, held)| held.len()) {
            Some((&largest, held)) if held.len() > own => {
                evict(taken, largest);
                true
            }
            _ => false,
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Closes an address's worst connection: the one without progress for the longest time, among those that no handler
/// works for or, if there are none, among all.
fn evict(taken: &mut Taken, address: ClientAddress) {
    let Some(held) = taken.get_mut(&address) else { return };
    if let Some(worst) = (0..held.len()).min_by_key(|index| held[*index].rank()) {
        held.swap_remove(worst).leave.notify_one();
    }
}

impl Seat {
    pub(super) fn address(&self) -> ClientAddress {
        self.address
    }

    /// Notes that bytes were read or written.
    pub(super) fn progress(&self) {
        self.activity.progressed.store(self.seats.now(), Ordering::Relaxed);
    }

    /// Notes that a handler works on a request, until the returned value is dropped.
    pub(super) fn serve(&self) -> Serving {
        self.activity.serving.store(true, Ordering::Relaxed);
        Serving(Arc::clone(&self.activity))
    }

    /// Waits until the seat is needed for another connection.
    pub(super) async fn asked_to_leave(&self) {
        self.activity.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = lock(&self.seats.taken);
        if let Some(held) = taken.get_mut(&self.address) {
            held.retain(|activity| !Arc::ptr_eq(activity, &self.activity));
            if held.is_empty() {
                taken.remove(&self.address);
            }
        }
    }
}

/// A handler works on a request.
pub(super) struct Serving(Arc<Activity>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.serving.store(false, Ordering::Relaxed);
    }
}

/// Places of a resource that is costly to hold, such as a stream: limited in all, and for each holder, such as an address.
#[derive(Debug)]
pub struct Shares<K = ClientAddress> {
    all: usize,
    per_holder: usize,
    taken: Mutex<HashMap<K, usize>>,
}

/// One of [`Shares`], free again when it is dropped.
#[derive(Debug)]
pub struct Share<K: Hash + Eq = ClientAddress> {
    shares: Arc<Shares<K>>,
    holder: K,
}

impl<K: Hash + Eq + Clone> Shares<K> {
    /// `all` places, of which one holder gets at most `per_holder`.
    pub fn new(all: usize, per_holder: usize) -> Arc<Self> {
        Arc::new(Self { all, per_holder, taken: Mutex::new(HashMap::new()) })
    }

    /// A place, if there is one left for this holder.
    pub fn take(self: &Arc<Self>, holder: K) -> Option<Share<K>> {
        let mut taken = lock(&self.taken);
        let own = taken.get(&holder).copied().unwrap_or_default();
        if own >= self.per_holder || taken.values().sum::<usize>() >= self.all {
            return None;
        }
        taken.insert(holder.clone(), own + 1);
        Some(Share { shares: Arc::clone(self), holder })
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        lock(&self.taken).values().sum()
    }
}

impl<K: Hash + Eq> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = lock(&self.shares.taken);
        if let Some(held) = taken.get_mut(&self.holder) {
            *held -= 1;
            if *held == 0 {
                taken.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> ClientAddress {
        ClientAddress::of(IpAddr::from([192, 0, 2, last]))
    }

    fn is_told(seat: &Seat) -> bool {
        use futures_util::FutureExt;
        seat.asked_to_leave().now_or_never().is_some()
    }

    #[test]
    fn a_host_is_one_origin_however_many_addresses_it_takes() {
        let of = |text: &str| ClientAddress::of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::7"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn an_origin_beyond_its_share_gives_up_its_own_idle_connection() {
        let seats = Seats::new(10, 2);
        let (busy, idle) = (seats.admit(address(1)).unwrap(), seats.admit(address(1)).unwrap());
        let other = seats.admit(address(2)).unwrap();
        // The busy one has been without bytes for longer, but a handler works for it.
        idle.activity.progressed.store(5, Ordering::Relaxed);
        let _serving = busy.serve();
        let _newcomer = seats.admit(address(1)).unwrap();
        assert!(is_told(&idle) && !is_told(&busy) && !is_told(&other));
    }

    #[test]
    fn when_all_places_are_taken_who_holds_most_gives_way_to_who_holds_fewer() {
        let seats = Seats::new(4, 3);
        let many: Vec<_> = (0..3).map(|_| seats.admit(address(1)).unwrap()).collect();
        let one = seats.admit(address(2)).unwrap();
        many[0].activity.progressed.store(9, Ordering::Relaxed);
        many[2].activity.progressed.store(9, Ordering::Relaxed);
        let newcomer = seats.admit(address(3)).unwrap();
        assert!(is_told(&many[1]) && !is_told(&many[0]) && !is_told(&one));
        // Two and two of four: a third origin's second connection pushes nobody out who holds no more than it would.
        let second = seats.admit(address(3)).unwrap();
        assert!(is_told(&many[0]) || is_told(&many[2]));
        assert!(seats.admit(address(3)).is_none());
        drop((newcomer, second));
        assert!(seats.admit(address(3)).is_some());
    }

    #[test]
    fn places_are_free_again_when_connections_end() {
        let seats = Seats::new(2, 2);
        let (first, second) = (seats.admit(address(1)).unwrap(), seats.admit(address(2)).unwrap());
        drop(first);
        let third = seats.admit(address(3)).unwrap();
        assert!(!is_told(&second));
        drop((second, third));
        assert!(lock(&seats.taken).is_empty());
    }

    #[test]
    fn shares_are_counted_in_all_and_for_each_origin() {
        let shares = Shares::new(3, 2);
        let (first, _second) = (shares.take(address(1)).unwrap(), shares.take(address(1)).unwrap());
        assert!(shares.take(address(1)).is_none());
        let _third = shares.take(address(2)).unwrap();
        assert!(shares.take(address(3)).is_none() && shares.taken() == 3);
        drop(first);
        assert!(shares.take(address(3)).is_some());
        assert_eq!(shares.taken(), 2);
    }
}
