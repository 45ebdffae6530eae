//! Which web pages may read what: those that the operator names, and only where people's pages have to.

use reqwest::{Method, Response, header};
use url::Url;

use super::support::*;

const PAGE: &str = "https://page.example";
const OTHER: &str = "https://page.example.evil";

async fn call(method: Method, url: Url, origin: &str) -> Response {
    reqwest::Client::new().request(method, url).header(header::ORIGIN, origin).send().await.unwrap()
}

/// Whom an answer lets read it.
fn readable_by(response: &Response) -> Option<&str> {
    response.headers().get(header::ACCESS_CONTROL_ALLOW_ORIGIN).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn pages_that_are_named_read_cards_and_keys_and_upload_and_nothing_else() {
    let stage = Stage::with(|config| config.allowed_origins = vec![PAGE.parse().unwrap()]).await;
    let query = stage.ask().await.queries[0].query.clone();
    let (desk, leader, helper) = (stage.desk.url(), stage.desk.leader_url(), stage.desk.helper_url());
    let reports = format!("tasks/{query}/reports");
    for (method, url) in [
        (Method::GET, desk.join(&format!("queries/{query}/card")).unwrap()),
        // A refusal is readable, too: a page has to know whether to try again.
        (Method::GET, desk.join("queries/AAAA/card").unwrap()),
        (Method::GET, leader.join("hpke_config").unwrap()),
        (Method::GET, helper.join("hpke_config").unwrap()),
        (Method::OPTIONS, leader.join(&reports).unwrap()),
        (Method::PUT, leader.join(&reports).unwrap()),
    ] {
        let response = call(method.clone(), url.clone(), PAGE).await;
        assert_eq!(readable_by(&response), Some(PAGE), "{method} {url}");
        assert_eq!(response.headers()[header::VARY], "origin");
        for stranger in [OTHER, "null", "http://page.example", "https://page.example:8443"] {
            assert_eq!(readable_by(&call(method.clone(), url.clone(), stranger).await), None, "{method} {url}");
        }
    }
    for (method, url) in [
        (Method::GET, desk.join("queries").unwrap()),
        (Method::POST, desk.join("queries").unwrap()),
        (Method::GET, desk.join("queries/own").unwrap()),
        (Method::GET, desk.join("key").unwrap()),
        (Method::DELETE, desk.join(&format!("queries/{query}")).unwrap()),
        (Method::POST, desk.join(&format!("queries/{query}/result")).unwrap()),
        (Method::POST, leader.join(&format!("tasks/{query}/collection_jobs/AAAAAAAAAAAAAAAAAAAAAA")).unwrap()),
        (Method::PUT, helper.join(&reports).unwrap()),
        (Method::POST, helper.join(&format!("tasks/{query}/aggregate_shares")).unwrap()),
    ] {
        let response = call(method.clone(), url.clone(), PAGE).await;
        assert_eq!(readable_by(&response), None, "{method} {url}");
    }
}

#[tokio::test]
async fn a_page_may_send_the_headers_of_a_report_and_no_authorization() {
    let stage = Stage::with(|config| config.allowed_origins = vec![PAGE.parse().unwrap()]).await;
    let query = stage.ask().await.queries[0].query.clone();
    let url = stage.desk.leader_url().join(&format!("tasks/{query}/reports")).unwrap();
    let response = call(Method::OPTIONS, url, PAGE).await;
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_METHODS], "PUT");
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS], "content-type, uptack-credential");
    assert!(!response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
}

#[tokio::test]
async fn without_a_list_no_page_reads_anything() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries[0].query.clone();
    for url in [
        stage.desk.url().join(&format!("queries/{query}/card")).unwrap(),
        stage.desk.leader_url().join("hpke_config").unwrap(),
    ] {
        assert_eq!(readable_by(&call(Method::GET, url, PAGE).await), None);
    }
}
