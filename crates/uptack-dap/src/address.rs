//! Addresses of servers: how they are read, which are safe to call, and how they are joined.

use serde::{Deserialize, Deserializer};
use std::{fmt, net::Ipv6Addr, str::FromStr};
use url::{Host, Url};

use crate::error::{Error, Result};

/// Reads the address of a server: `http://` or `https://`, a host, and possibly a port and a path.
///
/// Stricter than [`Url`] itself, which accepts many spellings of one host. Here a host has one spelling, but for the case of its letters:
/// a name as in DNS without a final dot, four decimal numbers, or IPv6 in its canonical form, where it does not stand for an
/// IPv4 address. The page for people follows the same rules (`web/owner/src/address.ts`); `vectors/addresses.json` checks both.
///
/// In a build with debug assertions, `idna` panics on some hosts that are not plain ASCII (`http://A%C3%A9/`, `http://xn--3ug/`);
/// these are refused before it sees them.
///
/// The error does not repeat the text, which may hold a password.
pub fn parse(text: &str) -> Result<Url> {
    let parts = Parts::split(text).map_err(Error::input)?;
    if let Some(problem) = parts.problem() {
        return Err(Error::input(problem));
    }
    let url: Url = text.parse().map_err(Error::input_because)?;
    match parts.difference(&url) {
        Some(problem) => Err(Error::input(problem)),
        None => Ok(url),
    }
}

/// Reads an address from a document; for `deserialize_with`.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Url, D::Error> {
    parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

/// The parts of an address, as they are written.
struct Parts<'a> {
    host: &'a str,
    port: Option<&'a str>,
    path: &'a str,
}

const NOT_A_HOST: &str = "the host of an address is a name as in DNS, without `%` and without a final dot, or an IP address in its usual form";

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> std::result::Result<Self, &'static str> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(
                "an address has no spaces, backslashes or characters beyond ASCII (a host name in another script begins with xn--)",
            );
        }
        let rest = after_scheme(text).ok_or("an address begins with http:// or https://")?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') || path.contains(['?', '#']) {
            return Err("an address has a host, a port and a path, and nothing else");
        }
        // The colons of an IPv6 address are within brackets.
        let end_of_host = authority.rfind(']').map_or(0, |bracket| bracket + 1);
        let (host, port) = match authority[end_of_host..].find(':') {
            Some(colon) => (&authority[..end_of_host + colon], Some(&authority[end_of_host + colon + 1..])),
            None => (authority, None),
        };
        Ok(Self { host, port, path })
    }

    /// What is wrong with them, as far as their form shows it.
    fn problem(&self) -> Option<&'static str> {
        if self.host.is_empty() {
            return Some("an address has a host after http:// or https://");
        }
        if !is_bracketed(self.host) && !is_name(self.host) {
            return Some(NOT_A_HOST);
        }
        if self.port.is_some_and(|port| !is_port(port)) {
            return Some("the port of an address is a number from 1 to 65535");
        }
        (!is_path(self.path)).then_some("the path of an address has a character that must be written with `%`")
    }

    /// What the parser understood differently from how it is written.
    fn difference(&self, url: &Url) -> Option<&'static str> {
        if matches!(url.host(), Some(Host::Ipv6(address)) if holds_ipv4(address)) {
            return Some("the host of an address is an IPv4 address written as IPv6");
        }
        if url.host_str() != Some(self.host.to_ascii_lowercase().as_str()) {
            return Some(NOT_A_HOST);
        }
        let path = if self.path.is_empty() { "/" } else { self.path };
        (url.path() != path).then_some("the path of an address has no `.` or `..` between its slashes")
    }
}

/// Whether a host has the characters of an IPv6 address in brackets. Which of them are one is for the parser to say.
fn is_bracketed(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.is_some_and(|inner| inner.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':'))
}

/// Whether a host is a name as in DNS, or looks like one.
fn is_name(host: &str) -> bool {
    host.len() <= 253 && host.split('.').all(|label| is_label(label) && is_readable_label(label))
}

fn is_label(label: &str) -> bool {
    let is_letter_or_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = label.as_bytes();
    is_letter_or_digit(bytes.first())
        && is_letter_or_digit(bytes.last())
        && bytes.len() <= 63
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Whether a label that claims to be in another script (`xn--…`) decodes to one, without a mark that changes the direction of reading.
fn is_readable_label(label: &str) -> bool {
    let Some(encoded) = label.get(..4).filter(|start| start.eq_ignore_ascii_case("xn--")).map(|_| &label[4..]) else {
        return true;
    };
    idna::punycode::decode_to_string(encoded).is_some_and(|decoded| !decoded.contains(['\u{200E}', '\u{200F}']))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0') && text.parse::<u16>().is_ok()
}

/// Whether a path has only characters that every reader leaves alone (RFC 3986, section 3.3).
fn is_path(path: &str) -> bool {
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte);
        let mut is_digit = || rest.next().is_some_and(|digit| digit.is_ascii_hexdigit());
        let is_allowed = is_plain || (byte == b'%' && is_digit() && is_digit());
        if !is_allowed {
            return false;
        }
    }
    true
}

/// Whether an IPv6 address stands for an IPv4 address: mapped, compatible, translated (NAT64) or tunnelled (6to4).
fn holds_ipv4(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0, ..] => !address.is_loopback() && !address.is_unspecified(),
        [0x64, 0xff9b, ..] | [0x2002, ..] => true,
        _ => false,
    }
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

    #[derive(Deserialize)]
    struct Vectors {
        rows: Vec<Row>,
        hosts: Vec<Hosts>,
    }

    #[derive(Deserialize)]
    struct Row {
        text: String,
        reads: Option<String>,
    }

    #[derive(Deserialize)]
    struct Hosts {
        one: String,
        other: String,
        same: bool,
    }

    fn vectors() -> Vectors {
        serde_json::from_str(include_str!("../../../vectors/addresses.json")).unwrap()
    }

    /// An address as a card's aggregators are read, as a base.
    fn read(text: &str) -> Result<Url> {
        let mut url = parse(text)?;
        check_address(&url)?;
        make_base(&mut url);
        Ok(url)
    }

    /// The page for people reads the same file.
    #[test]
    fn an_address_reads_as_it_does_on_the_page_for_people() {
        let wrong: Vec<_> = vectors()
            .rows
            .into_iter()
            .map(|row| (read(&row.text).ok().map(String::from), row))
            .filter(|(found, row)| *found != row.reads)
            .map(|(found, row)| (row.text, found))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn leader_and_helper_at_one_host_are_one_place_however_it_is_written() {
        for Hosts { one, other, same } in vectors().hosts {
            assert_eq!(is_same_host(&read(&one).unwrap(), &read(&other).unwrap()), same, "{one} {other}");
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
