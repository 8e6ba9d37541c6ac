//! The basic layer: programs in `tests/own`, each of which describes itself in its head comment.

use crate::tools::{alone, compiled, job};
use process_tests::programs::Linkage;

pub(crate) fn processes_copy_and_count() {
    let Some(program) = compiled(&["tests/own/first.c"], Linkage::Shared) else { return };
    let ended = job(2, &program, &[]);
    assert!(ended.code() == Some(0) && ended.out.matches("first: well").count() == 2, "{ended}");
    let ended = alone(&program, &[]);
    assert!(ended.code() == Some(0) && ended.out.matches("first: well").count() == 1, "{ended}");
}
