//! The programs in `tests/programs`, which test any BLACS library; each describes itself in its head
//! comment.

use crate::tools::{Linked, alone, compiled, has_scalapack, job};
use process_tests::child::Ended;
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
const ERRORS: &str = include_str!("../programs/errors.txt");

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
    if !has_scalapack() {
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
    let Some(program) = program(&["errors.c"]) else { return };
    let errors = ERRORS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let errors: Vec<&str> = errors.collect();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(|| {
                while let Some(error) = errors.get(next.fetch_add(1, Relaxed)) {
                    let case = error.split_whitespace().next().expect("a case");
                    let ended = job(4, &program, &[case]);
                    if !has_outcome(error, &ended) {
                        wrong.lock().expect("no panic").push(format!("{error}: {ended}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {} errors:\n{}", wrong.len(), errors.len(), wrong.join("\n"));
}

/// The number of calls with generated arguments.
const CALLS: u32 = 500;

pub(crate) fn generated_arguments_cause_errors_at_most() {
    let Some(arguments) = compiled(&["tests/own/arguments.c"], Linked::Shared) else { return };
    let ended = alone(&arguments, &["1", &CALLS.to_string()]);
    let is_complete = ended.out.starts_with(&format!("arguments: {CALLS} calls, "));
    assert!(is_complete && ended.code() == Some(0), "{ended}");
}

/// Returns whether a job has ended as required by a line of [`ERRORS`].
fn has_outcome(error: &str, ended: &Ended) -> bool {
    let mut words = error.split_whitespace().skip(1);
    let outcome = words.next().expect("an outcome");
    let text = words.collect::<Vec<_>>().join(" ");
    let survived = ended.out.lines().any(|line| line == "survived");
    let is_reported = text == "-" || ended.err.contains(&text);
    let crashed = ["SIGSEGV", "SIGBUS"].iter().any(|signal| ended.err.contains(signal));
    let is_expected = match outcome.split_once(':') {
        Some((_, code)) => !survived && is_reported && ended.code() == code.parse().ok(),
        None if outcome == "abort" => !survived && is_reported && ended.code() != Some(0) && !crashed,
        None if outcome == "warning" => survived && is_reported && ended.code() == Some(0),
        None => !crashed,
    };
    is_expected && !ended.out.contains("FAIL")
}
