//! Certificates that are refused are refused in words that help.

use std::path::PathBuf;
use tempfile::TempDir;
use uptack_dap::{http_client, task::AggregatorRole};
use uptack_server::aggregator::{Aggregator, Config};

/// A leader with a self-signed certificate, which is that of an authority or not.
async fn leader(authority: bool) -> (TempDir, PathBuf, Aggregator) {
    let directory = tempfile::tempdir().unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if authority {
        // What `openssl req -x509` makes by default.
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let key_pair = rcgen::KeyPair::generate().unwrap();
    let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
    std::fs::write(&certificate, parameters.self_signed(&key_pair).unwrap().pem()).unwrap();
    std::fs::write(&key, key_pair.serialize_pem()).unwrap();
    let mut config = Config::new(AggregatorRole::Leader, directory.path().join("leader"));
    config.tls = Some((certificate.clone(), key));
    (directory, certificate, Aggregator::start(config).await.unwrap())
}

async fn call(leader: &Aggregator, root: Option<&PathBuf>) -> Result<u16, String> {
    let url = format!("https://localhost:{}/hpke_config", leader.url().port().unwrap());
    let answer = http_client::client(root.map(PathBuf::as_path)).unwrap().get(url).send().await;
    answer.map(|answer| answer.status().as_u16()).map_err(|error| http_client::no_answer("leader", error).to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_default_self_signed_certificate_is_refused_with_what_to_do() {
    let (_directory, certificate, authority) = leader(true).await;
    let error = call(&authority, Some(&certificate)).await.unwrap_err();
    assert!(error.contains("CaUsedAsEndEntity") && error.contains("CA:FALSE"), "{error}");
    let (_directory, certificate, server) = leader(false).await;
    assert_eq!(call(&server, Some(&certificate)).await, Ok(200));
    let error = call(&server, None).await.unwrap_err();
    assert!(error.contains("name the root certificate that issued it"), "{error}");
}
