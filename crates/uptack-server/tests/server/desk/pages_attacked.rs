//! The pages as an attacker meets them: the attacks of other sites, of other users, and of what is written on cards.

use std::sync::{Arc, Mutex};
use uptack_dap::{desk_client::Schedule, token::Token};

use crate::desk::support::{START, Stage, ballot, call, card, state};
use crate::desk::support_pages::Browser;

const EVERY_PAGE: [&str; 9] = [
    "/pages/",
    "/pages/sign-in",
    "/pages/ask",
    "/pages/spending",
    "/pages/verify",
    "/pages/style.css",
    "/pages/script.js",
    "/pages/nowhere",
    "/",
];

#[tokio::test]
async fn another_site_changes_nothing() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries.remove(0).query;
    let page = format!("/pages/questions/{query}");
    let mut browser = Browser::signed_in(&stage.desk).await;
    let mut other = Browser::signed_in(&stage.desk).await;
    let own = browser.get(&page).await.field("form_token");
    let others = other.get(&page).await.field("form_token");
    let actions = [
        format!("{page}/cancel"),
        format!("{page}/release"),
        "/pages/ask/open".to_owned(),
        "/pages/sign-out".to_owned(),
    ];
    for action in &actions {
        // Without the form's token, with a guess, and with one of another session.
        for token in ["", "guess", others.as_str()] {
            assert_eq!(browser.post(action, &[("form_token", token)]).await.status, 403, "{action} {token}");
        }
        // With the right one, but sent from another site, as its browser says.
        for (name, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            browser.headers = vec![(name, value.to_owned())];
            assert_eq!(browser.post(action, &[("form_token", &own)]).await.status, 403, "{action} {name}: {value}");
        }
        browser.headers.clear();
    }
    assert_eq!(state(&stage.analyst, &query).await, "open");
    // The cookie alone opens nothing for programs.
    let (name, value) = browser.session();
    let request = reqwest::Client::new().delete(stage.desk.url().join(&format!("queries/{query}")).unwrap());
    assert_eq!(request.header("cookie", format!("{name}={value}")).send().await.unwrap().status(), 401);
    let own_form = browser.post(&actions[0], &[("form_token", &own)]).await;
    assert_eq!((own_form.status, state(&stage.analyst, &query).await.as_str()), (303, "cancelled"));
}

#[tokio::test]
async fn nobody_signs_a_browser_in_for_somebody_else() {
    let stage = Stage::new().await;
    let mut browser = Browser::new(&stage.desk);
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let form = browser.get("/pages/sign-in").await.field("form_token");
    // The form's token belongs to the cookie that came with it.
    let visit = std::mem::take(&mut browser.cookies);
    let fields = [("form_token", form.as_str()), ("token", token.trim())];
    assert_eq!(browser.post("/pages/sign-in", &fields).await.status, 403);
    browser.cookies = visit;
    browser.headers = vec![("origin", "https://evil.example".to_owned())];
    assert_eq!(browser.post("/pages/sign-in", &fields).await.status, 403);
    browser.headers.clear();
    assert_eq!(browser.post("/pages/sign-in", &fields).await.status, 303);
}

#[tokio::test]
async fn a_session_that_somebody_else_chose_is_never_taken() {
    let stage = Stage::new().await;
    let name = Browser::signed_in(&stage.desk).await.session().0;
    let chosen = Token::generate().as_str().to_owned();
    let mut victim = Browser::new(&stage.desk);
    victim.cookies.insert(name.clone(), chosen.clone());
    assert_eq!(victim.get("/pages/").await.location, "/pages/sign-in");
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let answer = victim.sign_in(token.trim()).await;
    assert_eq!(answer.status, 303);
    assert_ne!(victim.session().1, chosen);
    let cookie = answer.set_cookies.iter().find(|line| line.starts_with(&name)).unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");
    let mut attacker = Browser::new(&stage.desk);
    attacker.cookies.insert(name.clone(), chosen);
    assert_eq!(attacker.get("/pages/").await.location, "/pages/sign-in");
    // Signing in anew ends the session of before, and signing out ends this one.
    let before = victim.session().1;
    let link = stage.desk.sign_in_link().unwrap().unwrap();
    victim.get(&link[url::Position::BeforePath..]).await;
    let after = victim.session().1;
    victim.submit("/pages/", "/pages/sign-out", &[]).await;
    assert!(!victim.cookies.contains_key(&name));
    for ended in [before, after] {
        attacker.cookies.insert(name.clone(), ended);
        assert_eq!(attacker.get("/pages/").await.location, "/pages/sign-in");
    }
}

/// A page on another port or subdomain can set a cookie for the desk's host, but not one whose name begins with `__Host-`.
#[tokio::test]
async fn over_tls_a_session_that_another_page_planted_is_never_taken() {
    let stage = Stage::new().await;
    let tls = || vec![("x-forwarded-proto", "https".to_owned())];
    stage.caller("mallory");
    let token = std::fs::read_to_string(stage.directory.path().join("tokens/mallory")).unwrap();
    let mut mallory = Browser::new(&stage.desk);
    mallory.headers = tls();
    assert_eq!(mallory.sign_in(token.trim()).await.status, 303);
    let (name, session) = mallory.session();
    let planted = name.strip_prefix("__Host-").unwrap().to_owned();
    let mut victim = Browser::new(&stage.desk);
    victim.headers = tls();
    victim.cookies.insert(planted.clone(), session.clone());
    // The victim is nobody until it signs in, and then itself; asking as mallory would put its question into her list.
    assert_eq!(victim.get("/pages/").await.location, "/pages/sign-in");
    let own = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    assert_eq!(victim.sign_in(own.trim()).await.status, 303);
    assert!(victim.get("/pages/").await.text.contains("analyst"));
    assert_ne!(victim.cookies[&name], session);
    // Nor does a planted form cookie count: every cookie over TLS has the prefix.
    assert!(victim.cookies.keys().all(|name| name == &planted || name.starts_with("__Host-")), "{:?}", victim.cookies);
    // Without TLS there is no such name, and one that was set over TLS counts for nothing.
    mallory.headers.clear();
    assert_eq!(mallory.get("/pages/").await.location, "/pages/sign-in");
}

#[tokio::test]
async fn behind_tls_the_cookie_stays_there() {
    let stage = Stage::new().await;
    let mut browser = Browser::new(&stage.desk);
    browser.headers = vec![("x-forwarded-proto", "https".to_owned())];
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let answer = browser.sign_in(token.trim()).await;
    let cookie = answer.set_cookies.iter().find(|line| line.contains("HttpOnly") && !line.contains("visit")).unwrap();
    assert!(cookie.starts_with("__Host-") && cookie.contains("; Secure"), "{cookie}");
    assert_eq!(browser.get("/pages/").await.status, 200);
}

#[tokio::test]
async fn sessions_end_with_their_time_and_with_their_token() {
    let stage = Stage::new().await;
    stage.caller("grace");
    let token = std::fs::read_to_string(stage.directory.path().join("tokens/grace")).unwrap();
    let mut grace = Browser::signed_in_with(&stage.desk, &token).await;
    let mut analyst = Browser::signed_in(&stage.desk).await;
    assert_eq!((grace.get("/pages/").await.status, analyst.get("/pages/").await.status), (200, 200));
    std::fs::remove_file(stage.directory.path().join("tokens/grace")).unwrap();
    assert_eq!(grace.get("/pages/").await.location, "/pages/sign-in");
    stage.clock.set(START + 9 * 3600);
    assert_eq!(analyst.get("/pages/").await.location, "/pages/sign-in");
    assert_eq!(analyst.sign_in("not-a-token").await.status, 401);
}

#[tokio::test]
async fn a_question_is_its_analysts_here_as_well() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries.remove(0).query;
    let page = format!("/pages/questions/{query}");
    for (file, status) in [("grace", 403), ("ops.admin", 200)] {
        stage.caller(file);
        let token = std::fs::read_to_string(stage.directory.path().join("tokens").join(file)).unwrap();
        let mut browser = Browser::signed_in_with(&stage.desk, &token).await;
        assert_eq!(browser.get(&page).await.status, status, "{file}");
        assert_eq!(browser.get(&format!("{page}/card")).await.status, status, "{file}");
        let home = browser.get("/pages/").await;
        assert_eq!(home.text.contains(&query), status == 200, "{file}");
        let cancelled = browser.submit("/pages/", &format!("{page}/cancel"), &[]).await;
        assert_eq!(cancelled.status, if status == 200 { 303 } else { 403 }, "{file}");
    }
    let mut stranger = Browser::new(&stage.desk);
    for path in [page.as_str(), "/pages/", "/pages/ask", "/pages/spending", "/pages/verify"] {
        assert_eq!(stranger.get(path).await.location, "/pages/sign-in", "{path}");
    }
    for path in [format!("{page}/live"), "/pages/live?names=x".to_owned(), "/pages/ask/plan?owners=5".to_owned()] {
        assert_eq!(stranger.get(&path).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_script_in_a_question_stays_text() {
    let stage = Stage::new().await;
    let hostile = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'";
    let mut single = card();
    single.question = Some(hostile.to_owned());
    let mut many = ballot(&["north", hostile]);
    many.question = Some(hostile.to_owned());
    let mut browser = Browser::signed_in(&stage.desk).await;
    for card in [single, many] {
        let query = stage.analyst.open(&card, Schedule::Once { seconds: 600 }).await.unwrap().queries.remove(0).query;
        for page in ["/pages/".to_owned(), format!("/pages/questions/{query}")] {
            let text = browser.get(&page).await.text;
            assert!(text.contains("&lt;script&gt;alert(1)"), "{page}");
            assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{page}");
        }
    }
    let asked = url::form_urlencoded::byte_serialize(hostile.as_bytes()).collect::<String>();
    for path in ["ask", "ask/plan", "ask/preview", ""] {
        let query = format!("/pages/{path}?owners={asked}&question={asked}&words={asked}&state={asked}&from={asked}");
        let text = browser.get(&query).await.text;
        assert!(!text.contains("<script>alert") && !text.contains("<img src=x"), "{path}");
    }
}

#[tokio::test]
async fn no_page_can_be_framed_or_run_what_is_not_ours() {
    let stage = Stage::new().await;
    let query = stage.ask().await.queries.remove(0).query;
    let mut signed_in = Browser::signed_in(&stage.desk).await;
    let mut stranger = Browser::new(&stage.desk);
    let own = format!("/pages/questions/{query}");
    for path in EVERY_PAGE.into_iter().chain([own.as_str(), "/pages/questions/unknown"]) {
        for answer in [signed_in.get(path).await, stranger.get(path).await] {
            let header = |name: &str| answer.headers.get(name).map_or("", |value| value.to_str().unwrap());
            let policy = header("content-security-policy");
            for part in [
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "frame-ancestors 'none'",
                "form-action 'self'",
                "base-uri 'none'",
            ] {
                assert!(policy.split("; ").any(|found| found == part), "{path}: {policy}");
            }
            assert_eq!((header("x-frame-options"), header("referrer-policy")), ("DENY", "no-referrer"), "{path}");
            assert_eq!((header("x-content-type-options"), header("cache-control")), ("nosniff", "no-store"), "{path}");
            // Nothing inline that the policy would have to allow.
            let text = &answer.text;
            assert!(!text.contains(" style=") && !text.contains("<style") && !text.contains(" onclick"), "{path}");
            assert_eq!(
                text.matches("<script").count(),
                text.matches("<script src=\"/pages/script.js\" defer></script>").count()
            );
        }
    }
}

/// A log that a test reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// One thread, so that the subscriber of this test hears the desk and no other test's.
#[tokio::test(flavor = "current_thread")]
async fn a_link_works_once_and_no_secret_is_in_an_address_or_in_the_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone()).finish();
    let _heard = tracing::subscriber::set_default(subscriber);
    let stage = Stage::new().await;
    let link = stage.desk.sign_in_link().unwrap().unwrap();
    let path = &link[url::Position::BeforePath..];
    let secret = path.split_once('=').unwrap().1.to_owned();
    let mut browser = Browser::new(&stage.desk);
    // Whoever looks at links before people do gets nothing, and takes nothing away.
    browser.head(path).await;
    browser.headers = vec![("sec-purpose", "prefetch".to_owned())];
    browser.get(path).await;
    browser.headers.clear();
    let answer = browser.get(path).await;
    assert_eq!((answer.status, answer.location.as_str()), (303, "/pages/"));
    assert_eq!(browser.get("/pages/").await.status, 200);
    let again = Browser::new(&stage.desk).get(path).await;
    assert_eq!(again.status, 410);
    assert!(again.set_cookies.iter().all(|line| line.contains("visit")), "{:?}", again.set_cookies);
    let late = stage.desk.sign_in_link().unwrap().unwrap();
    stage.clock.set(START + 3601);
    assert_eq!(Browser::new(&stage.desk).get(&late[url::Position::BeforePath..]).await.status, 410);
    let token = std::fs::read_to_string(stage.desk.first_token()).unwrap();
    let mut other = Browser::signed_in(&stage.desk).await;
    other.get("/pages/ask").await;
    let (status, _) = call("get", &stage.desk.url(), "queries/own", Some(token.trim())).await;
    assert_eq!(status, 200);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("signed in by a link"), "{text}");
    let form_token = other.get("/pages/").await.field("form_token");
    let sessions = [browser.session().1, other.session().1];
    for secret in [secret.as_str(), token.trim(), sessions[0].as_str(), sessions[1].as_str(), form_token.as_str()] {
        assert!(!text.contains(secret), "a secret is in the log");
    }
    // Without its token, the first analyst has no link.
    std::fs::remove_file(stage.desk.first_token()).unwrap();
    assert!(stage.desk.sign_in_link().unwrap().is_none());
}
