//! `cargo xtask unsafe-table`: every use of `unsafe` in the workspace with the invariant it rests on, as
//! `docs/unsafe.md`.
//!
//! Files are read as tokens and not as syntax trees, because half of the uses stand in macros, whose bodies have none.

mod page;
mod scan;

use clap::Args;
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// The page, from the workspace's root.
const PAGE: &str = "docs/unsafe.md";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write nothing; fail if the page is not what would be written.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["src", "tests", "benches", "examples", "crates"] {
        rust_files(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root)?.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&file)?;
        sources.push(scan::Source::read(&name, &text).map_err(|error| format!("{name}: {error}"))?);
    }
    let bare: Vec<_> =
        sources.iter().flat_map(|source| source.without_reason().map(move |use_| (source, use_))).collect();
    for (source, use_) in &bare {
        eprintln!("{}:{}: unsafe {} without a reason", source.name, use_.line, use_.kind);
    }
    if !bare.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    let page = page::write(&sources);
    let path = root.join(PAGE);
    if !options.check {
        fs::write(path, page)?;
        println!("{PAGE} written");
        return Ok(ExitCode::SUCCESS);
    }
    if fs::read_to_string(path).is_ok_and(|now| now.replace("\r\n", "\n") == page) {
        println!("{PAGE} is up to date");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{PAGE} is not what the sources say: run `cargo xtask unsafe-table`");
    Ok(ExitCode::FAILURE)
}

/// Returns all Rust files under `folder`, which may be missing.
fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            rust_files(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}
