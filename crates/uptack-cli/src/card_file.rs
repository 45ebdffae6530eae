//! Query cards as files: TOML or JSON, by their ending.

use std::fs;
use std::io::Write;
use std::path::Path;

use uptack::card::Card;

use crate::failure::Failure;

/// Reads a card from text; `path` tells its form and is named in errors.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Card, Failure> {
    let place = |failure: Failure| failure.at(path.display());
    if is_toml(path) {
        return toml::from_str(text).map_err(|error| place(Failure::request(format!("not a query card: {error}"))));
    }
    Card::from_json(text).map_err(|error| place(error.into()))
}

/// Writes a card whole or not at all.
pub(crate) fn write(path: &Path, card: &Card) -> Result<(), Failure> {
    let text = match is_toml(path) {
        true => toml::to_string(card).map_err(|error| Failure::request(format!("{}: {error}", path.display())))?,
        false => format!("{}\n", card.canonical()),
    };
    let fail = |error: std::io::Error| Failure::writing(path.display(), &error);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(fail)?;
    // A temporary file is for its owner only; a card is for everybody.
    let readable = fs::metadata(path).map(|data| data.permissions()).ok();
    file.persist(path).map_err(|error| fail(error.error))?;
    match readable {
        Some(permissions) => fs::set_permissions(path, permissions).map_err(fail),
        None => make_public(path).map_err(fail),
    }
}

#[cfg(unix)]
fn make_public(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_public(_: &Path) -> std::io::Result<()> {
    Ok(())
}

pub(crate) fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}
