//! A brake on guessing tokens.
//!
//! After some wrong tokens from one address within a minute, tokens from there are no longer looked at until the minute is over,
//! right or wrong: a guesser learns nothing more. A token that was right from the same address before is always looked at, so that
//! somebody who shares the address, or the proxy, with a guesser goes on working.
//!
//! It takes the same memory whatever happens. If more addresses guess than it has room for, it forgets some of them, and brakes
//! less; it never brakes an address from which nothing wrong came.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Mutex,
    time::Instant,
};

use axum::http::StatusCode;

use super::{
    listener::ClientAddress,
    lock,
    problem::{Answer, Problem},
};
use crate::error::Result;

/// Wrong tokens from one address within a minute. A person mistypes less often, and a program with an old token asks again less
/// often.
const MOST_WRONG: u32 = 20;
/// The length of a period, in seconds.
const PERIOD: u64 = 60;
/// Addresses whose wrong tokens are counted.
const ADDRESSES: usize = 1024;
/// Right tokens that are remembered, each with its address.
const REMEMBERED: usize = 256;

/// What is known of wrong and right tokens.
pub(crate) struct GuessBrake {
    /// Keyed at random, so that nobody can choose addresses that share a place.
    hashes: RandomState,
    started: Instant,
    seen: Mutex<Seen>,
}

struct Seen {
    wrong: Vec<WrongTokens>,
    /// Hashes of right tokens with their addresses.
    right: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct WrongTokens {
    /// The hash of the address.
    address: u64,
    period: u64,
    count: u32,
}

impl Default for GuessBrake {
    fn default() -> Self {
        let seen = Seen { wrong: vec![WrongTokens::default(); ADDRESSES], right: vec![0; REMEMBERED] };
        Self { hashes: RandomState::new(), started: Instant::now(), seen: Mutex::new(seen) }
    }
}

impl GuessBrake {
    /// Looks a token up that was shown from an address, unless too many wrong ones came from there.
    pub(crate) fn look_up<T>(
        &self,
        address: ClientAddress,
        shown: &[u8],
        find: impl FnOnce() -> Result<Option<T>>,
    ) -> Answer<Option<T>> {
        self.look_up_at(self.started.elapsed().as_secs(), address, shown, find)
    }

    fn look_up_at<T>(
        &self,
        now: u64,
        address: ClientAddress,
        shown: &[u8],
        find: impl FnOnce() -> Result<Option<T>>,
    ) -> Answer<Option<T>> {
        let (from, token) = (self.hashes.hash_one(address), self.hashes.hash_one((address, shown)));
        // Periods are counted from one, because places that nobody has taken are all zeros.
        let period = now / PERIOD + 1;
        if lock(&self.seen).is_braked(from, token, period) {
            let detail = "Too many wrong tokens came from your address. Try again in a minute.";
            let wait = (PERIOD - now % PERIOD) as u32;
            return Err(Problem::http(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(wait));
        }
        let found = find()?;
        lock(&self.seen).note(from, token, period, found.is_some());
        Ok(found)
    }
}

impl Seen {
    fn is_braked(&self, from: u64, token: u64, period: u64) -> bool {
        let wrong = self.wrong[from as usize % ADDRESSES];
        let is_counted = wrong.address == from && wrong.period == period;
        is_counted && wrong.count >= MOST_WRONG && self.right[token as usize % REMEMBERED] != token
    }

    fn note(&mut self, from: u64, token: u64, period: u64, is_right: bool) {
        if is_right {
            self.right[token as usize % REMEMBERED] = token;
            return;
        }
        let wrong = &mut self.wrong[from as usize % ADDRESSES];
        if wrong.address != from || wrong.period != period {
            *wrong = WrongTokens { address: from, period, count: 0 };
        }
        wrong.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn address(last: u8) -> ClientAddress {
        ClientAddress::of(IpAddr::from([192, 0, 2, last]))
    }

    /// The status of showing a token; only this one is right.
    fn shown(brake: &GuessBrake, now: u64, last: u8, token: &str) -> u16 {
        let find = || Ok((token == "right").then_some(()));
        match brake.look_up_at(now, address(last), token.as_bytes(), find) {
            Ok(Some(())) => 200,
            Ok(None) => 401,
            Err(problem) => problem.status().as_u16(),
        }
    }

    #[test]
    fn a_guesser_is_braked_and_learns_nothing_and_nobody_else_is() {
        let brake = GuessBrake::default();
        for guess in 0..MOST_WRONG {
            assert_eq!(shown(&brake, 59, 1, &guess.to_string()), 401);
        }
        // From now on a right token gets the same answer as a wrong one, and is not even looked at.
        assert_eq!([shown(&brake, 59, 1, "wrong"), shown(&brake, 59, 1, "right")], [429, 429]);
        let unlooked = brake.look_up_at(59, address(1), b"right", || -> Result<Option<()>> { unreachable!() });
        assert!(unlooked.is_err());
        // Other addresses are not concerned, and the next minute is another.
        assert_eq!(shown(&brake, 59, 2, "right"), 200);
        assert_eq!(shown(&brake, 60, 1, "right"), 200);
    }

    #[test]
    fn who_worked_from_the_address_before_goes_on_working() {
        let brake = GuessBrake::default();
        assert_eq!(shown(&brake, 5, 1, "right"), 200);
        for guess in 0..1000 {
            shown(&brake, 6, 1, &guess.to_string());
        }
        assert_eq!([shown(&brake, 6, 1, "1000"), shown(&brake, 6, 1, "right")], [429, 200]);
        let seen = lock(&brake.seen);
        assert_eq!((seen.wrong.len(), seen.right.len()), (ADDRESSES, REMEMBERED));
    }
}
