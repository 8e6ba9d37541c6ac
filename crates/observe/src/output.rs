//! Destinations of results: files, opened before there is a result, and standard output.

use crate::error::{ObserveError, file};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A file to which a result will be written. It is opened before the work that produces the result,
/// so that no work is wasted on a path that can't be written.
///
/// Opening destroys nothing: the file keeps its contents until [`Output::write`]. A file that
/// opening created is removed again if the result was not written in full.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    /// Whether opening created the file and it holds no result yet.
    empty: bool,
}

impl Output {
    /// Opens the file at `path`, or creates it.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn open(path: &Path) -> Result<Self, ObserveError> {
        let mut options = OpenOptions::new();
        options.write(true);
        let (opened, empty) = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (options.create(true).open(path), true),
            opened => (opened, false),
        };
        let file = opened.map_err(file(path, "opened for writing"))?;
        Ok(Output { path: path.to_owned(), file, empty })
    }

    /// Replaces the file's contents with the output of `content`, which flushes its own buffers.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn write(mut self, content: impl FnOnce(&File) -> io::Result<()>) -> Result<(), ObserveError> {
        // Devices and pipes have no length to set.
        let cleared =
            self.file.metadata().and_then(|about| if about.is_file() { self.file.set_len(0) } else { Ok(()) });
        cleared.and_then(|()| content(&self.file)).map_err(file(&self.path, "written"))?;
        self.empty = false;
        Ok(())
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Do not remove a link that was there before.
        if self.empty && fs::symlink_metadata(&self.path).is_ok_and(|about| about.is_file()) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes to standard output. A reader that closes its end early is not an error.
///
/// # Errors
/// [`ObserveError::File`].
pub fn print(text: &str) -> Result<(), ObserveError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(file(Path::new("standard output"), "written")),
    }
}

/// Writes a line to standard error. A failure can't be reported, and nothing else depends on it.
pub fn emit(text: impl std::fmt::Display) {
    // In one write, so that lines of several processes are not mixed. `eprintln!` would panic.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_destroys_nothing_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (directory.path().join("old"), directory.path().join("new"));
        fs::write(&old, "a long old text").unwrap();
        drop((Output::open(&old).unwrap(), Output::open(&new).unwrap()));
        assert_eq!(fs::read_to_string(&old).unwrap(), "a long old text");
        assert!(!new.exists());
        for path in [&old, &new] {
            Output::open(path).unwrap().write(|mut file| file.write_all(b"result")).unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "result");
        }
        fs::remove_file(&new).unwrap();
        let half = |mut file: &File| file.write_all(b"half").and_then(|()| Err(io::ErrorKind::StorageFull.into()));
        let error = Output::open(&new).unwrap().write(half).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{} can't be written: ", new.display())), "{error}");
        assert!(!new.exists(), "half a result");
        assert!(Output::open(&directory.path().join("no/such")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        use crate::observation::Observation;
        let observation = Observation::new(1, Vec::new());
        let full = || Output::open(Path::new("/dev/full")).unwrap();
        for written in [full().write(|file| observation.json(file)), full().write(|file| observation.trace(file))] {
            let error = written.unwrap_err().to_string();
            assert!(error.starts_with("/dev/full can't be written: "), "{error}");
        }
    }
}
