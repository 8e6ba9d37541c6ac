//! Each whole program of README, the book and the facade's documentation is an example, line by
//! line, so that [`super::runs`] runs the programs that pages show.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("examples is a directory of the workspace")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files under `directory` with this extension.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.expect("a directory's entry can be read").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
    found
}

/// Returns the text of a page, or of the documentation in a source file.
fn documentation(path: &Path) -> String {
    let text = read(path);
    if path.extension().is_some_and(|is| is == "md") {
        return text;
    }
    let comment = |line: &str| {
        let line = line.trim_start();
        let rest = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"))?;
        Some(rest.strip_prefix(' ').unwrap_or(rest).to_owned())
    };
    text.lines().map(|line| comment(line).unwrap_or_default() + "\n").collect()
}

/// Returns the whole programs in `text`: its blocks of Rust that have a `main`.
fn programs(text: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let mut block = None;
    for line in text.lines() {
        match (&mut block, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => block = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => {
                let (language, code) = block.take().unwrap_or_default();
                let is_rust = language.is_empty() || language.starts_with("rust") || language == "no_run";
                if is_rust && code.lines().any(|line| line.starts_with("fn main() -> std::process::ExitCode")) {
                    programs.push(code);
                }
            }
            (Some((_, code)), None) => code.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    programs
}

#[test]
fn programs_of_pages_are_examples() {
    let examples: Vec<String> = files(&root().join("examples"), "rs").iter().map(|path| read(path)).collect();
    let mut pages = files(&root().join("docs"), "md");
    pages.extend(files(&root().join("src"), "rs"));
    pages.push(root().join("README.md"));
    let mut shown = 0;
    for page in pages {
        for program in programs(&documentation(&page)) {
            shown += 1;
            // An example begins with a comment and an empty line.
            let is_shown = |example: &String| example.split_once("\n\n").is_some_and(|(_, code)| code == program);
            assert!(examples.iter().any(is_shown), "{} shows what is not an example:\n{program}", page.display());
        }
    }
    assert!(shown >= 9, "only {shown} programs were found");
}
