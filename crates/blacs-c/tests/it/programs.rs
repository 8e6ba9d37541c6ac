//! The programs in `tests/programs`, which test any BLACS library: see what each of them says at
//! its beginning.

use crate::tools::{Linked, alone, compiled, job};
use std::path::Path;

const ROUTINES: &[&str] = &["routines", "check", "matrix", "point", "broadcast", "combine"];
const SEMANTICS: &[&str] = &["semantics", "semantics_grids", "semantics_messages", "semantics_combines"];

/// What a library should do about each mistake: case, outcome, text.
const MISTAKES: &str = include_str!("../programs/errors.txt");

fn program(sources: &[&str]) -> Option<std::path::PathBuf> {
    let sources: Vec<_> = sources.iter().map(|source| format!("tests/programs/{source}.c")).collect();
    compiled(&sources.iter().map(String::as_str).collect::<Vec<_>>(), Linked::Shared)
}

/// Checks that four processes, and each of them, find nothing wrong.
fn finds_nothing(program: &Path, args: &[&str]) {
    let ended = job(4, program, args);
    assert!(ended.code == Some(0) && !ended.out.contains("FAIL"), "{ended}");
}

pub(crate) fn every_name_is_there_to_link_with() {
    let Some(names) = program(&["names"]) else { return };
    let ended = alone(&names, &[]);
    assert!(ended.code == Some(0) && ended.out.contains("156"), "{ended}");
}

pub(crate) fn every_routine_agrees_with_loops() {
    let Some(routines) = program(ROUTINES) else { return };
    finds_nothing(&routines, &[]);
}

pub(crate) fn grids_messages_and_combines_are_as_promised() {
    let Some(semantics) = program(SEMANTICS) else { return };
    finds_nothing(&semantics, &[]);
}

pub(crate) fn every_mistake_has_its_outcome() {
    let Some(errors) = program(&["errors"]) else { return };
    let mistakes = MISTAKES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut wrong = Vec::new();
    for line in mistakes {
        let mut words = line.split_whitespace();
        let (case, outcome) = (words.next().expect("a case"), words.next().expect("an outcome"));
        let text = words.collect::<Vec<_>>().join(" ");
        let ended = job(4, &errors, &[case]);
        let survived = ended.out.lines().any(|line| line == "survived");
        let said = text == "-" || ended.err.contains(&text);
        let crashed = ended.err.contains("SIGSEGV") || ended.err.contains("SIGBUS");
        let as_told = match outcome.split_once(':') {
            Some((_, code)) => !survived && said && ended.code == code.parse().ok(),
            None if outcome == "abort" => !survived && said && ended.code != Some(0) && !crashed,
            None if outcome == "warning" => survived && said && ended.code == Some(0),
            None => !crashed,
        };
        if !as_told || ended.out.contains("FAIL") {
            wrong.push(format!("{line}: {ended}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
