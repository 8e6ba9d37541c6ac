//! File-system operations on a lock's file: it is opened only if it has the form that this crate
//! creates, is locked during founding and joining, and is replaced as a whole.

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

/// Readable and writable by its user only.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The sticky bit, which keeps a file from being removed because of its age, by the XDG base
/// directory specification; `systemd-tmpfiles` respects it in all directories.
const KEPT: Mode = Mode::SVTX;

/// Sets the mode of a file, regardless of the umask. Not every file system supports [`KEPT`].
fn set_mode(file: &OwnedFd) -> Result<(), Errno> {
    fchmod(file, MODE | KEPT).or_else(|_| fchmod(file, MODE))
}

/// Opens the file at `path`, if it exists.
///
/// # Errors
/// [`Error::Foreign`] for a file that this crate cannot have created.
pub(crate) fn existing(path: &Path) -> Result<Option<OwnedFd>> {
    // Non-blocking: opening a pipe would otherwise wait for its other end.
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

/// A file's device and inode number, and the file.
pub(crate) type Identified = ((u64, u64), OwnedFd);

/// Opens an unlinked file of a lock through a link in `/proc`. Returns `None` if it is not such a
/// file.
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

/// Opens the same file once more, independently of its name. Threads that lock it through the same
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

/// Opens the directory of `path` and locks it shared: cleaners that follow `tmpfiles.d(5)` skip a
/// locked directory. Returns `None` for a directory that belongs to another user, and if opening or
/// locking is refused; the file is [`KEPT`] also in these cases.
pub(crate) fn keep_folder(path: &Path) -> Option<OwnedFd> {
    let folder = descriptor::open(folder_of(path), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    fstat(&folder).ok().filter(|stat| stat.st_uid == geteuid().as_raw())?;
    flock(&folder, FlockOperation::NonBlockingLockShared).ok()?;
    Some(folder)
}

/// Locks the file. The lock is released when this process ends. Returns false if the deadline
/// passes first; `None` does not wait.
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
    // Closing the file also unlocks it.
    let _ = flock(file, FlockOperation::Unlock);
}

/// Creates a file of zeros with the length of a lock's file and without a name, or with the name
/// `temporary` if the file system does not support unnamed files. Its pages are allocated, so that
/// no access can fail for lack of space.
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
    // If the file exceeded the process's file-size limit, `fallocate` would raise a fatal signal
    // instead of returning this error.
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < len) {
        return Err(Error::refused("fallocate", path)(Errno::FBIG));
    }
    set_mode(&file).map_err(Error::refused("fchmod", path))?;
    retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, len)).map_err(Error::refused("fallocate", path))?;
    Ok((file, named))
}

/// A lock's file that other processes cannot open yet.
#[derive(Debug)]
pub(crate) struct NewFile {
    pub(crate) file: OwnedFd,
    path: PathBuf,
    temporary: PathBuf,
    /// Whether it already has the name `temporary`.
    named: bool,
}

impl NewFile {
    /// Makes a file for `path`. `suffix` must be unique among the processes that make one.
    pub(crate) fn new(path: &Path, suffix: &str) -> Result<Self> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().ok_or_else(|| Error::foreign(path, "is no path of a file"))?);
        name.push(suffix);
        let temporary = path.with_file_name(name);
        let (file, named) = nameless(path, &temporary)?;
        Ok(NewFile { file, path: path.to_owned(), temporary, named })
    }

    /// Links an unnamed file to a name that does not exist yet.
    fn link(&self, to: &Path) -> Result<(), Errno> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        linkat(CWD, own, CWD, to, AtFlags::SYMLINK_FOLLOW)
    }

    /// Gives the file its final name unless a file with that name exists. Returns whether it
    /// succeeded.
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

    /// Gives the file its final name, replacing the file that has it.
    pub(crate) fn replace(self) -> Result<()> {
        if !self.named {
            let _ = unlink(&self.temporary);
            self.link(&self.temporary).map_err(Error::refused("link", &self.temporary))?;
        }
        rename(&self.temporary, &self.path).map_err(Error::refused("rename", &self.path))
    }
}
