//! Programs whose standard descriptors are closed, or whose output must outlive them.

use crate::tools::{Linked, compiled, job};
use std::path::Path;

/// What a shell appends to close descriptors. One is enough for a library to get its number.
const CLOSED: [&str; 5] = [">&-", "<&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"];

pub(crate) fn closed_descriptors_stay_the_programs_own() {
    let Some(program) = compiled(&["tests/own/streams.c"], Linked::Shared) else { return };
    for closed in CLOSED {
        let command = format!("exec {} {closed}", program.display());
        let ended = job(2, Path::new("sh"), &["-c", &command]);
        assert_eq!(ended.code, Some(0), "{closed}: {ended}");
    }
}
