//! Addresses of servers: which are safe to call, and how they are joined.

use url::{Host, Url};

use crate::error::{Error, Result};

/// Refuses addresses whose traffic others could read or change: anything but https, or http on this machine.
pub fn check_address(url: &Url) -> Result<()> {
    let is_safe = match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_loopback(url),
        _ => false,
    };
    if !is_safe {
        return Err(Error::input(format!("`{url}` is not allowed: use https, or http to this machine only")));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(Error::input(format!(
            "`{}` has more than a host, a port and a path",
            url.host_str().unwrap_or("")
        )));
    }
    Ok(())
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

/// Whether two addresses are of one host, whatever their ports. All names and addresses of this machine are one.
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
            "https://leader.example/?to=elsewhere",
            "https://leader.example/#part",
        ] {
            let told = check_address(&url(bad)).unwrap_err().to_string();
            assert!(!told.contains("secret"), "{told}");
        }
    }

    /// Without tables of Unicode nobody could say which of two spellings is which.
    #[test]
    fn names_in_other_scripts_are_written_as_dns_has_them() {
        assert!("https://büro.example/".parse::<Url>().is_err());
        assert_eq!(url("https://XN--bro-hoa.example/").host_str(), Some("xn--bro-hoa.example"));
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
