//! The equivalents of the C library: a robust mutex between processes, and locks of open files.
//!
//! # Safety
//! The mutex lies at the start of a file that is mapped, page-aligned and long enough, as long as
//! the value lives. [`RobustMutex::create`] initialises it before any other process is given the
//! file's name, and it is never destroyed.

#![allow(unsafe_code)]

use memmap2::{MmapOptions, MmapRaw};
use std::{fs::File, io, mem, os::fd::AsRawFd, path::Path};

/// Bytes of the mutex's file.
const BYTES: usize = 4096;
const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= BYTES);

/// A mutex that reports the death of its holder to the next one.
pub(super) struct RobustMutex(MmapRaw);

/// The result of taking a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Whole,
    /// Its holder has died.
    FromTheDead,
}

fn outcome(code: i32) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
}

impl RobustMutex {
    /// Makes a mutex in a new file.
    pub(super) fn create(path: &Path) -> io::Result<()> {
        let file = File::options().create_new(true).read(true).write(true).open(path)?;
        file.set_len(BYTES as u64)?;
        let mutex = RobustMutex::open(path)?;
        // SAFETY: attributes on this stack, initialised by the first call; the mutex's bytes are
        // mapped and no other code knows them yet.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = mem::zeroed();
            outcome(libc::pthread_mutexattr_init(&mut attributes))?;
            outcome(libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED))?;
            outcome(libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST))?;
            outcome(libc::pthread_mutex_init(mutex.place(), &attributes))?;
            outcome(libc::pthread_mutexattr_destroy(&mut attributes))
        }
    }

    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(RobustMutex(MmapOptions::new().len(BYTES).map_raw(&file)?))
    }

    fn place(&self) -> *mut libc::pthread_mutex_t {
        self.0.as_mut_ptr().cast()
    }

    #[inline]
    pub(super) fn lock(&self) -> io::Result<Taken> {
        // SAFETY: an initialised mutex in mapped memory.
        match unsafe { libc::pthread_mutex_lock(self.place()) } {
            libc::EOWNERDEAD => {
                // SAFETY: as above; this thread holds it.
                outcome(unsafe { libc::pthread_mutex_consistent(self.place()) })?;
                Ok(Taken::FromTheDead)
            }
            code => outcome(code).map(|()| Taken::Whole),
        }
    }

    #[inline]
    pub(super) fn unlock(&self) -> io::Result<()> {
        // SAFETY: an initialised mutex in mapped memory.
        outcome(unsafe { libc::pthread_mutex_unlock(self.place()) })
    }
}

/// A lock that belongs to an open file, on all of its bytes.
pub(super) struct OpenFileLock(pub(super) File);

impl OpenFileLock {
    #[inline]
    pub(super) fn lock(&self, shared: bool) -> io::Result<()> {
        self.set(if shared { libc::F_RDLCK } else { libc::F_WRLCK })
    }

    #[inline]
    pub(super) fn unlock(&self) -> io::Result<()> {
        self.set(libc::F_UNLCK)
    }

    fn set(&self, kind: i32) -> io::Result<()> {
        // SAFETY: a structure of numbers, for which zeros are values.
        let mut range: libc::flock = unsafe { mem::zeroed() };
        range.l_type = kind as libc::c_short;
        range.l_whence = libc::SEEK_SET as libc::c_short;
        loop {
            // SAFETY: the file is open, and the structure is read during the call only.
            if unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLKW, &range) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
