//! The locks that are compared.

use super::system::{OpenFileLock, RobustMutex, Taken};
use clap::ValueEnum;
use named_lock::{Error, NamedLock};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// A lock, and how it is acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Contestant {
    NamedExclusive,
    NamedShared,
    RobustMutex,
    OfdExclusive,
    OfdShared,
    FlockExclusive,
    FlockShared,
}

/// The location of a lock while it is measured: a file system in memory, like `$XDG_RUNTIME_DIR`.
pub(super) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join("lock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A lock that is open.
pub(super) enum Opened {
    Named(NamedLock, bool),
    Mutex(RobustMutex),
    Ofd(OpenFileLock, bool),
    Flock(File, bool),
}

impl Contestant {
    pub(super) const ALL: [Contestant; 7] = [
        Contestant::NamedExclusive,
        Contestant::NamedShared,
        Contestant::RobustMutex,
        Contestant::OfdExclusive,
        Contestant::OfdShared,
        Contestant::FlockExclusive,
        Contestant::FlockShared,
    ];

    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Contestant::NamedExclusive => "named lock, exclusive",
            Contestant::NamedShared => "named lock, shared",
            Contestant::RobustMutex => "pthread robust mutex",
            Contestant::OfdExclusive => "fcntl (OFD), exclusive",
            Contestant::OfdShared => "fcntl (OFD), shared",
            Contestant::FlockExclusive => "flock, exclusive",
            Contestant::FlockShared => "flock, shared",
        }
    }

    /// Whether one holder excludes the others, and so its death admits them.
    pub(super) fn is_exclusive(self) -> bool {
        !matches!(self, Contestant::NamedShared | Contestant::OfdShared | Contestant::FlockShared)
    }

    pub(super) fn learns(self) -> &'static str {
        match self {
            Contestant::NamedExclusive => "torn, by which process; all others too, until it is mended",
            Contestant::RobustMutex => "torn (`EOWNERDEAD`), once",
            Contestant::OfdExclusive | Contestant::FlockExclusive => "nothing",
            Contestant::NamedShared | Contestant::OfdShared | Contestant::FlockShared => "–",
        }
    }

    /// Makes a place for it.
    pub(super) fn place(self) -> io::Result<Place> {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Relaxed);
        let folder = base.join(format!("onesided-bench-named-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let place = Place { folder };
        if self == Contestant::RobustMutex {
            RobustMutex::create(&place.path())?;
        }
        Ok(place)
    }

    pub(super) fn open(self, path: &Path) -> io::Result<Opened> {
        let file = || File::options().create(true).truncate(false).read(true).write(true).open(path);
        Ok(match self {
            Contestant::NamedExclusive | Contestant::NamedShared => {
                let lock = NamedLock::open_path(path).map_err(io::Error::other)?;
                Opened::Named(lock, self == Contestant::NamedShared)
            }
            Contestant::RobustMutex => Opened::Mutex(RobustMutex::open(path)?),
            Contestant::OfdExclusive | Contestant::OfdShared => {
                Opened::Ofd(OpenFileLock(file()?), self == Contestant::OfdShared)
            }
            Contestant::FlockExclusive | Contestant::FlockShared => {
                Opened::Flock(file()?, self == Contestant::FlockShared)
            }
        })
    }
}

impl Opened {
    /// Takes and releases the lock.
    #[inline]
    pub(super) fn pair(&self) -> io::Result<()> {
        match self {
            Opened::Named(lock, true) => lock.read().and_then(|guard| guard.release()).map_err(io::Error::other),
            Opened::Named(lock, false) => lock.write().and_then(|guard| guard.release()).map_err(io::Error::other),
            Opened::Mutex(mutex) => {
                mutex.lock()?;
                mutex.unlock()
            }
            Opened::Ofd(lock, shared) => {
                lock.lock(*shared)?;
                lock.unlock()
            }
            Opened::Flock(file, shared) => {
                flock_on(file, *shared)?;
                Ok(flock(file, FlockOperation::Unlock)?)
            }
        }
    }

    /// Acquires the lock and keeps it.
    pub(super) fn hold(&self) -> io::Result<()> {
        match self {
            Opened::Named(lock, _) => std::mem::forget(lock.write().map_err(io::Error::other)?),
            Opened::Mutex(mutex) => drop(mutex.lock()?),
            Opened::Ofd(lock, _) => lock.lock(false)?,
            Opened::Flock(file, _) => flock_on(file, false)?,
        }
        Ok(())
    }

    /// Waits until the lock can be acquired, or its data is known to be torn.
    pub(super) fn wait(&self) -> io::Result<()> {
        match self {
            Opened::Named(lock, _) => match lock.write() {
                Err(Error::Torn { .. }) => Ok(()),
                outcome => Err(io::Error::other(format!("nobody told: {outcome:?}"))),
            },
            Opened::Mutex(mutex) => match mutex.lock()? {
                Taken::FromTheDead => Ok(()),
                Taken::Whole => Err(io::Error::other("nobody told")),
            },
            opened => opened.hold(),
        }
    }
}

fn flock_on(file: &File, shared: bool) -> io::Result<()> {
    let how = if shared { FlockOperation::LockShared } else { FlockOperation::LockExclusive };
    loop {
        match flock(file, how) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
}
