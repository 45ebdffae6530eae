//! The analysts' tokens: one file each below `tokens`, named after the analyst.

use std::path::Path;
use uptack_net::{task, token::Token};

use crate::error::{Error, Result};

/// The analyst that a first start makes a token for.
pub const FIRST_ANALYST: &str = "analyst";

/// Makes a first token if there is none at all.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::environment(format!("{}: {error}", folder.display())))?;
    if !read(folder)?.is_empty() {
        return Ok(());
    }
    let text = format!("{}\n", Token::generate().as_str());
    Ok(task::write_secret(&folder.join(FIRST_ANALYST), &text)?)
}

/// The analyst whose token is shown. Files are read for each request, so that one is let in or shut out without a
/// restart; every token is compared, whichever matches.
pub(crate) fn analyst(folder: &Path, shown: &[u8]) -> Result<Option<String>> {
    let mut found = None;
    for (name, token) in read(folder)? {
        if token.hash().matches(shown) {
            found = Some(name);
        }
    }
    Ok(found)
}

fn read(folder: &Path) -> Result<Vec<(String, Token)>> {
    let mut tokens = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let (Some(name), None) = (path.file_name().and_then(|name| name.to_str()), path.extension()) else { continue };
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        match Token::try_from(text.trim().to_owned()) {
            Ok(token) => tokens.push((name.to_owned(), token)),
            Err(_) => tracing::warn!(analyst = name, "the file holds no token"),
        }
    }
    Ok(tokens)
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
            let mode = std::fs::metadata(folder.join(FIRST_ANALYST)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(analyst(&folder, first.trim().as_bytes()).unwrap().as_deref(), Some(FIRST_ANALYST));
        assert_eq!(analyst(&folder, b"guess").unwrap(), None);
        assert_eq!(analyst(&folder, b"").unwrap(), None);
        std::fs::write(folder.join("grace"), "her-token\n").unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        assert_eq!(analyst(&folder, b"her-token").unwrap().as_deref(), Some("grace"));
        std::fs::remove_file(folder.join("grace")).unwrap();
        assert_eq!(analyst(&folder, b"her-token").unwrap(), None);
    }
}
