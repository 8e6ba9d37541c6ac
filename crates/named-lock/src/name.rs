//! From a name to a path: which directory, and that nobody else can put files there.

use crate::{Error, Result};
use rustix::{
    fs::{Mode, OFlags, fstat, mkdir, open},
    io::Errno,
    process::geteuid,
};
use std::{
    env,
    path::{Path, PathBuf},
};

/// The longest name, in bytes.
const LONGEST: usize = 100;
/// The directory for the locks, inside the user's directory.
const FOLDER: &str = "onesided-locks";

/// Returns the path of the lock called `name`.
///
/// # Errors
/// [`Error::Name`]; [`Error::Foreign`] if somebody else could change the directory.
pub(crate) fn path_of(name: &str) -> Result<PathBuf> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > LONGEST || name.starts_with('.') || !name.bytes().all(allowed) {
        return Err(Error::Name { name: name.to_owned() });
    }
    Ok(folder()?.join(format!("{name}.lock")))
}

/// Returns the user's directory for locks, which exists: `$XDG_RUNTIME_DIR/onesided-locks`, or
/// `/tmp/onesided-locks-<user>` without that variable.
fn folder() -> Result<PathBuf> {
    let folder = match env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        Some(dir) => {
            owned_directory(&dir)?;
            dir.join(FOLDER)
        }
        None => Path::new("/tmp").join(format!("{FOLDER}-{}", geteuid().as_raw())),
    };
    match mkdir(&folder, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => owned_directory(&folder).map(|()| folder),
        Err(errno) => Err(Error::refused("mkdir", &folder)(errno)),
    }
}

/// Checks that a directory is this user's, and that only this user can change it.
fn owned_directory(path: &Path) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match open(path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOTDIR | Errno::LOOP) => return Err(Error::foreign(path, "is no directory, or a symbolic link")),
        Err(errno) => return Err(Error::refused("open", path)(errno)),
    };
    let stat = fstat(&directory).map_err(Error::refused("fstat", path))?;
    if stat.st_uid != geteuid().as_raw() {
        return Err(Error::foreign(path, "belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(Error::foreign(path, "is open to others: its mode should be 0700"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", ".hidden", "a/b", "a\0b", "a b", "ä", "../x", &"n".repeat(LONGEST + 1)] {
            assert!(matches!(path_of(name), Err(Error::Name { .. })), "{name:?}");
        }
    }

    #[test]
    fn directories_that_others_can_change_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = folder.path().join("there");
        mkdir(&there, Mode::from_raw_mode(0o700)).expect("made");
        owned_directory(&there).expect("its user's alone");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&there, &link).expect("a link");
        assert!(matches!(owned_directory(&link), Err(Error::Foreign { .. })));
        rustix::fs::chmod(&there, Mode::from_raw_mode(0o750)).expect("chmod");
        let error = owned_directory(&there).expect_err("open to a group");
        assert!(error.to_string().contains("0700"), "{error}");
    }
}
