//! Thousands of grids at once (`tests/own/grids.c`), on four processes.

use crate::tools::{Linked, compiled, long_job};

/// The number of communicators of an MPI process.
const GRIDS: &str = "4094";

fn runs_well(way: &str) {
    let Some(program) = compiled(&["tests/own/grids.c"], Linked::Shared) else { return };
    let ended = long_job(4, &program, &[way, GRIDS]);
    assert!(ended.code() == Some(0) && ended.out.starts_with("grids: well, 4094"), "{way}: {ended}");
    print!("    {way}: {}", ended.out);
}

pub(crate) fn thousands_of_grids_are_alive() {
    runs_well("alive");
}

pub(crate) fn thousands_of_grids_are_used_in_all_scopes() {
    runs_well("used");
}
