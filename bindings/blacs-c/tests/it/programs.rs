//! The programs in `tests/programs`, which test any BLACS library; each describes itself in its head
//! comment.

use crate::tools::{Ended, Linked, alone, compiled, job, scalapack_is_there};
use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

const ROUTINES: &[&str] = &["routines.c", "check.c", "matrix.c", "point.c", "broadcast.c", "combine.c"];
const FORTRAN_ROUTINES: &[&str] = &["matrices.f90", "calls.f90", "routines.f90"];
const SEMANTICS: &[&str] =
    &["semantics.c", "semantics_grids.c", "semantics_messages.c", "semantics_combines.c", "matrix.c", "check.c"];

/// The required reaction of a library to each user error: case, outcome, text.
const MISTAKES: &str = include_str!("../programs/errors.txt");

/// The number of simultaneous jobs with user errors; they spend most of their time waiting for
/// their processes to end.
const AT_ONCE: usize = 4;

fn program(sources: &[&str]) -> Option<PathBuf> {
    let sources: Vec<_> = sources.iter().map(|source| format!("tests/programs/{source}")).collect();
    compiled(&sources.iter().map(String::as_str).collect::<Vec<_>>(), Linked::Shared)
}

/// Checks that four processes report no failure.
fn finds_nothing(program: &Path) {
    let ended = job(4, program, &[]);
    assert!(ended.code() == Some(0) && !ended.out.contains("FAIL"), "{ended}");
}

pub(crate) fn every_name_can_be_linked() {
    let Some(names) = program(&["names.c"]) else { return };
    let ended = alone(&names, &[]);
    assert!(ended.code() == Some(0) && ended.out.contains("156"), "{ended}");
}

pub(crate) fn every_routine_agrees_with_loops() {
    for sources in [ROUTINES, FORTRAN_ROUTINES] {
        let Some(routines) = program(sources) else { continue };
        finds_nothing(&routines);
    }
}

pub(crate) fn scalapack_finds_known_results() {
    if !scalapack_is_there() {
        return;
    }
    let Some(scalapack) = compiled(&["tests/programs/scalapack.f90"], Linked::BeforeScalapack) else { return };
    for ranks in [1, 4] {
        let ended = job(ranks, &scalapack, &[]);
        assert!(ended.code() == Some(0) && ended.out.contains("pdsyev"), "{ended}");
    }
}

pub(crate) fn grids_messages_and_combines_keep_their_promises() {
    let Some(semantics) = program(SEMANTICS) else { return };
    finds_nothing(&semantics);
}

pub(crate) fn every_error_has_its_outcome() {
    let Some(errors) = program(&["errors.c"]) else { return };
    let mistakes = MISTAKES.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mistakes: Vec<&str> = mistakes.collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while let Some(mistake) = mistakes.get(next.fetch_add(1, Relaxed)) {
                    let case = mistake.split_whitespace().next().expect("a case");
                    let ended = job(4, &errors, &[case]);
                    if !is_as_told(mistake, &ended) {
                        wrong.lock().expect("no panic").push(format!("{mistake}: {ended}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {} mistakes:\n{}", wrong.len(), mistakes.len(), wrong.join("\n"));
}

/// The number of calls with generated arguments.
const CALLS: u32 = 500;

pub(crate) fn wrong_arguments_are_errors_at_most() {
    let Some(arguments) = compiled(&["tests/own/arguments.c"], Linked::Shared) else { return };
    let ended = alone(&arguments, &["1", &CALLS.to_string()]);
    let told = ended.out.starts_with(&format!("arguments: {CALLS} calls, "));
    assert!(told && ended.code() == Some(0), "{ended}");
}

/// Returns whether a job has ended as required by a line of [`MISTAKES`].
fn is_as_told(mistake: &str, ended: &Ended) -> bool {
    let mut words = mistake.split_whitespace().skip(1);
    let outcome = words.next().expect("an outcome");
    let text = words.collect::<Vec<_>>().join(" ");
    let survived = ended.out.lines().any(|line| line == "survived");
    let said = text == "-" || ended.err.contains(&text);
    let crashed = ["SIGSEGV", "SIGBUS"].iter().any(|signal| ended.err.contains(signal));
    let as_told = match outcome.split_once(':') {
        Some((_, code)) => !survived && said && ended.code() == code.parse().ok(),
        None if outcome == "abort" => !survived && said && ended.code() != Some(0) && !crashed,
        None if outcome == "warning" => survived && said && ended.code() == Some(0),
        None => !crashed,
    };
    as_told && !ended.out.contains("FAIL")
}
