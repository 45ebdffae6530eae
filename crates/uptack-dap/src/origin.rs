//! Origins: whom an address belongs to, as web browsers and policies tell servers apart.

use serde::Deserialize;
use std::{fmt, str::FromStr};
use url::Url;

use crate::{
    address,
    error::{Error, Result},
};

/// Scheme, host and port of a server: https, or http on this machine.
///
/// ```
/// use uptack_dap::origin::Origin;
/// let origin: Origin = "https://leader.example".parse()?;
/// assert!(origin.is_of(&"https://leader.example/dap/".parse().unwrap()));
/// assert_eq!(origin.to_string(), "https://leader.example");
/// assert!("https://leader.example/dap/".parse::<Origin>().is_err());
/// # Ok::<(), uptack_dap::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(url::Origin);

impl Origin {
    /// Whether an address is below this origin.
    pub fn is_of(&self, url: &Url) -> bool {
        self.0 == url.origin()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.ascii_serialization())
    }
}

impl FromStr for Origin {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let url = address::parse(text)?;
        address::check_address(&url)?;
        match url.path() {
            "/" => Ok(Self(url.origin())),
            _ => Err(Error::input(format!("`{text}`: an origin is a scheme, a host and a port, without a path"))),
        }
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}
