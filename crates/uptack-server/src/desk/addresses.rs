//! Addresses to listen on, kept from run to run: cards and owners' settings name them.

use std::net::{Ipv4Addr, SocketAddr};
use url::Url;

use crate::{desk::store::Store, error::Result};

impl Store {
    /// The address to listen on: the one asked for, that of the last run, or a free port on loopback.
    pub(crate) fn listen_address(&self, key: &str, wanted: Option<SocketAddr>) -> Result<SocketAddr> {
        let last = self.setting(key)?.and_then(|text| text.parse().ok());
        let free_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(wanted.or(last).unwrap_or(free_port))
    }

    /// Keeps the address that is listened on for the next run.
    pub(crate) fn keep_listen_address(&self, key: &str, url: &Url) -> Result<()> {
        url.socket_addrs(|| None)?.first().map_or(Ok(()), |address| self.set_setting(key, &address.to_string()))
    }
}
