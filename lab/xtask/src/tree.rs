//! The files of the workspace.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

/// A file: its path from the workspace's root, with `/`, and its text.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Reads all files with one of these extensions, in the order of their paths; skips hidden folders and
/// those of builds.
///
/// # Errors
/// A message that names the file or folder.
pub(crate) fn files(extensions: &[&str]) -> Result<Vec<SourceFile>, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    collect(&root, extensions, &mut paths)?;
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(SourceFile { name: path.strip_prefix(&root)?.to_string_lossy().replace('\\', "/"), text })
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, extensions: &[&str], into: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with("target") && !name.starts_with('.') {
                collect(&path, extensions, into)?;
            }
        } else if path.extension().is_some_and(|found| extensions.iter().any(|extension| found == *extension)) {
            into.push(path);
        }
    }
    Ok(())
}
