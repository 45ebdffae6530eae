//! Folders and files that nobody but their owner may look into.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    path::Path,
};

use crate::error::{Error, Result};

/// Makes a folder for state, and the file for it, for the owner alone.
///
/// A folder that is there is closed to others only if it holds the state already: anything else could be a folder that
/// others use as well.
pub fn prepare(folder: &Path, file: &Path) -> Result<()> {
    if file.exists() {
        restrict(folder, 0o700)?;
    } else {
        create_folder(folder)?;
    }
    drop(create_file(file)?);
    Ok(())
}

/// Makes a folder, with those above it, for the owner alone. One that is there stays as it is.
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

/// Opens a file for writing, for the owner alone, and makes it if need be. What is in it stays.
pub fn create_file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(|error| Error::file(path, error))?;
    // It may be there from a time before.
    restrict(path, 0o600)?;
    Ok(file)
}

/// Writes beside the target, readable by its owner alone, and renames: never half a file.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let beside = path.with_extension("partial");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&beside, path)).map_err(|error| Error::file(path, error))
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
