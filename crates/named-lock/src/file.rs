//! A lock's file as the system sees it: opened only if it is what this crate makes, locked while
//! somebody founds or joins, replaced as a whole.

use crate::{Error, Result, descriptor, layout};
use rustix::{
    fs::{
        AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, fallocate, fchmod, flock,
        fstat, linkat, lstat, rename, renameat_with, unlink,
    },
    io::{Errno, retry_on_intr},
    process::{Resource, geteuid, getrlimit},
};
use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// Read and written by its user, and by nobody else.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Keeps a file from being removed because of its age, by the XDG base directory specification, which
/// `systemd-tmpfiles` follows everywhere.
const KEPT: Mode = Mode::SVTX;

/// Sets the mode of a file, whatever the umask has taken away. Not every file system has files that
/// are [`KEPT`].
fn set_mode(file: &OwnedFd) -> Result<(), Errno> {
    fchmod(file, MODE | KEPT).or_else(|_| fchmod(file, MODE))
}

/// Opens the file at `path`, if there is one.
///
/// # Errors
/// [`Error::Foreign`] for anything that this crate would not have made.
pub(crate) fn existing(path: &Path) -> Result<Option<OwnedFd>> {
    // Not blocking, lest a pipe make this wait for its other end.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match descriptor::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Error::foreign(path, "is a symbolic link")),
        Err(Errno::ISDIR | Errno::NXIO) => return Err(Error::foreign(path, "is no file")),
        Err(errno) => return Err(Error::refused("open", path)(errno)),
    };
    let there = fstat(&file).map_err(Error::refused("fstat", path))?;
    let why = if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile {
        "is no file"
    } else if there.st_uid != geteuid().as_raw() {
        "belongs to another user"
    } else if there.st_mode & 0o077 != 0 {
        "is open to others: its mode should be 0600"
    } else if there.st_nlink > 1 {
        "has another name, too"
    } else if u64::try_from(there.st_size) != Ok(layout::file_bytes() as u64) {
        "is no lock of this version: it has another length"
    } else {
        if there.st_mode & KEPT.as_raw_mode() == 0 {
            set_mode(&file).map_err(Error::refused("fchmod", path))?;
        }
        return Ok(Some(file));
    };
    Err(Error::foreign(path, why))
}

/// A file's device and number, and the file.
pub(crate) type Identified = ((u64, u64), OwnedFd);

/// Opens a file of a lock without a name, by a link of `/proc`, if it is one.
///
/// # Errors
/// Those of `open` and `fstat`.
pub(crate) fn nameless_at(link: &Path) -> Result<Option<Identified>, Errno> {
    let file = descriptor::open(link, OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?;
    let there = fstat(&file)?;
    let is_one = FileType::from_raw_mode(there.st_mode) == FileType::RegularFile
        && there.st_uid == geteuid().as_raw()
        && there.st_nlink == 0
        && u64::try_from(there.st_size) == Ok(layout::file_bytes() as u64);
    Ok(is_one.then_some(((there.st_dev, there.st_ino), file)))
}

/// Opens the same file once more, whatever its name leads to now. Threads that lock it by the same
/// descriptor would not exclude each other.
pub(crate) fn again(file: &OwnedFd, path: &Path) -> Result<OwnedFd> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    descriptor::open(&own, OFlags::RDWR, Mode::empty()).map_err(Error::refused("open", path))
}

/// Returns whether `path` leads to this file.
pub(crate) fn is_at(file: &OwnedFd, path: &Path) -> Result<bool> {
    let own = fstat(file).map_err(Error::refused("fstat", path))?;
    match lstat(path) {
        Ok(there) => Ok((own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(Error::refused("lstat", path)(errno)),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens the directory of `path` and locks it shared: cleaners that follow `tmpfiles.d(5)` leave a
/// locked directory alone. Returns nothing for a directory of another user, who need not know of this
/// lock, and where that is refused; the file is [`KEPT`] there, too.
pub(crate) fn keep_folder(path: &Path) -> Option<OwnedFd> {
    let folder = descriptor::open(folder_of(path), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    fstat(&folder).ok().filter(|stat| stat.st_uid == geteuid().as_raw())?;
    flock(&folder, FlockOperation::NonBlockingLockShared).ok()?;
    Some(folder)
}

/// Locks the file, which the end of this process undoes, unless the deadline comes first: then
/// returns false. `None` waits for nothing.
pub(crate) fn lock(file: &OwnedFd, path: &Path, deadline: Option<Instant>) -> Result<bool> {
    let mut pause = Duration::from_micros(50);
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(errno) => return Err(Error::refused("flock", path)(errno)),
        }
        if deadline.is_none_or(|at| Instant::now() >= at) {
            return Ok(false);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(2));
    }
}

/// Unlocks a locked file.
pub(crate) fn unlock(file: &OwnedFd) {
    // Closing it does so, too.
    let _ = flock(file, FlockOperation::Unlock);
}

/// Makes a file of zeros, as long as a lock's, that has no name yet; or `temporary` if the file
/// system makes no such files. Its pages are there, so that no access can run out of them.
fn nameless(path: &Path, temporary: &Path) -> Result<(OwnedFd, bool)> {
    let folder = folder_of(path);
    let flags = OFlags::RDWR;
    let (file, named) = match descriptor::open(folder, flags | OFlags::TMPFILE, MODE) {
        Ok(file) => (file, false),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            let _ = unlink(temporary);
            let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            (descriptor::open(temporary, flags, MODE).map_err(Error::refused("open", temporary))?, true)
        }
        Err(errno) => return Err(Error::refused("open", folder)(errno)),
    };
    let len = layout::file_bytes() as u64;
    // Beyond its file-size limit, a process gets a fatal signal instead of this error.
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < len) {
        return Err(Error::refused("fallocate", path)(Errno::FBIG));
    }
    set_mode(&file).map_err(Error::refused("fchmod", path))?;
    retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, len)).map_err(Error::refused("fallocate", path))?;
    Ok((file, named))
}

/// A lock's file that nobody can open yet.
#[derive(Debug)]
pub(crate) struct NewFile {
    pub(crate) file: OwnedFd,
    path: PathBuf,
    temporary: PathBuf,
    /// Whether it is at `temporary` already.
    named: bool,
}

impl NewFile {
    /// Makes a file for `path`. Only one process makes one with the same `suffix`.
    pub(crate) fn new(path: &Path, suffix: &str) -> Result<Self> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().ok_or_else(|| Error::foreign(path, "is no path of a file"))?);
        name.push(suffix);
        let temporary = path.with_file_name(name);
        let (file, named) = nameless(path, &temporary)?;
        Ok(NewFile { file, path: path.to_owned(), temporary, named })
    }

    /// Gives a nameless file a name that no file has.
    fn link(&self, to: &Path) -> Result<(), Errno> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        linkat(CWD, own, CWD, to, AtFlags::SYMLINK_FOLLOW)
    }

    /// Gives the file its name, unless there is a file with that name. Returns whether it has it now.
    pub(crate) fn publish(self) -> Result<bool> {
        let linked = if self.named {
            let renamed = renameat_with(CWD, &self.temporary, CWD, &self.path, RenameFlags::NOREPLACE);
            if renamed.is_err() {
                let _ = unlink(&self.temporary);
            }
            renamed
        } else {
            self.link(&self.path)
        };
        match linked {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(Error::refused("link", &self.path)(errno)),
        }
    }

    /// Gives the file its name in place of the file that has it.
    pub(crate) fn replace(self) -> Result<()> {
        if !self.named {
            let _ = unlink(&self.temporary);
            self.link(&self.temporary).map_err(Error::refused("link", &self.temporary))?;
        }
        rename(&self.temporary, &self.path).map_err(Error::refused("rename", &self.path))
    }
}
