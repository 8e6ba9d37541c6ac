//! Resolves a name to a path: selects the directory, and ensures that no other user can put files
//! there.

use crate::{Error, Result, descriptor};
use rustix::{
    fs::{Mode, OFlags, chmod, fstat, mkdir},
    io::Errno,
    process::geteuid,
};
use std::{
    env,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

/// The longest name, in bytes.
const LONGEST: usize = 100;
/// The prefix of the name of a user's lock directory.
const FOLDER: &str = "onesided-locks";
/// The environment variable that selects another directory.
const VARIABLE: &str = "ONESIDED_LOCK_DIR";

/// Returns the path of the lock called `name`.
///
/// # Errors
/// [`Error::Name`]; [`Error::Foreign`] if another user could change the directory.
pub(crate) fn path_of(name: &str) -> Result<PathBuf> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > LONGEST || name.starts_with('.') || !name.bytes().all(allowed) {
        return Err(Error::Name { name: name.to_owned() });
    }
    Ok(folder()?.join(format!("{name}.lock")))
}

/// Returns the user's lock directory, and makes sure that it exists: the value of [`VARIABLE`], or
/// `/tmp/onesided-locks-<user>`.
///
/// All processes of a user must find the same directory, and the system must not clean it while
/// locks are in use. `$XDG_RUNTIME_DIR` is removed at logout, even if processes continue, and is
/// not set for all processes of a user; `logind` removes a user's files in `/dev/shm` at logout as
/// well. Files in `/tmp` are removed only because of their age, and those of locks are protected
/// from that ([`crate::file`]).
fn folder() -> Result<PathBuf> {
    let given = env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = match &given {
        Some(folder) if folder.is_absolute() => folder.clone(),
        Some(folder) => return Err(Error::foreign(folder, "is not an absolute path, which ONESIDED_LOCK_DIR must be")),
        None => Path::new("/tmp").join(format!("{FOLDER}-{}", geteuid().as_raw())),
    };
    let made = match mkdir(&folder, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(Error::refused("mkdir", &folder)(errno)),
    };
    let directory = owned_directory(&folder)?;
    // Restores permissions that the umask has removed, here or in a process that was killed in
    // between.
    if made || given.is_none() {
        let stat = fstat(&directory).map_err(Error::refused("fstat", &folder))?;
        if stat.st_mode & Mode::RWXU.as_raw_mode() != Mode::RWXU.as_raw_mode() {
            let own = format!("/proc/self/fd/{}", directory.as_raw_fd());
            chmod(own, Mode::RWXU).map_err(Error::refused("chmod", &folder))?;
        }
    }
    Ok(folder)
}

/// Opens a directory without access to its contents, and checks that it belongs to this user and
/// that only this user can change it.
fn owned_directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let directory = match descriptor::open(path, flags, Mode::empty()) {
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
    Ok(directory)
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
