//! Running the commands of pages as somebody at a terminal would.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use super::block::{Command, blocks, shows};
use super::{Page, links, root};
use crate::Folder;

/// What a line of the shell's output starts with where a command has ended: no program prints this control character.
const END: char = '\u{1e}';

/// Seconds after which the shell of a page is ended: several times what the longest page takes.
const LONGEST: &str = "300";

/// What pages use beyond the shell, the usual tools of a Unix system and `uptack`.
const NOT_EVERYWHERE: [&str; 4] = ["curl", "openssl", "python3", "node"];

/// Set by the gate: a page whose programs are missing fails instead of being left out.
const EVERY_PAGE: &str = "UPTACK_TEST_EVERY_PAGE";

/// One command, with where it stands.
struct Step<'a> {
    page: &'a Page,
    line: usize,
    command: Command,
    is_script: bool,
}

/// Runs the commands of pages, one after the other in one shell, and says which do something else than is shown.
pub(super) fn run(chain: &[&Page]) -> Vec<String> {
    let steps = steps(chain);
    if steps.is_empty() {
        return Vec::new();
    }
    if let Some(program) = missing_program(&steps, is_installed) {
        return left_out(&chain[0].name, program, std::env::var_os(EVERY_PAGE).is_some());
    }
    let folder = Folder::new(&format!("documentation-{}", chain[0].name.replace('/', "-")));
    // What the pages read of the repository.
    for name in ["examples", "vectors"] {
        std::os::unix::fs::symlink(root().join(name), folder.0.join(name)).unwrap();
    }
    let printed = shell(&with_free_ports(&script(&steps)), &folder.0);
    let mut parts = printed.split(END);
    let complaint = |step: &Step<'_>, what: &str, printed: &str| {
        Some(format!("{}:{}: {what}\n$ {}\n{printed}", step.page.name, step.line, step.command.text))
    };
    let mut output = parts.next().unwrap_or("");
    let mut complaints = links::changed_charts(&folder.0);
    for step in &steps {
        let Some((code, rest)) = parts.next().and_then(|part| part.split_once('\n')) else {
            complaints.extend(complaint(step, "the shell ended here", output));
            break;
        };
        complaints.extend(wrong(step, output, code == "0").and_then(|what| complaint(step, what, output)));
        output = rest;
    }
    complaints
}

/// The first program that the steps need, is not part of every system, and is not on this machine.
fn missing_program(steps: &[Step<'_>], is_installed: impl Fn(&str) -> bool) -> Option<&'static str> {
    let is_used = |program: &str| steps.iter().any(|step| step.command.text.contains(&format!("{program} ")));
    NOT_EVERYWHERE.into_iter().find(|program| is_used(program) && !is_installed(program))
}

fn is_installed(program: &str) -> bool {
    Process::new(program).arg("--version").output().is_ok()
}

/// Complains about a page that cannot be run if every page has to be: the gate has every program. A newcomer's machine need not.
fn left_out(page: &str, program: &str, every_page: bool) -> Vec<String> {
    let message = format!("{page} is not run: it needs {program}");
    if every_page {
        return vec![message];
    }
    // Written past the test harness, which would swallow it when all is well.
    let _ = writeln!(std::io::stderr(), "{message}");
    Vec::new()
}

fn steps<'a>(chain: &[&'a Page]) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    for page in chain {
        for block in blocks(&page.text).iter().filter(|block| block.is_run()) {
            let is_script = block.language == "sh";
            let commands = block.commands().into_iter();
            steps.extend(commands.map(|command| Step { page, line: block.line, command, is_script }));
        }
    }
    steps
}

/// The commands with a line after each that tells its exit code. A script ends at its first failure.
fn script(steps: &[Step<'_>]) -> String {
    let mut script = String::from("trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT\n");
    for step in steps {
        // The last status is kept: `set -e` does not end a list such as `a && b` in which `a` fails.
        let (before, after) =
            if step.is_script { ("set -e\n", "\nstatus=$?; set +e; (exit $status)") } else { ("", "") };
        script += &format!("{before}{}{after}\nprintf '\\x1e%d\\n' $?\n", step.command.text);
    }
    script
}

/// The text with a free port in place of every one that it names, the same one for the same.
fn with_free_ports(text: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    let ports = text.split(HOST).skip(1).filter_map(|rest| rest.get(..4)?.parse::<u16>().ok());
    // All are held until all are known, so that they differ.
    let taken: BTreeMap<u16, TcpListener> =
        ports.map(|port| (port, TcpListener::bind("127.0.0.1:0").unwrap())).collect();
    taken.iter().fold(text.to_owned(), |text, (port, free)| {
        text.replace(&format!("{HOST}{port}"), &format!("{HOST}{}", free.local_addr().unwrap().port()))
    })
}

fn shell(script: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_uptack")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    // A server that does not start would be waited for without end.
    let output = Process::new("timeout")
        .args([LONGEST, "bash", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What is wrong with what a command did, if anything.
fn wrong(step: &Step<'_>, printed: &str, succeeded: bool) -> Option<&'static str> {
    let shown = &step.command.shown;
    if succeeded == shown.iter().any(|line| line.starts_with("error:")) {
        return Some(if succeeded { "succeeds" } else { "fails" });
    }
    (!shown.is_empty() && !shows(shown, printed)).then_some("prints something else")
}

/// A page with one block.
fn page(language: &str, body: &str) -> Page {
    Page { name: "docs/made-up.md".into(), text: format!("```{language}\n{body}\n```\n") }
}

#[test]
fn a_script_fails_with_any_of_its_commands() {
    for body in ["false\ntrue", "true\nfalse", "true\nfalse && true", "true && false"] {
        let complaints = run(&[&page("sh", body)]);
        assert!(complaints.len() == 1 && complaints[0].contains("docs/made-up.md"), "{body}: {complaints:?}");
    }
    assert_eq!(run(&[&page("sh", "true\nfalse || true")]), Vec::<String>::new());
}

#[test]
fn a_page_without_its_program_is_left_out_but_not_by_the_gate() {
    let page = page("console", "$ curl --silent http://127.0.0.1:8080/\n$ uptack --version");
    let steps = steps(&[&page]);
    assert_eq!(missing_program(&steps, |_| true), None);
    let missing = missing_program(&steps, |program| program != "curl");
    assert_eq!(missing, Some("curl"));
    assert_eq!(left_out(&page.name, "curl", false), Vec::<String>::new());
    assert_eq!(left_out(&page.name, "curl", true), ["docs/made-up.md is not run: it needs curl"]);
}
