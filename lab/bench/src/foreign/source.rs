//! Programs in C that are compiled for a measurement.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A program of one file, and a header that it includes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    /// The name and the text of the header.
    pub(crate) header: Option<[&'static str; 2]>,
}

impl Source {
    /// Compiles the program in `folder`, as fast as the compiler can make it without leaving the C standard. Returns
    /// its path.
    ///
    /// # Errors
    /// The compiler's, if it fails.
    pub(crate) fn compiled(
        &self,
        compiler: &str,
        options: &[String],
        folder: &Path,
    ) -> Result<PathBuf, Box<dyn Error>> {
        let (file, program) =
            (folder.join(format!("{}.c", self.name)), folder.join(format!("{}-{compiler}", self.name)));
        fs::write(&file, self.text)?;
        if let Some([name, text]) = self.header {
            fs::write(folder.join(name), text)?;
        }
        let mut command = Command::new(compiler);
        command.args(["-std=gnu11", "-O3", "-ffp-contract=off", "-o"]).arg(&program).arg(&file).args(options);
        let built = command.output().map_err(|error| format!("{compiler}: {error}"))?;
        match built.status.success() {
            true => Ok(program),
            false => Err(format!("{compiler}: {}", String::from_utf8_lossy(&built.stderr)).into()),
        }
    }
}
