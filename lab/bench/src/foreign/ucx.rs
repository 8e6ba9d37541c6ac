//! The UCX library of this machine.

use super::source::Source;
use std::{
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The reason for which nothing is measured beside UCX.
pub(crate) const NONE: &str = "there is no UCX that pkg-config finds, or no cc (packages libucx-dev, pkg-config, gcc)";

/// UCX, with its headers.
#[derive(Debug)]
pub(crate) struct Library {
    /// Its name and version.
    pub(crate) name: String,
    /// The options of a compiler.
    options: Vec<String>,
}

impl Library {
    /// Returns the library if it and a compiler are installed.
    pub(crate) fn installed() -> Option<Self> {
        let name = format!("UCX {}", printed("pkg-config", &["--modversion", "ucx"])?);
        let options = printed("pkg-config", &["--cflags", "--libs", "ucx"])?;
        printed("cc", &["--version"])?;
        Some(Library { name, options: options.split_whitespace().map(str::to_owned).collect() })
    }

    /// Compiles a program in C in `folder`.
    ///
    /// # Errors
    /// The compiler fails.
    pub(crate) fn compiled(&self, source: &Source, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
        source.compiled("cc", &self.options, folder)
    }
}

/// Returns what a program prints; `None` if it is not installed or fails.
fn printed(program: &str, words: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
