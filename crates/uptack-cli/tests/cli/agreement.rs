//! The same quantity, asked of several commands: one number, to the last digit that each prints.

use serde_json::Value;
use uptack::card::Card;
use uptack::display;
use uptack::privacy::composition::{Charge, Filter};
use uptack::privacy::{WorkLimit, release, release_charge};
use uptack_owner::check::{LIFETIME_QUERIES, SHARE_OF_DELTA, WORK};

use crate::desk::Desk;
use crate::evaluate::Evaluation;
use crate::network::{AT_SEVEN, Fleet, all_answered, ask, fleet_csv};
use crate::{Folder, run};

fn text(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The document that a command prints, every number kept as the text that was printed: what a reader makes of its last
/// digit is not what is compared here.
fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&quoted(&text(arguments))).unwrap()
}

/// JSON with every number between quotes.
fn quoted(document: &str) -> String {
    let (mut quoted, mut in_text, mut escaped, mut in_number) = (String::new(), false, false, false);
    for c in document.chars() {
        let numeric = !in_text && (c.is_ascii_digit() || (in_number && "+-.eE".contains(c)) || c == '-');
        if numeric != in_number {
            quoted.push('"');
            in_number = numeric;
        }
        (in_text, escaped) = (in_text ^ (c == '"' && !escaped), in_text && c == '\\' && !escaped);
        quoted.push(c);
    }
    quoted
}

/// The lines of the table of views: as one function prints them.
fn views_lines(text: &str) -> Vec<&str> {
    let is_view = |line: &&str| ["answer ", "linked", "release"].iter().any(|view| line.starts_with(view));
    text.lines().filter(is_view).take_while(|line| !line.is_empty()).collect()
}

fn digits(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn number(value: &Value) -> f64 {
    digits(value).parse().unwrap_or_else(|_| panic!("{value} is not a number"))
}

/// A claim that may be missing, as people read it.
fn claim(value: &Value) -> String {
    display::claim((!value.is_null()).then(|| number(value)))
}

/// What `verify` found, by name.
fn recomputed<'a>(verified: &'a Value, what: &str) -> &'a str {
    let checks = verified["checked"].as_array().unwrap();
    let found = checks.iter().find(|check| check["what"] == what);
    found.and_then(|check| check["recomputed"].as_str()).unwrap_or_else(|| panic!("{what} in {verified}"))
}

#[test]
fn plan_privacy_verify_and_simulate_agree() {
    let folder = Folder::new("agreement");
    let card = folder.0.join("card.json");
    let card = card.to_str().unwrap();
    let one = &["--owners", "3000", "--yes", "30", "--epsilon", "1", "--delta", "1e-6"][..];
    let fewer = &[one, &["--honest", "0.8", "--minimum-batch", "2500"]].concat()[..];
    let several = &[
        "--owners",
        "400",
        "--yes",
        "9",
        "--epsilon",
        "2",
        "--delta",
        "1e-4",
        "--answer-epsilon",
        "1.1",
        "--form",
        "several",
        "--mechanism",
        "blended",
    ][..];
    for request in [one, fewer, several] {
        let planned = json(&[&["plan", "--out", card, "--json"], request].concat());
        let private = json(&["privacy", card, "--json"]);
        assert_eq!(planned["views"], private["views"]);

        let (mechanism, owners) = (planned["mechanism"].as_str().unwrap(), digits(&planned["claim_owners"]));
        let delta = digits(&planned["views"]["release"]["delta"]);
        let named = ["privacy", mechanism, "--owners", owners, "--delta", delta];
        assert_eq!(json(&[&named[..], &["--json"]].concat())["views"], planned["views"]);

        let verified = json(&["verify", card, "--json"]);
        let views = &planned["views"];
        assert_eq!(recomputed(&verified, "claims.release"), number(&views["release"]["epsilon"]["upper"]).to_string());
        assert_eq!(recomputed(&verified, "claims.linked"), number(&views["linked"]).to_string());
        for (answer, epsilon) in views["answers"].as_array().unwrap().iter().enumerate() {
            assert_eq!(recomputed(&verified, &format!("claims.answers[{answer}]")), number(epsilon).to_string());
        }
        let sd = number(&planned["sd"]);
        assert_eq!(recomputed(&verified, "predicted.sd"), sd.to_string());

        let crowd = ["--owners", request[1], "--yes", request[3], "--trials", "1", "--json"];
        assert_eq!(json(&[&["simulate", mechanism], &crowd[..]].concat())["predicted_sd"], planned["sd"]);

        // And what people read is that number, rounded in one way.
        let (plan, privacy) = (text(&[&["plan"], request].concat()), text(&named));
        assert_eq!(views_lines(&plan), views_lines(&privacy));
        let release = views_lines(&plan).into_iter().find(|line| line.starts_with("release")).unwrap();
        let epsilon = display::claim(number(&views["release"]["epsilon"]["upper"]));
        assert_eq!(release.split_whitespace().nth(1), Some(epsilon.as_str()));
        assert!(plan.contains(&format!("Error: {} (", display::nearest(sd))), "{plan}");
    }
}

#[test]
fn ask_result_ledger_and_verify_agree() {
    let desk = Desk::new("agreement-desk", &[]);
    let asked = ask(&desk, "60", "40", &[&AT_SEVEN[..], &["--closes", "15s"]].concat());
    let fleet = Fleet::new(&desk, fleet_csv(60, 12), "1s");
    all_answered(&fleet.run(), &asked["query"], 60);
    let (record, query) = (desk.folder.0.join("record.json"), asked["query"].as_str().unwrap());
    let record = record.to_str().unwrap();
    let printed = desk.run(&["result", query], &["--wait", "--out", record, "--json"]).stdout;
    let result: Value = serde_json::from_str(&quoted(std::str::from_utf8(&printed).unwrap())).unwrap();
    let verified = json(&["verify", record, "--desk-key", &desk.signer(), "--json"]);
    assert_eq!(verified["holds"], true);

    let (claims, trust) = (&asked["card"]["claims"], &result["trust"]);
    for (view, stated) in [(0, "release"), (1, "linked")] {
        assert_eq!(claims[stated], recomputed(&verified, &format!("card.claims.{stated}")));
        assert_eq!(number(&trust[view]["epsilon"]), number(&claims[stated]));
    }
    for (name, what) in [("estimate", "estimate"), ("sd", "sd")] {
        assert_eq!(number(&result[name]).to_string(), recomputed(&verified, &format!("results.estimates[0].{what}")));
    }
    for end in [0, 1] {
        let stated = recomputed(&verified, &format!("results.estimates[0].interval[{end}]"));
        assert_eq!(number(&result["interval"][end]).to_string(), stated);
    }

    // Each budget is charged with what its view of the card gives away and with nothing else: the share that is spent of it
    // is what its filter says of that one charge, to the last digit.
    let linked = number(&trust[1]["epsilon"]);
    let card: Card = serde_json::from_value(asked["card"].clone()).unwrap();
    let ledger = json(&["ledger", "--data", fleet.data(), "--json"]);
    is_charged(&ledger, "linked", |_| Charge::pure(linked).unwrap());
    is_charged(&ledger, "release", |delta| release_price(&card, delta));
    let budgets = ledger["budgets"].as_array().unwrap();
    let budget = budgets.iter().find(|budget| budget["view"] == "release").unwrap();
    says_what_privacy_says(&card, number(&budget["delta"]));

    // What people read.
    let printed = desk.run(&["result", query], &[]).stdout;
    let printed = String::from_utf8(printed).unwrap();
    let [low, high] = display::interval(number(&result["interval"][0]), number(&result["interval"][1]));
    for words in [
        format!("ε = {} at δ = ", display::claim(number(&trust[0]["epsilon"]))),
        format!("ε = {} if nobody but the owner's own device is honest.", display::claim(linked)),
        format!(
            "{} of 60 owners would say yes, give or take {}",
            display::nearest(number(&result["estimate"])),
            display::nearest(number(&result["sd"]))
        ),
        format!("between {low} and {high}"),
    ] {
        assert!(printed.contains(&words), "`{words}` in\n{printed}");
    }
}

/// What a release budget with this δ is charged with for a card.
fn release_price(card: &Card, delta: f64) -> Charge {
    let accountant = release(&card.mechanism.count_channel(), card.claim_owners().unwrap()).unwrap();
    let accountant = accountant.with_limit(WorkLimit::steps(WORK));
    release_charge(&accountant, LIFETIME_QUERIES, SHARE_OF_DELTA * delta).unwrap()
}

/// A budget is charged with the whole profile of the release, because one ε at one δ does not compose. So it has no ε that
/// could be equal to the card's; but at any δ, the card's or its own, one charge gives away what `privacy` prints there: not
/// less, and more by no more than the chords between its certificates cost.
fn says_what_privacy_says(card: &Card, own_delta: f64) {
    let charged = release_price(card, own_delta);
    let (mechanism, owners) = (card.mechanism.to_string(), card.claim_owners().unwrap().to_string());
    for delta in [card.delta().value(), own_delta] {
        let named = ["privacy", &mechanism, "--owners", &owners, "--delta", &delta.to_string(), "--json"];
        let printed = json(&named)["views"]["release"]["epsilon"].clone();
        let at = |epsilon: f64| charged.delta(epsilon).unwrap();
        let (lower, upper) = (at(number(&printed["lower"]) * (1.0 - 1e-9)), at(1.06 * number(&printed["upper"])));
        assert!(lower >= delta && upper <= delta, "{lower} to {upper} is not {delta} at {printed}");
    }
}

/// All owners' budgets for a view have spent one charge, which depends on the budget's δ.
fn is_charged(ledger: &Value, view: &str, charge: impl Fn(f64) -> Charge) {
    let budgets = ledger["budgets"].as_array().unwrap().iter().filter(|budget| budget["view"] == view);
    let mut count = 0;
    for budget in budgets {
        let delta = number(&budget["delta"]);
        let mut filter = Filter::new(number(&budget["epsilon"]), delta).unwrap();
        let _receipt = filter.try_spend(&charge(delta)).unwrap();
        assert_eq!(number(&budget["spent"]), filter.fraction_spent(), "{budget}");
        assert!(filter.fraction_spent() > 0.0, "{budget}");
        assert_eq!(digits(&budget["queries"]), "1");
        count += 1;
    }
    assert_eq!(count, 60, "budgets for the view {view}");
}

#[test]
fn the_evaluation_and_its_files_agree_with_privacy() {
    let evaluation = Evaluation::shared();
    let parse = |text: &str| serde_json::from_str::<Value>(&quoted(text)).unwrap();
    let document = parse(&evaluation.document);
    assert_eq!(parse(evaluation.text("evaluation.json")), document);
    let (table, page) = (evaluation.text("rows.csv"), evaluation.text("index.html"));
    let rows = document["rows"].as_array().unwrap();
    for (index, row) in rows.iter().enumerate() {
        agrees_with_privacy(row);
        let line = table.lines().nth(index + 1).unwrap();
        let upper = &row["views"]["release"]["epsilon"]["upper"];
        let stated: Vec<&str> = line.rsplit(',').take(2).collect();
        assert_eq!(stated[0], optional(upper), "{line}");
        let linked = &row["views"]["linked"];
        assert_eq!(stated[1], optional(linked), "{line}");
        let cells = [cell("ε linked", &claim(linked)), cell("ε release", &claim(upper))];
        assert!(page.contains(&cells.concat()), "{row}");
        let rmse = cell("error, all stations", &uptack_eval::report::measured(number(&row["rmse"])));
        assert!(page.contains(&rmse), "{rmse}");
    }
    for part in document["longitudinal"]["composed"].as_array().unwrap() {
        assert!(page.contains(&cell("ε of the releases", &claim(&part["epsilon"]["upper"]))), "{part}");
        composes_as_privacy_does(part, &document);
    }
}

/// A cell of the page's tables.
fn cell(column: &str, text: &str) -> String {
    format!("<td data-column=\"{column}\">{text}</td>")
}

/// A number in a CSV; nothing where there is none.
fn optional(value: &Value) -> String {
    if value.is_null() { String::new() } else { number(value).to_string() }
}

/// Many windows: what `privacy --repeat` says of them.
fn composes_as_privacy_does(part: &Value, document: &Value) {
    let (mechanism, windows) = (part["mechanism"].as_str().unwrap(), digits(&part["windows"]));
    let owners = digits(&document["data"]["vehicles"]);
    let repeat = ["privacy", mechanism, "--owners", owners, "--delta", "1e-8", "--repeat", windows, "--json"];
    let repeated = json(&repeat)["repeated"].clone();
    assert_eq!(repeated["release"]["epsilon"], part["epsilon"], "{windows} windows of {mechanism}");
    assert_eq!(repeated["linked"], part["linked"], "{windows} windows of {mechanism}");
}

/// One question of a family's mechanism: what `privacy` says of it.
fn agrees_with_privacy(row: &Value) {
    let (mechanism, owners) = (row["mechanism"].as_str().unwrap(), digits(&row["owners"]));
    // The claims of one question per station are for two of its bits.
    let is_ballot = row["label"].as_str().is_some_and(|label| label.contains("per station"));
    if row["kind"] != "family" || is_ballot {
        return;
    }
    let views = json(&["privacy", mechanism, "--owners", owners, "--delta", "1e-8", "--json"])["views"].clone();
    // Of contributions the whole report is the only answer.
    let is_contributed = row["label"].as_str().is_some_and(|label| label.contains("choice"));
    for view in ["answers", "linked", "release"].into_iter().skip(usize::from(is_contributed)) {
        assert_eq!(row["views"][view], views[view], "{view} of {mechanism}");
    }
    assert_eq!(row["views"]["one_aggregator"]["epsilon"], views["one_aggregator"]["epsilon"], "{mechanism}");
}
