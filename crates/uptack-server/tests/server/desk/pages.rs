//! The pages as an analyst uses them, against what the commands say about the same.

use serde_json::Value;
use std::sync::Arc;
use uptack::{
    Progress,
    card::{Card, Check},
    display,
    estimate::{Confidence, IntervalKind},
    plan::{Prior, Request, plan, usual_linked_epsilon},
    privacy::{Epsilon, WorkLimit},
};
use uptack_dap::{
    desk_client::Schedule,
    protocol::Measurement,
    release::{
        record::Record,
        verification::{Document, Verifier},
    },
    signed::SignedCard,
};

use crate::desk::support::{Stage, ballot, card, eventually, only_open, read, state, upload, upload_all};
use crate::desk::support_pages::Browser;

const ASKED: &str = "owners=40&yes=5&epsilon=2&minimum_batch=8&trust=one-aggregator&question=Do+you+stand%3F\
    &predicate=station+%3D%3D+%227%22&closes=10m";

#[tokio::test]
async fn a_question_lives_its_life_in_a_browser() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    assert!(browser.get("/pages/").await.text.contains("Nothing has been asked yet"));
    let preview = browser.get(&format!("/pages/ask/preview?{ASKED}")).await;
    assert!(preview.text.contains("Do you stand?") && preview.text.contains("Open the question"), "{}", preview.text);
    let (key, opening) = (preview.field("key"), preview.field("opening"));
    let form_token = preview.field("form_token");
    let fields = [("form_token", form_token.as_str()), ("key", key.as_str()), ("opening", opening.as_str())];
    let opened = browser.post("/pages/ask/open", &fields).await;
    assert_eq!(opened.status, 303, "{}", opened.text);
    // Sent once more, nothing more is opened.
    assert_eq!(browser.post("/pages/ask/open", &fields).await.location, opened.location);
    let signed = only_open(&stage.analyst).await;
    assert_eq!(opened.location, format!("/pages/questions/{}", signed.query));
    let card = signed.open().unwrap().card;
    assert_eq!(
        (card.question.as_deref(), card.predicate.as_deref()),
        (Some("Do you stand?"), Some("station == \"7\""))
    );
    assert_eq!(card.attributes, ["station"]);
    // What the preview showed is what was signed.
    assert!(preview.text.contains(&display::claim(card.claims.whole_one_aggregator())));
    assert!(preview.text.contains(&card.mechanism.to_string()));
    let bits: Vec<Measurement> = (0..12).map(|index| Measurement::Bits(vec![index < 5])).collect();
    upload_all(&card, &bits).await.unwrap();
    let page = browser.get(&opened.location).await;
    assert!(page.text.contains("12 of at least 8") && page.text.contains("closes in"), "{}", page.text);
    stage.pass(&card);
    eventually("it is collected", || async { stage_is_ready(&stage, &signed.query).await }).await;
    // Looking at it releases nothing.
    let page = browser.get(&opened.location).await;
    assert!(page.text.contains("Release the result") && !page.text.contains("would say yes"));
    assert_eq!(state(&stage.analyst, &signed.query).await, "closed");
    let released = browser.submit(&opened.location, &format!("{}/release", opened.location), &[]).await;
    assert_eq!(released.status, 303);
    check_result(&stage, &mut browser, &opened.location, &signed).await;
}

#[tokio::test]
async fn people_are_asked_in_a_browser_and_told_how_they_answer() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let asked = ASKED.replace("predicate=station+%3D%3D+%227%22", "who=people");
    let preview = browser.get(&format!("/pages/ask/preview?{asked}")).await;
    let [form_token, key, opening] = ["form_token", "key", "opening"].map(|name| preview.field(name));
    let fields = [("form_token", form_token.as_str()), ("key", key.as_str()), ("opening", opening.as_str())];
    let opened = browser.post("/pages/ask/open", &fields).await;
    let signed = only_open(&stage.analyst).await;
    assert!(signed.open().unwrap().card.asks_person());
    let page = browser.get(&opened.location).await.text;
    // A desk that lets no page in says how to try it, and gives a command that works as it is.
    assert!(page.contains("How people answer") && page.contains("--allow-origin"), "{page}");
    assert!(page.contains("separate-operators = false") && preview.text.contains("--allow-origin"), "{page}");
    let command = format!(
        "uptack answer --desk {} --policy policy.toml --data FOLDER --query {}",
        stage.desk.url(),
        signed.query
    );
    assert!(page.contains(&command), "{page}");
    // What only a device could evaluate is not asked of people.
    let both = browser.get(&format!("/pages/ask/preview?{ASKED}&who=people")).await.text;
    assert!(both.contains("role=\"alert\"") && both.contains("let devices answer"), "{both}");
}

async fn stage_is_ready(stage: &Stage, query: &str) -> bool {
    let store = rusqlite::Connection::open(stage.directory.path().join("desk.sqlite3")).unwrap();
    let statement = "SELECT record IS NOT NULL FROM queries WHERE query = ?1";
    store.query_row(statement, [query], |row| row.get(0)).unwrap()
}

/// The page, the downloads and `uptack result` say the same.
async fn check_result(stage: &Stage, browser: &mut Browser, page: &str, signed: &SignedCard) {
    let text = stage.result(&signed.query).await.unwrap();
    let (record, card) = read(&text);
    let channel = card.checked_channel().unwrap();
    let results = record.estimated(&channel, Confidence::new(0.95).unwrap(), IntervalKind::Auto).unwrap();
    let stated = &results.estimates[0];
    let number = |text: &str| text.parse::<f64>().unwrap();
    let shown = browser.get(page).await.text;
    let [low, high] = display::interval(number(&stated.interval[0]), number(&stated.interval[1]));
    for expected in [display::nearest(number(&stated.estimate)), display::nearest(number(&stated.sd)), low, high] {
        assert!(shown.contains(&expected), "{expected} in {shown}");
    }
    assert!(shown.contains(&format!("--desk-key {}", stage.desk.signer())));
    let saved = browser.get(&format!("{page}/record")).await;
    assert!(saved.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
    assert_eq!(Record::parse(&saved.text).unwrap(), Record { results: Some(results.clone()), ..record });
    let document = Document::from_json(&saved.text).unwrap();
    let key = stage.desk.signer();
    let verifier = Verifier { desk_key: Some(&key), limit: WorkLimit::default() };
    assert!(verifier.verify(&document, &Arc::new(Progress::default())).unwrap().iter().all(Check::holds));
    let csv = browser.get(&format!("{page}/estimates")).await.text;
    let [opens, closes] = [card.opens, card.closes].map(|moment| moment.unwrap().to_string());
    let numbers = format!("{},{},{},{}", stated.estimate, stated.sd, stated.interval[0], stated.interval[1]);
    let row = format!("Do you stand?,{opens},{closes},,12,{numbers},0.95\n");
    assert!(csv.starts_with("question,opens,closes,name,owners,") && csv.ends_with(&row), "{csv}");
    let saved_card: Value = serde_json::from_str(&browser.get(&format!("{page}/card")).await.text).unwrap();
    assert_eq!(saved_card["query"], signed.query);
    let list = browser.get("/pages/?state=released&words=STAND").await.text;
    assert!(list.contains(&display::nearest(number(&stated.estimate))) && list.contains("Interval from"), "{list}");
    assert!(list.contains("with confidence 95 %") && list.contains("on one axis from 0 to"), "{list}");
    assert!(!browser.get("/pages/?words=walk").await.text.contains("Do you stand?"));
    let verified = browser.get("/pages/verify").await.field("form_token");
    let fields =
        [("form_token", verified.as_str()), ("own_key", "yes"), ("file", ""), ("document", saved.text.as_str())];
    let page = browser.upload("/pages/verify", &fields).await.text;
    assert!(page.contains(" passed") && !page.contains("class=\"cross\""), "{page}");
    let falsified = saved.text.replacen(&format!("\"estimate\":\"{}\"", stated.estimate), "\"estimate\":\"1\"", 1);
    let fields = [("form_token", verified.as_str()), ("file", falsified.as_str()), ("document", "")];
    let page = browser.upload("/pages/verify", &fields).await.text;
    assert!(page.contains("class=\"cross\"") && page.contains("fail"), "{page}");
}

#[tokio::test]
async fn a_plan_on_the_page_is_the_plan_of_the_planner() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let mut request = Request::one_aggregator(40, Prior::at(5), Epsilon::new(2.0).unwrap()).unwrap();
    request.minimum_batch = 8;
    request.linked_epsilon = Some(usual_linked_epsilon(&request, None));
    let planned = plan(&request).unwrap();
    let mut answer = browser.get(&format!("/pages/ask/plan?{ASKED}")).await;
    while answer.status == 202 {
        answer = browser.get(&format!("/pages/ask/plan?{ASKED}")).await;
    }
    let page = browser.get(&format!("/pages/ask?{ASKED}")).await.text;
    for text in [&answer.text, &page] {
        for expected in [
            planned.best.mechanism.to_string(),
            display::nearest(planned.best.sd),
            display::nearest(planned.best.interval95_halfwidth),
            display::claim(planned.epsilon()),
        ] {
            assert!(text.contains(&expected), "{expected} in {text}");
        }
    }
    for chart in 0..3 {
        let picture = browser.get(&format!("/pages/ask/chart?{ASKED}&chart={chart}")).await;
        assert_eq!(picture.headers["content-type"], "image/svg+xml", "{chart}");
        assert!(picture.text.contains("the plan</text>"), "{chart}");
    }
    let impossible = browser.get("/pages/ask?owners=40&yes=5&epsilon=1&error=1").await.text;
    assert!(impossible.contains("cannot be attained") && impossible.contains("is enough"), "{impossible}");
    let fault = browser.get("/pages/ask/plan?owners=many&yes=5&epsilon=1").await.text;
    assert!(fault.contains("href=\"#owners\"") && fault.contains("`many` is not a whole number"), "{fault}");
    let unaskable =
        browser.get("/pages/ask/preview?owners=40&yes=5&epsilon=2&question=Q&predicate=a+%3D%3D&closes=10m").await;
    assert!(unaskable.text.contains("href=\"#predicate\""), "{}", unaskable.text);
}

/// With owners, ε and an error all given, nothing is left to solve for, and the error is a condition.
#[tokio::test]
async fn an_error_that_cannot_be_had_is_refused_by_plan_preview_and_opening_alike() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let strict = format!("{ASKED}&error=0.1");
    let mut panel = browser.get(&format!("/pages/ask/plan?{strict}")).await;
    while panel.status == 202 {
        panel = browser.get(&format!("/pages/ask/plan?{strict}")).await;
    }
    let words = panel.text.split_once("data-field=\"error\">").unwrap().1.split_once("</p>").unwrap().0;
    assert!(
        words.starts_with("an error of 0.1 cannot be attained") && words.contains("allow a larger error"),
        "{words}"
    );
    let preview = browser.get(&format!("/pages/ask/preview?{strict}")).await;
    assert!(preview.status == 400 && preview.text.contains(words), "{words} in {}", preview.text);

    // The form of a preview with a modest error, sent with the strict one.
    let shown = browser.get(&format!("/pages/ask/preview?{ASKED}&error=20")).await;
    let [form_token, key, opening, asked] = ["form_token", "key", "opening", "asked"].map(|name| shown.field(name));
    let mut open = async |asked: &str| {
        let fields = [("form_token", &*form_token), ("key", &key), ("opening", &opening), ("asked", asked)];
        browser.post("/pages/ask/open", &fields).await
    };
    let refused = open(&strict).await;
    assert!(refused.status == 400 && refused.text.contains(words), "{words} in {}", refused.text);
    assert!(stage.analyst.list().await.unwrap().is_empty(), "nothing was opened");
    assert!(asked.contains("error=20"), "{asked}");
    assert_eq!(open(&asked).await.status, 303);
}

/// What was typed is still there, and the field is marked, at every step and without a script.
#[tokio::test]
async fn a_form_that_is_refused_is_shown_again_and_points_at_the_field() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    for (field, text) in [
        ("epsilon", "0,5"),
        ("linked_epsilon", "1,5"),
        ("yes", "41"),
        ("yes", "9..5"),
        ("minimum_batch", "41"),
        ("error", "0.1"),
        ("times", "1e6"),
        ("closes", "1s"),
        ("predicate", "station =="),
        ("most_yes", "2"),
    ] {
        let given: Vec<(String, String)> = url::form_urlencoded::parse(ASKED.as_bytes()).into_owned().collect();
        let kept = given.iter().filter(|(name, _)| name != field).map(|(name, value)| (name.as_str(), value.as_str()));
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(kept).append_pair(field, text).finish();
        let page = browser.get(&format!("/pages/ask/preview?{query}")).await;
        let shown = &page.text;
        assert!(
            page.status == 400 && !shown.contains("Bad Request") && shown.contains("role=\"alert\""),
            "{field}: {shown}"
        );
        let start = shown.split_once(&format!("name=\"{field}\"")).unwrap().1;
        let element = start.split_once('>').unwrap().0;
        assert!(element.contains("aria-invalid=\"true\"") && element.contains(&format!("{field}-fault")), "{element}");
        assert!(element.contains(&format!("value=\"{text}\"")) && shown.contains("Do you stand?"), "{element}");
    }
    // The script gets the same fault with the plan.
    let panel = browser.get("/pages/ask/plan?owners=40&yes=5&epsilon=0,5").await.text;
    assert!(panel.contains("data-field=\"epsilon\"") && panel.contains("decimals with a point"), "{panel}");
    // Refused by the desk itself.
    let preview = browser.get(&format!("/pages/ask/preview?{ASKED}")).await;
    let [form_token, key, asked] = ["form_token", "key", "asked"].map(|name| preview.field(name));
    let fields = [("form_token", &*form_token), ("key", &key), ("opening", "{}"), ("asked", &asked)];
    let refused = browser.post("/pages/ask/open", &fields).await;
    assert!(refused.status == 400 && refused.text.contains("The body is not a query"), "{}", refused.text);
    assert!(refused.text.contains("value=\"Do you stand?\"") && refused.text.contains("Preview the card"));
}

/// With many windows, the plan beside the form is that of the card that is previewed and opened.
#[tokio::test]
async fn the_page_plans_the_whole_series() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    // Every window counts everybody.
    let asked = format!("{}&times=288&most_yes=288", ASKED.replace("closes=10m", "closes=5m"));
    let mut panel = browser.get(&format!("/pages/ask/plan?{asked}")).await;
    while panel.status == 202 {
        panel = browser.get(&format!("/pages/ask/plan?{asked}")).await;
    }
    // An error of that size says nothing about five people: it is asked only if that is wanted.
    let refused = browser.get(&format!("/pages/ask/preview?{asked}")).await;
    assert!(refused.status == 400 && refused.text.contains("id=\"anyway-fault\""), "{}", refused.text);
    assert!(panel.text.contains("say next to nothing") && refused.text.contains("windows"), "{}", panel.text);
    let preview = browser.get(&format!("/pages/ask/preview?{asked}&anyway=yes")).await;
    let fields = [
        ("form_token", &*preview.field("form_token")),
        ("key", "k"),
        ("opening", &preview.field("opening")),
        ("asked", &asked),
    ];
    assert_eq!(browser.post("/pages/ask/open", &fields).await.status, 400, "without the tick it is not opened, either");
    let opening: Value = serde_json::from_str(&preview.field("opening")).unwrap();
    let card: Card = serde_json::from_value(opening["card"].clone()).unwrap();
    let sd = display::nearest(card.predicted.sd.value());
    for text in [&panel.text, &preview.text] {
        assert!(text.contains(&sd) && text.contains(&card.mechanism.to_string()), "{sd} in {text}");
        assert!(text.contains(&display::claim(card.claims.whole_one_aggregator())), "{text}");
    }
    assert!(panel.text.contains("One of the 288 counts"), "{}", panel.text);
}

#[tokio::test]
async fn ballots_and_series_have_their_pictures() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let opened = stage.analyst.open(&ballot(&["north", "south"]), Schedule::Once { seconds: 600 }).await.unwrap();
    // Two bits for each question: a one, or a zero.
    let bits = |index: usize| if index < 4 { [true, false, false, true] } else { [false, true, true, false] };
    let all: Vec<Measurement> = (0..9).map(|index| Measurement::Bits(bits(index).to_vec())).collect();
    upload_all(&opened.card, &all).await.unwrap();
    stage.pass(&opened.card);
    stage.result(&opened.queries[0].query).await.unwrap();
    let page = browser.get(&format!("/pages/questions/{}", opened.queries[0].query)).await.text;
    assert!(page.contains("How many would say yes</text>") && page.contains("All intervals together"), "{page}");
    let series = stage.analyst.open(&card(), Schedule::Series { every: 600, times: 2 }).await.unwrap();
    for query in &series.queries {
        let opens = query.opens.parse::<uptack::card::Timestamp>().unwrap().seconds();
        stage.clock.set(opens + 1);
        eventually("it is open", || async { state(&stage.analyst, &query.query).await == "open" }).await;
        let one: Card = stage.analyst.card(&query.query).await.unwrap().open().unwrap().card;
        upload(&one, &[0, 0, 1, 1, 1, 2, 2, 0, 1]).await;
        stage.clock.set(opens + 602);
        stage.result(&query.query).await.unwrap();
    }
    let page = browser.get(&format!("/pages/questions/{}", series.queries[0].query)).await.text;
    assert!(page.contains("The series so far") && page.contains("number in the series</text>"), "{page}");
    // Both cards of the series are paid once, and so is the ballot.
    let spending = browser.get("/pages/spending").await.text;
    assert!(spending.contains("2 cards") && spending.contains("Owners who have station"), "{spending}");
}

#[tokio::test]
async fn what_changes_is_told_and_the_end_of_a_session_ends_it() {
    let stage = Stage::new().await;
    let opened = stage.ask().await;
    let query = &opened.queries[0].query;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let (name, value) = browser.session();
    let address = stage.desk.url().join(&format!("/pages/questions/{query}/live")).unwrap();
    let request = reqwest::Client::new().get(address).header("cookie", format!("{name}={value}"));
    let mut response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(first.contains(&format!("fill-{query}")) && first.contains("0 of at least 8"), "{first}");
    upload(&opened.card, &[0, 1, 1]).await;
    let second = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert!(second.contains("of at least 8") && !second.contains("0 of at least"), "{second}");
    browser.submit("/pages/", "/pages/sign-out", &[]).await;
    while let Ok(Some(_)) = response.chunk().await {}
}

/// A question that opens after the list was made and before the browser follows it: the list is made anew.
#[tokio::test]
async fn a_question_that_opens_while_the_list_loads_is_told() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let list = browser.get("/pages/").await.text;
    let path = list.split_once("data-live=\"").unwrap().1.split_once('"').unwrap().0.replace("&amp;", "&");
    stage.ask().await;
    let (name, value) = browser.session();
    let follow = |path: String| {
        let address = stage.desk.url().join(&path).unwrap();
        reqwest::Client::new().get(address).header("cookie", format!("{name}={value}")).send()
    };
    let first = follow(path.clone()).await.unwrap().chunk().await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert!(first.contains("\"reload\":true"), "{path}: {first}");
    // The list that is made then has nothing new to be told.
    let list = browser.get("/pages/").await.text;
    let path = list.split_once("data-live=\"").unwrap().1.split_once('"').unwrap().0.replace("&amp;", "&");
    let next = follow(path.clone()).await.unwrap().chunk().await.unwrap().unwrap();
    let next = String::from_utf8(next.to_vec()).unwrap();
    assert!(next.contains("\"reload\":false"), "{path}: {next}");
}

#[tokio::test]
async fn too_large_a_document_is_not_read() {
    let stage = Stage::new().await;
    let mut browser = Browser::signed_in(&stage.desk).await;
    let form_token = browser.get("/pages/verify").await.field("form_token");
    // Little more than is taken, so that the answer comes before the connection is closed.
    let large = "x".repeat((2 << 20) + 1000);
    let answer = browser.upload("/pages/verify", &[("form_token", &form_token), ("document", &large)]).await;
    assert_eq!(answer.status, 413);
    let large = "x".repeat((1 << 20) + 1000);
    let answer = browser.post("/pages/ask/open", &[("form_token", &form_token), ("opening", &large)]).await;
    assert_eq!(answer.status, 413);
    let nothing = browser.upload("/pages/verify", &[("form_token", &form_token), ("document", "{}")]).await.text;
    assert!(nothing.contains("role=\"alert\""), "{nothing}");
}
