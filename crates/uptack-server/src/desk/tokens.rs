//! Tokens of analysts and administrators: one file each below `tokens`, `NAME` or `NAME.admin`.

use std::path::Path;
use uptack_dap::{
    private,
    token::{Token, TokenHash},
};

use crate::{base::logging::Throttle, error::Result};

/// The analyst that a first start makes a token for.
pub const FIRST_ANALYST: &str = "analyst";
/// The ending of the name of an administrator's file.
const ADMIN: &str = ".admin";
/// Longest name of a person.
const LONGEST_NAME: usize = 64;

/// Whose token a request shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenHolder {
    /// The name of the token's file.
    pub(crate) name: String,
    pub(crate) role: Role,
}

/// The rights of a token's bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opens queries, and cancels and reads those of its own.
    Analyst,
    /// The same, with everybody's.
    Admin,
}

impl TokenHolder {
    /// Whether it may cancel and read a query that this analyst asked.
    pub(crate) fn may_touch(&self, analyst: Option<&str>) -> bool {
        self.role == Role::Admin || analyst == Some(self.name.as_str())
    }
}

/// Makes a first token if there is none at all, and warns of files that are not tokens.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    private::create_folder(folder)?;
    let found = read(folder)?;
    for name in &found.ignored {
        tracing::warn!(file = name, "{NOT_A_TOKEN}");
    }
    let first = folder.join(FIRST_ANALYST);
    // A file that is ignored is still somebody's: it is not written over.
    if found.tokens.is_empty() && !first.exists() {
        private::write_secret(&first, &format!("{}\n", Token::generate().as_str()))?;
    }
    Ok(())
}

const NOT_A_TOKEN: &str = "this file in the folder of tokens is ignored: a token is one line of at least 16 characters that \
    nobody can guess, in a file called NAME, or NAME.admin for an administrator, of up to 64 letters, digits, - and _";

/// Whose token is shown. Files are read for each request, so adding or removing one needs no restart; every token is
/// compared, even after one has matched.
pub(crate) fn caller(folder: &Path, shown: &[u8]) -> Result<Option<TokenHolder>> {
    let found = read(folder)?;
    if let Some(name) = found.ignored.first() {
        warn_now_and_then(name);
    }
    let mut caller = None;
    for (known, token) in found.tokens {
        if token.hash().matches(shown) {
            caller = Some(known);
        }
    }
    Ok(caller)
}

fn warn_now_and_then(file: &str) {
    static IGNORED: Throttle = Throttle::per_minute();
    if IGNORED.pass().is_some() {
        tracing::warn!(file, "{NOT_A_TOKEN}");
    }
}

/// Whose token has this hash, for those who signed in with it before: removing a token signs them out.
pub(crate) fn holder(folder: &Path, hash: &TokenHash) -> Result<Option<TokenHolder>> {
    Ok(read(folder)?.find(|_, token| token.hash() == *hash).map(|(caller, _)| caller))
}

/// The hash of the token in a file of the folder; none if there is no such token.
pub(crate) fn hash_of(folder: &Path, file: &str) -> Result<Option<TokenHash>> {
    Ok(read(folder)?.find(|caller, _| caller.name == file).map(|(_, token)| token.hash()))
}

struct TokenFiles {
    tokens: Vec<(TokenHolder, Token)>,
    /// Names of files that are not tokens.
    ignored: Vec<String>,
}

impl TokenFiles {
    fn find(self, is_wanted: impl Fn(&TokenHolder, &Token) -> bool) -> Option<(TokenHolder, Token)> {
        self.tokens.into_iter().find(|(caller, token)| is_wanted(caller, token))
    }
}

fn read(folder: &Path) -> Result<TokenFiles> {
    let mut found = TokenFiles { tokens: Vec::new(), ignored: Vec::new() };
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match caller_named(&name).zip(read_token(&path)) {
            Some(known) => found.tokens.push(known),
            None => found.ignored.push(name),
        }
    }
    found.ignored.sort_unstable();
    Ok(found)
}

fn read_token(path: &Path) -> Option<Token> {
    let text = std::fs::read_to_string(path).ok()?;
    Token::try_from(text.trim().to_owned()).ok().filter(|token| token.check_length().is_ok())
}

/// Whose token a file of this name holds. An editor's backup or a half-written file is nobody's.
fn caller_named(file: &str) -> Option<TokenHolder> {
    let (name, role) = match file.strip_suffix(ADMIN) {
        Some(name) => (name, Role::Admin),
        None => (file, Role::Analyst),
    };
    // The name of the file, so that an administrator's queries are not those of an analyst of the same name.
    is_name(name).then(|| TokenHolder { name: file.to_owned(), role })
}

fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_token_is_made_once_and_others_may_be_added() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("tokens");
        prepare(&folder).unwrap();
        let first = std::fs::read_to_string(folder.join(FIRST_ANALYST)).unwrap();
        prepare(&folder).unwrap();
        assert_eq!(std::fs::read_to_string(folder.join(FIRST_ANALYST)).unwrap(), first);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder.join(FIRST_ANALYST)), mode(&folder)), (0o600, 0o700));
        }
        let named = |name: &str, role| Some(TokenHolder { name: name.to_owned(), role });
        assert_eq!(caller(&folder, first.trim().as_bytes()).unwrap(), named(FIRST_ANALYST, Role::Analyst));
        assert_eq!(caller(&folder, b"guess").unwrap(), None);
        assert_eq!(caller(&folder, b"").unwrap(), None);
        std::fs::write(folder.join("grace"), "grace-her-own-token\n").unwrap();
        std::fs::write(folder.join("ops.admin"), "operators-own-token\n").unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        assert_eq!(caller(&folder, b"grace-her-own-token").unwrap(), named("grace", Role::Analyst));
        assert_eq!(caller(&folder, b"operators-own-token").unwrap(), named("ops.admin", Role::Admin));
        std::fs::remove_file(folder.join("grace")).unwrap();
        assert_eq!(caller(&folder, b"grace-her-own-token").unwrap(), None);
    }

    #[test]
    fn backups_and_dotted_names_are_nobodys_and_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let names = ["analyst~", "ada.lovelace", "grace.bak", ".grace.swp", ".admin", "a b", "ops.admin~", "#ada#"];
        for name in names {
            std::fs::write(directory.path().join(name), "somebodys-own-token\n").unwrap();
        }
        std::fs::create_dir(directory.path().join("folder")).unwrap();
        assert_eq!(caller(directory.path(), b"somebodys-own-token").unwrap(), None);
        let ignored = read(directory.path()).unwrap().ignored;
        assert!(names.iter().all(|name| ignored.iter().any(|ignored| ignored == name)), "{ignored:?}");
        assert_eq!(ignored.len(), names.len() + 1);
        assert_eq!(caller_named(&"x".repeat(LONGEST_NAME + 1)), None);
    }

    #[test]
    fn short_tokens_are_nobodys_and_are_not_written_over() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [(FIRST_ANALYST, "x\n"), ("grace", "fifteen-letters"), ("ada", "sixteen-letters-")] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        assert_eq!(caller(directory.path(), b"x").unwrap(), None);
        assert_eq!(caller(directory.path(), b"fifteen-letters").unwrap(), None);
        assert_eq!(caller(directory.path(), b"sixteen-letters-").unwrap().unwrap().name, "ada");
        assert_eq!(read(directory.path()).unwrap().ignored, [FIRST_ANALYST, "grace"]);
        std::fs::remove_file(directory.path().join("ada")).unwrap();
        prepare(directory.path()).unwrap();
        assert_eq!(std::fs::read_to_string(directory.path().join(FIRST_ANALYST)).unwrap(), "x\n");
    }

    #[test]
    fn an_analyst_touches_its_own_queries_and_an_administrator_all() {
        let [ada, ops] = ["ada", "ops.admin"].map(|file| caller_named(file).unwrap());
        assert!(ada.may_touch(Some("ada")) && !ada.may_touch(Some("grace")) && !ada.may_touch(None));
        assert!(ops.may_touch(Some("ada")) && ops.may_touch(None));
        // An administrator's name is not an analyst's.
        assert!(!caller_named("ops").unwrap().may_touch(Some(&ops.name)));
    }
}
