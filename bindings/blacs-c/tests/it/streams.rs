//! Programs whose standard descriptors are closed, or whose output must survive their abrupt end.

use crate::tools::{Linked, compiled, job};
use std::path::Path;

/// Shell redirections that close descriptors. One closed descriptor is enough: the next file that
/// the library opens gets its number.
const CLOSED: [&str; 5] = [">&-", "<&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"];

pub(crate) fn closed_descriptors_stay_the_programs_own() {
    let Some(program) = compiled(&["tests/own/streams.c"], Linked::Shared) else { return };
    for closed in CLOSED {
        let command = format!("exec {} {closed}", program.display());
        let ended = job(2, Path::new("sh"), &["-c", &command]);
        assert_eq!(ended.code(), Some(0), "{closed}: {ended}");
    }
}
