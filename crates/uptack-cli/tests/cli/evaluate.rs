//! `uptack evaluate` on small networks made up here.

use super::{Folder, json, run};

fn network(folder: &Folder) -> String {
    let rows: String = (0..12).map(|index| format!("s{index},{}\n", [0, 4, 40, 300][index % 4])).collect();
    folder.file("network.csv", format!("sensor,vehicles\n{rows}"))
}

fn evaluate<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["evaluate", "--data", data, "--trials", "20", "--factors", "1"], more].concat()
}

#[test]
fn rows_have_what_the_contract_names() {
    let folder = Folder::new("evaluate-rows");
    let data = network(&folder);
    let document = json(&evaluate(&data, &["--json"]));
    assert_eq!(document["data"]["vehicles"], 1032);
    assert_eq!(document["complete"], true);
    let rows = document["rows"].as_array().unwrap();
    for comparison in ["paper", "release", "answer", "linked"] {
        assert!(rows.iter().any(|row| row["comparison"] == comparison), "{comparison}");
    }
    for row in rows {
        for key in
            ["mechanism", "comparison", "owners", "stations", "yes", "rmse", "relative_error", "coverage", "views"]
        {
            assert!(!row[key].is_null(), "{key} of {row}");
        }
        assert!(row["views"]["release"].is_object());
        // What is no curator is a mechanism that every command accepts.
        if row["kind"] != "curator" {
            let mechanism = row["mechanism"].as_str().unwrap();
            assert!(run(&["channel", mechanism]).status.success(), "{mechanism}");
        }
    }
    let again = json(&evaluate(&data, &["--json"]));
    assert_eq!(document, again, "the same seed gives the same document");
}

#[test]
fn the_report_is_complete_and_asks_nothing_of_the_network() {
    let folder = Folder::new("evaluate-report");
    let data = network(&folder);
    let out = folder.0.join("report");
    let output = run(&evaluate(&data, &["--out", out.to_str().unwrap()]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for plot in ["error-paper", "error-release", "error-answer", "error-linked", "error-epsilon", "coverage", "map"] {
        assert!(read(&format!("{plot}.svg")).starts_with(b"<svg"));
        assert!(read(&format!("{plot}.png")).starts_with(b"\x89PNG"));
    }
    let page = String::from_utf8(read("index.html")).unwrap();
    assert_eq!(page.matches("<figure").count(), 7);
    // The only address is the name of SVG itself.
    assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    let rows = String::from_utf8(read("rows.csv")).unwrap().lines().count() - 1;
    let stations = String::from_utf8(read("stations.csv")).unwrap().lines().count() - 1;
    assert_eq!(stations, 12 * rows);
    let left: Vec<_> =
        std::fs::read_dir(&out).unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    assert!(left.iter().all(|name| !name.ends_with("unfinished")), "{left:?}");
}

#[test]
fn bad_data_is_refused_with_its_place_and_nothing_is_written() {
    let folder = Folder::new("evaluate-bad");
    let bad = folder.file("bad.csv", "sensor,vehicles\na,1\nb,many\n");
    let out = folder.0.join("report");
    let output = run(&evaluate(&bad, &["--out", out.to_str().unwrap()]));
    let talk = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(talk.contains("bad.csv: line 3, field 2: `many`") && talk.contains("hint:"), "{talk}");
    assert!(!out.exists() && output.stdout.is_empty());
    assert_eq!(run(&["evaluate", "--data", "/nowhere.csv"]).status.code(), Some(1));
    let few = folder.file("few.csv", "sensor,vehicles\na,1\nb,2\n");
    assert_eq!(run(&evaluate(&few, &[])).status.code(), Some(1));
}
