//! The last failed call of each thread.

use crate::codes::{Code, Failure, Outcome};
use std::{
    cell::RefCell,
    ffi::{CString, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
};

#[derive(Default)]
struct Last {
    text: CString,
    torn_by: i32,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs a call, and records its failure.
#[inline]
pub(crate) fn call(act: impl FnOnce() -> Outcome<Code>) -> i32 {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(code)) => code as i32,
        Ok(Err(failure)) => keep(failure),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
            keep(Failure::new(Code::Defect, format!("a defect of the library: {}", said.unwrap_or("a panic"))))
        }
    }
}

#[cold]
fn keep(failure: Failure) -> i32 {
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST.with_borrow_mut(|last| *last = Last { text, torn_by: failure.torn_by });
    failure.code as i32
}

/// Returns the text of the last failure. It is valid until the thread's next failure or its end.
pub(crate) fn text() -> *const c_char {
    LAST.with_borrow(|last| last.text.as_ptr())
}

/// Returns the process that tore the data, if the last failure reported one.
pub(crate) fn torn_by() -> i32 {
    LAST.with_borrow(|last| last.torn_by)
}
