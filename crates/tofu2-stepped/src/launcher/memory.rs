//! Registered memory of a rank's process.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    sync::{Arc, OnceLock},
};
use tofu2_virt::program::ProgramMemory;

/// The memory image of a process, and the first failure of an access to it.
#[derive(Debug)]
pub(super) struct Image {
    process: u32,
    file: OnceLock<File>,
    failure: OnceLock<String>,
}

impl Image {
    pub(super) fn new(process: u32) -> Arc<Self> {
        Arc::new(Image { process, file: OnceLock::new(), failure: OnceLock::new() })
    }

    /// Opens the image.
    ///
    /// # Errors
    /// The system's, if this process may not trace that one.
    pub(super) fn open(&self) -> io::Result<()> {
        if self.file.get().is_none() {
            let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/mem", self.process))?;
            self.file.get_or_init(|| file);
        }
        Ok(())
    }

    /// Returns the first failure of an access.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn failed(&self, at: u64, len: usize, error: &io::Error) {
        self.failure.get_or_init(|| format!("{len} bytes of registered memory at {at:#x} cannot be accessed: {error}"));
    }
}

/// A registered buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) image: Arc<Image>,
    /// Its address in the process.
    pub(super) start: u64,
}

impl ProgramMemory for Buffer {
    fn read(&self, at: u64, into: &mut [u8]) {
        let (at, len) = (self.start.wrapping_add(at), into.len());
        let Some(file) = self.image.file.get() else { return into.fill(0) };
        if let Err(error) = file.read_exact_at(into, at) {
            into.fill(0);
            self.image.failed(at, len, &error);
        }
    }

    fn write(&self, at: u64, from: &[u8]) {
        let at = self.start.wrapping_add(at);
        if let Some(file) = self.image.file.get()
            && let Err(error) = file.write_all_at(from, at)
        {
            self.image.failed(at, from.len(), &error);
        }
    }
}
