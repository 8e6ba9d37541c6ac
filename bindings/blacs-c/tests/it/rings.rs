//! Programs that end successfully.

use crate::tools::{Linked, alone, compiled, job};
use process_tests::child::Ended;
use std::path::Path;

fn prints(line: &str, ended: &Ended) {
    assert!(ended.code() == Some(0) && ended.out == format!("{line}\n"), "{line}: {ended}");
}

fn goes_around(program: &Path, args: &[&str]) {
    prints("ring: 4 processes", &job(4, program, args));
    prints("ring: 1 processes", &alone(program, args));
}

pub(crate) fn matrices_go_around_in_c() {
    let Some(program) = compiled(&["tests/own/ring.c"], Linked::Shared) else { return };
    for args in [&[][..], &["wide"], &["registered"]] {
        goes_around(&program, args);
    }
}

pub(crate) fn matrices_go_around_in_fortran() {
    let Some(program) = compiled(&["tests/own/ring.f90"], Linked::Shared) else { return };
    goes_around(&program, &[]);
}

pub(crate) fn the_static_library_behaves_alike() {
    for source in ["tests/own/ring.c", "tests/own/ring.f90"] {
        let Some(program) = compiled(&[source], Linked::Static) else { continue };
        goes_around(&program, &[]);
    }
}

pub(crate) fn the_examples_run() {
    if let Some(program) = compiled(&["../../examples/c/pingpong.c"], Linked::Shared) {
        let ended = job(2, &program, &[]);
        assert!(ended.code() == Some(0) && ended.out.lines().count() == 21, "{ended}");
    }
    let Some(program) = compiled(&["../../examples/c/solve.f90"], Linked::Shared) else { return };
    for ended in [job(3, &program, &[]), alone(&program, &[])] {
        assert!(ended.code() == Some(0) && !ended.out.is_empty(), "{ended}");
    }
}

pub(crate) fn threads_call_one_after_the_other() {
    let Some(program) = compiled(&["tests/own/threads.c"], Linked::Shared) else { return };
    prints("threads: 6000", &job(3, &program, &[]));
}

pub(crate) fn registered_memory_comes_and_goes() {
    let Some(program) = compiled(&["tests/own/memory.c"], Linked::Shared) else { return };
    for ended in [job(2, &program, &[]), alone(&program, &[])] {
        prints("memory: well", &ended);
        for text in ["1099511627776 bytes can't be allocated: ", "does not come from blacs_fmpl_alloc"] {
            assert!(ended.err.contains("BLACS WARNING '") && ended.err.contains(text), "{ended}");
        }
    }
}
