//! Addresses of servers: how they are read, which are safe to call, and how they are joined.

use serde::{Deserialize, Deserializer};
use std::{fmt, str::FromStr};
use url::{Host, Url};

use crate::error::{Error, Result};

/// Reads the address of a server: `http://` or `https://`, a host, and possibly a port and a path.
///
/// Stricter than [`Url`] itself, which accepts backslashes, tabs and any number of slashes, and decodes the host before it looks at it.
/// In a build with debug assertions, `idna` panics on some hosts that are not plain ASCII (`http://A%C3%A9/`, `http://xn--3ug/`);
/// these are refused before it sees them.
///
/// The error does not repeat the text, which may hold a password.
pub fn parse(text: &str) -> Result<Url> {
    if let Some(problem) = problem(text) {
        return Err(Error::input(problem));
    }
    text.parse().map_err(Error::input_because)
}

/// Reads an address from a document; for `deserialize_with`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Url, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// Why a text is not a plain address, if it is not.
fn problem(text: &str) -> Option<&'static str> {
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return Some(
            "an address has no spaces, backslashes or characters beyond ASCII (a host name in another script begins with xn--)",
        );
    }
    let Some(rest) = after_scheme(text) else {
        return Some("an address begins with http:// or https://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() {
        return Some("an address has a host after http:// or https://");
    }
    if host.contains('%') || !host.split(['.', ':', '@']).all(is_readable_label) {
        return Some("the host of an address is a name as in DNS or a number, without `%`");
    }
    None
}

/// Whether a label that claims to be in another script (`xn--…`) decodes to one, without a mark that changes the direction of reading.
fn is_readable_label(label: &str) -> bool {
    let Some(encoded) = label.get(..4).filter(|start| start.eq_ignore_ascii_case("xn--")).map(|_| &label[4..]) else {
        return true;
    };
    idna::punycode::decode_to_string(encoded).is_some_and(|decoded| !decoded.contains(['\u{200E}', '\u{200F}']))
}

/// The text after `http://` or `https://`.
fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_http = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    is_http.then_some(rest)
}

/// Refuses addresses whose traffic others could read or change: anything but https, or http on this machine.
pub fn check_address(url: &Url) -> Result<()> {
    // First, so that no error repeats a password.
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        let host = url.host_str().unwrap_or("");
        return Err(Error::input(format!("`{host}` has more than a host, a port and a path")));
    }
    let is_safe = match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    };
    if is_safe {
        return Ok(());
    }
    Err(Error::input(format!("`{url}` is not allowed: use https, or http to this machine only")))
}

/// Makes relative addresses go below `address` instead of beside it.
pub fn make_base(address: &mut Url) {
    if !address.path().ends_with('/') {
        let path = format!("{}/", address.path());
        address.set_path(&path);
    }
}

/// The address of `path` below a base.
pub fn join(base: &Url, path: &str) -> Result<Url> {
    let mut base = base.clone();
    make_base(&mut base);
    base.join(path).map_err(|error| Error::input(format!("{base}: {error}")))
}

/// Whether two addresses have the same host, whatever their ports. All names and addresses of this machine count as one host.
pub fn is_same_host(one: &Url, other: &Url) -> bool {
    (is_loopback(one) && is_loopback(other)) || host(one) == host(other)
}

/// The host, without what two spellings of one name can differ in.
fn host(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain(name) => Some(name.trim_end_matches('.').to_lowercase()),
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_canonical().to_string()),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback() || address.is_unspecified(),
        Some(Host::Ipv6(address)) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        None => false,
    }
}

/// Scheme, host and port of a server: https, or http on this machine.
///
/// ```
/// use uptack_dap::address::Origin;
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
        let url = parse(text)?;
        check_address(&url)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn only_addresses_that_nobody_can_listen_in_on_are_taken() {
        for good in [
            "https://leader.example/",
            "https://leader.example:8443/dap/",
            "http://127.0.0.1:9001/",
            "http://localhost:1/",
            "http://[::1]/",
            "https://192.0.2.1/",
        ] {
            assert!(check_address(&url(good)).is_ok(), "{good}");
        }
        for bad in [
            "http://leader.example/",
            "http://192.0.2.1/",
            "http://127.0.0.1.example/",
            "http://localhost.example/",
            "ftp://leader.example/",
            "ftp://127.0.0.1/",
            "file:///etc/passwd",
            "ws://127.0.0.1/",
            "data:text/plain,x",
            "https://user:secret@leader.example/",
            "http://user:secret@leader.example/",
            "https://leader.example/?to=elsewhere",
            "https://leader.example/#part",
        ] {
            let told = check_address(&url(bad)).unwrap_err().to_string();
            assert!(!told.contains("secret"), "{told}");
        }
    }

    /// Without tables of Unicode nobody could say which of two spellings is which.
    #[test]
    fn names_in_other_scripts_are_written_as_in_dns() {
        assert!(parse("https://büro.example/").unwrap_err().to_string().contains("xn--"));
        assert_eq!(parse("https://XN--bro-hoa.example/").unwrap().host_str(), Some("xn--bro-hoa.example"));
    }

    /// A stranger's card may name any host, also one that would make the parser of addresses panic.
    #[test]
    fn what_a_person_and_a_program_could_read_differently_is_refused() {
        for bad in [
            "https://xn--3ug/",
            "https://XN--a-ygn.example/",
            "https://a.xn--\u{7f}/",
            "https://xn--/",
            "http://Bü/",
            "http:/M06⊥/",
            "http://B%C3%BC/",
            "http://%41/",
            "https:\\\\leader.example\\",
            "https://leader.example\\@elsewhere.example/",
            "https:leader.example",
            "https:///leader.example/",
            "https://lea\tder.example/",
            " https://leader.example/",
            "https://leader.example/a b",
            "https://",
            "https://?leader.example",
            "leader.example",
            "ftp://leader.example/",
            "//leader.example/",
            "",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for good in ["HTTPS://Leader.Example", "http://127.0.0.1:9001/dap%20/", "http://[::1]:80/"] {
            assert_eq!(parse(good).unwrap(), url(good));
        }
    }

    #[test]
    fn an_error_does_not_repeat_a_password() {
        for text in
            ["https://user:sec%ret@leader.example/", "ftp://user:sec%ret@leader.example/", "https://user:sec%ret@ü/"]
        {
            let told = parse(text).unwrap_err().to_string();
            assert!(!told.contains("sec%ret"), "{told}");
        }
    }

    #[test]
    fn hosts_are_told_apart_by_more_than_the_port() {
        for (one, other) in [
            ("https://a.example/", "https://A.example:444/x/"),
            ("https://a.example/", "https://a.example./"),
            ("http://127.0.0.1:1/", "http://localhost:2/"),
            ("http://127.0.0.1:1/", "http://127.0.0.2:1/"),
            ("http://[::1]:1/", "http://[::ffff:127.0.0.1]:2/"),
            ("https://[::ffff:192.0.2.1]/", "https://192.0.2.1/"),
        ] {
            assert!(is_same_host(&url(one), &url(other)), "{one} {other}");
        }
        assert!(!is_same_host(&url("https://a.example/"), &url("https://b.example/")));
    }
}
