//! Folders and files that nobody but their owner can read.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

use crate::error::{Error, Result};

/// Creates a folder for state, and the file in it, for the owner alone.
///
/// A folder that exists is closed to others only if it already holds the state: otherwise it could be one that others use,
/// too.
pub fn prepare(folder: &Path, file: &Path) -> Result<()> {
    if file.exists() {
        restrict(folder, 0o700)?;
    } else {
        create_folder(folder)?;
    }
    drop(create_file(file)?);
    Ok(())
}

/// Creates a folder, and those above it, for the owner alone. One that exists stays as it is.
pub fn create_folder(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            Error::input(format!("{}: there is a file where a folder is needed", path.display()))
        }
        _ => Error::file(path, error),
    })
}

/// Opens a file for writing, for the owner alone, and creates it if needed. Its content stays.
pub fn create_file(path: &Path) -> Result<File> {
    let file = owner_only().truncate(false).open(path).map_err(|error| Error::file(path, error))?;
    // It may have existed before, with other permissions.
    restrict(path, 0o600)?;
    Ok(file)
}

/// Writes a new file next to the target, readable by its owner alone, and renames it: there is never half a file.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    let partial = path.with_extension("partial");
    write_durably(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|error| Error::file(path, error))
}

fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = owner_only().truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Opens a file for writing; a new one is for the owner alone.
fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn restrict(path: &Path, mode: u32) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(|error| Error::file(path, error))?;
    }
    let _ = (path, mode);
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn state_is_closed_to_others_and_a_folder_of_others_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let (folder, shared) = (directory.path().join("a/b"), directory.path().join("shared"));
        std::fs::create_dir(&shared).unwrap();
        std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o755)).unwrap();
        for place in [&folder, &shared] {
            prepare(place, &place.join("state")).unwrap();
            assert_eq!(mode(&place.join("state")), 0o600);
        }
        assert_eq!((mode(&folder), mode(&shared)), (0o700, 0o755));
        // Once it holds the state, it is a folder of ours, such as one that an earlier version made.
        std::fs::write(shared.join("state"), "kept").unwrap();
        prepare(&shared, &shared.join("state")).unwrap();
        assert_eq!(mode(&shared), 0o700);
        assert_eq!(std::fs::read_to_string(shared.join("state")).unwrap(), "kept");
    }
}
