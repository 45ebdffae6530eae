//! Folders and files that nobody but their owner can read.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
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
///
/// The file has a random name and must not exist: in a folder that others can write to, nobody can prepare a link through which the
/// secret would be written elsewhere, or a file that they already have open. A link in place of the target is replaced, not
/// followed.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    let partial = partial_name(path);
    let written = write_durably(&partial, text).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        // It may hold a part of the secret.
        let _ = std::fs::remove_file(&partial);
        Error::file(path, error)
    })
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.partial", rand::random::<u64>()));
    path.with_file_name(name)
}

fn write_durably(path: &Path, text: &str) -> io::Result<()> {
    let mut file = owner_only().create_new(true).open(path)?;
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

    /// In a folder that an attacker can write to, with everything prepared under the names that are easy to guess.
    #[test]
    fn a_secret_is_written_through_no_link_and_into_no_file_that_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let [secret, partial, elsewhere] =
            ["pair.secret", "pair.partial", "elsewhere"].map(|name| directory.path().join(name));
        std::fs::write(&elsewhere, "theirs").unwrap();
        for link in [&secret, &partial] {
            std::os::unix::fs::symlink(&elsewhere, link).unwrap();
        }
        write_secret(&secret, "ours").unwrap();
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "theirs");
        assert!(std::fs::symlink_metadata(&secret).unwrap().is_file());
        assert_eq!((std::fs::read_to_string(&secret).unwrap().as_str(), mode(&secret)), ("ours", 0o600));
        // Nothing is left of the file that was renamed, nor of one that could not be.
        let count = || std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(count(), 3);
        std::fs::create_dir_all(directory.path().join("folder/inside")).unwrap();
        assert!(write_secret(&directory.path().join("folder"), "ours").is_err());
        assert_eq!(count(), 4);
        let names: std::collections::BTreeSet<_> = (0..10).map(|_| partial_name(&secret)).collect();
        assert_eq!(names.len(), 10);
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
