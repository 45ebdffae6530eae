//! What commands write: text for people, JSON for programs, and files that are written whole.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use tempfile::NamedTempFile;
use uptack::card::Card;
pub(crate) use uptack::display::{claim as readable_up, grouped, nearest as readable};
use uptack_chart::Sheet;

use crate::failure::{Failure, IoResultExt, Result, ResultExt};
use crate::input::{has_extension, is_toml};
use crate::layout;
pub(crate) use crate::layout::Table;

/// Writes a result to stdout: one JSON document for programs, or text for people.
pub(crate) fn print_result(json: bool, document: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    if json { print_json(document) } else { print(&text()) }
}

/// Writes text for people to stdout, its lines broken where the terminal is narrower.
pub(crate) fn print(text: &str) -> Result<()> {
    print_exact(&layout::fitted_to_terminal(text))
}

/// Writes text to stdout as it is, for other programs.
pub(crate) fn print_exact(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.while_writing("stdout")
}

/// Writes one JSON document to stdout.
pub(crate) fn print_json(document: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(document).map_err(io::Error::other).while_writing("stdout")?;
    print_exact(&format!("{text}\n"))
}

/// Checks, before any work is done, that a file can be written at this path.
pub(crate) fn check_writable(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Failure::request("it is a folder, not a file").at(path.display()));
    }
    // Created in the same folder and deleted, as the file itself will be created there and renamed.
    match NamedTempFile::new_in(folder_of(path)) {
        Ok(_) => Ok(()),
        Err(error) => Err(unwritable(path, &error)),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let message = match error.kind() {
        io::ErrorKind::NotFound => "its folder does not exist",
        io::ErrorKind::NotADirectory => "its folder is a file",
        io::ErrorKind::PermissionDenied => "you do not have permission to write in its folder",
        _ => return Failure::writing(path.display(), error),
    };
    Failure::request(message).at(path.display())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file whole or not at all: to a temporary file in the same folder, which is then renamed.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes).while_writing(path.display())
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let permissions = fs::metadata(path).map(|replaced| replaced.permissions());
    file.persist(path)?;
    // A temporary file is readable by its owner only; these files are for everybody.
    match permissions {
        Ok(permissions) => fs::set_permissions(path, permissions),
        Err(_) => make_public(path),
    }
}

#[cfg(unix)]
fn make_public(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_public(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A file that a chart can be written to.
pub(crate) struct ChartFile<'a> {
    path: &'a Path,
    format: ChartFormat,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChartFormat {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

#[cfg(feature = "png")]
const PNG_WIDTH: u32 = 1280;
/// The extensions that this build writes.
const EXTENSIONS: &str = if cfg!(feature = "png") { ".svg or .png" } else { ".svg" };

impl<'a> ChartFile<'a> {
    /// Checks, before any work is done, that a chart can be written at this path.
    pub(crate) fn new(path: &'a Path) -> Result<Self> {
        let format = ChartFormat::of(path)?;
        check_writable(path)?;
        Ok(Self { path, format })
    }

    pub(crate) fn write(&self, sheet: &Sheet) -> Result<()> {
        write_whole(self.path, &self.format.encode(sheet)?)
    }
}

impl ChartFormat {
    /// The format, by the extension.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            #[cfg(feature = "png")]
            Some("png") => Ok(Self::Png),
            _ => Err(Failure::request(format!("{}: a chart is written as {EXTENSIONS}", path.display()))
                .with_hint("give the file one of these extensions")),
        }
    }

    fn encode(self, sheet: &Sheet) -> Result<Vec<u8>> {
        match self {
            Self::Svg => Ok(sheet.to_svg().into_bytes()),
            #[cfg(feature = "png")]
            Self::Png => sheet.to_png(PNG_WIDTH).map_err(|error| Failure::environment(format!("the chart: {error}"))),
        }
    }
}

/// Checks, before any work is done, that a card can be written at this path.
pub(crate) fn check_card_path(path: &Path) -> Result<()> {
    if !is_toml(path) && !has_extension(path, "json") {
        return Err(Failure::request(format!("{}: a card is written as .toml or .json", path.display()))
            .with_hint("give the file one of these extensions"));
    }
    check_writable(path)
}

/// Writes a card whole or not at all.
pub(crate) fn write_card(path: &Path, card: &Card) -> Result<()> {
    let text = if is_toml(path) {
        toml::to_string(card).map_err(|error| Failure::request(error.to_string())).at(path.display())?
    } else {
        format!("{}\n", card.canonical())
    };
    write_whole(path, text.as_bytes())
}
