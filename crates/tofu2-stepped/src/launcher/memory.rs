//! Registered memory of a rank's process.

use rdma_fabric::{FabricError, Result};
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

    /// Opens the image, and returns it.
    ///
    /// # Errors
    /// [`FabricError::System`] if this process may not trace that one.
    pub(super) fn open(&self) -> Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let open = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/mem", self.process));
        let file = open.map_err(|error| refused(&"open the memory of a rank's process", &error))?;
        Ok(self.file.get_or_init(|| file))
    }

    /// Copies bytes of the process.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn copy_out(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let read = self.open()?.read_exact_at(&mut bytes, at);
        read.map_err(|error| refused(&"read the memory of a rank's process", &error)).map(|()| bytes)
    }

    /// Copies bytes into the process.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(super) fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.open()?.write_all_at(bytes, at).map_err(|error| refused(&"write the memory of a rank's process", &error))
    }

    /// Returns the first failure of an access.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn failed(&self, at: u64, len: usize, error: &io::Error) {
        self.failure.get_or_init(|| format!("{len} bytes of registered memory at {at:#x} cannot be accessed: {error}"));
    }
}

fn refused(call: &'static &'static str, error: &io::Error) -> FabricError {
    FabricError::System { call, errno: error.raw_os_error().unwrap_or(0) }
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
