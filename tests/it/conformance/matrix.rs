//! The capability matrix of `docs/evidence/capabilities.md`: the reported and the observed
//! properties of each provider.

use crate::{
    harness::{Bare, Crossbars, Processes, Threads, Virtual},
    page::Part,
};
use fabric_conformance::capabilities::{column, table};

const PART: Part = Part { page: "docs/evidence/capabilities.md", name: "capabilities" };
const COMMAND: &str = "cargo xtask matrix";
const TEST: &str = "conformance::matrix::is_what_was_found";

/// Ranks that are processes also run this test, up to their own job.
#[test]
fn is_what_was_found() {
    let columns = [
        ("shm, processes", column::<Processes>(TEST)),
        ("shm, threads", column::<Bare<Threads>>(TEST)),
        ("virt, FX100", column::<Bare<Virtual>>(TEST)),
        ("virt, SR8000", column::<Bare<Crossbars>>(TEST)),
    ];
    PART.settle(&table(&columns), COMMAND);
}
