//! Folders and files for the account that runs a server, and nobody else.

use std::{fs::File, path::Path};

use crate::error::{Error, Result};

/// Makes a folder that only its owner can enter. One that exists and lets others in is closed to them.
pub fn create_folder(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| at(path, &error))?;
    restrict(path, 0o700)
}

/// Takes a folder for this process, by a lock on the file `lock` in it, which goes with the process however it ends.
/// `whose` names what already uses the folder if it is taken.
pub fn lock_folder(path: &Path, whose: &str) -> Result<File> {
    let file_path = path.join("lock");
    let mut options = File::options();
    options.create(true).write(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&file_path).map_err(|error| at(&file_path, &error))?;
    restrict(&file_path, 0o600)?;
    file.try_lock().map_err(|_| Error::input(format!("{} is in use by another {whose}", path.display())))?;
    Ok(file)
}

/// Lets nobody but its owner read or write a file.
pub fn restrict_file(path: &Path) -> Result<()> {
    restrict(path, 0o600)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = std::fs::metadata(path).map_err(|error| at(path, &error))?.permissions().mode();
    if found & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(|error| at(path, &error))
}

#[cfg(not(unix))]
fn restrict(_: &Path, _: u32) -> Result<()> {
    Ok(())
}

fn at(path: &Path, error: &std::io::Error) -> Error {
    Error::environment(format!("{}: {error}", path.display()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folders_and_locks_are_for_their_owner() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("a").join("b");
        create_folder(&folder).unwrap();
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        // As an earlier version left them.
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(folder.join("lock"), "").unwrap();
        std::fs::set_permissions(folder.join("lock"), std::fs::Permissions::from_mode(0o644)).unwrap();
        create_folder(&folder).unwrap();
        let _lock = lock_folder(&folder, "desk").unwrap();
        assert_eq!((mode(&folder), mode(&folder.join("lock"))), (0o700, 0o600));
        let error = lock_folder(&folder, "desk").unwrap_err();
        assert!(error.is_input() && error.to_string().contains("in use by another desk"), "{error}");
    }
}
