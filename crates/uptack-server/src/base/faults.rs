//! Faults of the disk, for tests: a child process, which is the same test, works on a disk that fills up or fails.

use std::{path::Path, process::Command};

/// What is wrong with the disk of a child.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// No file can be longer than so many blocks of 512 bytes: the system writes what fits and refuses the rest.
    Full { blocks: usize },
    /// From this call on, data is written and synchronizing it fails.
    Sync { from: usize },
}

impl Fault {
    /// Runs the test `child` with the variable `name` set to a folder whose disk has this fault, and returns what it says.
    pub(crate) fn lines_of_child(self, child: &str, name: &str, folder: &Path) -> Vec<String> {
        let mut command = Command::new("sh");
        let limit = match self {
            Self::Full { blocks } => format!("trap '' XFSZ; ulimit -f {blocks}; "),
            Self::Sync { from } => {
                let library = folder.with_extension("so");
                compile_failing_sync(&library);
                command.env("LD_PRELOAD", library).env("UPTACK_TEST_SYNC_FAILS_FROM", from.to_string());
                String::new()
            }
        };
        command.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]).arg(std::env::current_exe().unwrap());
        let output = command.args(["--exact", child, "--nocapture"]).env(name, folder).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

/// Compiles the library that makes synchronizing fail, by the compiler that SQLite needs, too.
fn compile_failing_sync(library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../checks/faults/failing_sync.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(source).status();
    assert!(compiled.unwrap().success());
}
