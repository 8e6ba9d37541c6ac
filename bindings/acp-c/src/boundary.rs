//! The entry of calls from C, and their failure values.

use crate::{
    error::{CallError, Result},
    library::{self, Library},
};
use core::fmt;
use std::{
    any::Any,
    env,
    io::{self, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    process,
    sync::OnceLock,
};

/// The environment variable that makes the library write the reason of each failure to standard
/// error, if it is neither empty nor `0`.
const VERBOSE: &str = "ONESIDED_VERBOSE";

/// The exit code of a process that an error ended.
const ERROR: i32 = 1;

/// Executes a call of `function`: runs `act` with the library. Returns `failed` if the library is not
/// initialized or `act` fails. A panic ends the job.
#[inline]
pub(crate) fn call<T>(function: &'static str, failed: T, act: impl FnOnce(&'static Library) -> Result<T>) -> T {
    call_anytime(function, failed, || act(library::running()?))
}

/// As [`call`], for functions that may be called before `acp_init`.
#[inline]
pub(crate) fn call_anytime<T>(function: &'static str, failed: T, act: impl FnOnce() -> Result<T>) -> T {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            report(function, &error);
            failed
        }
        Err(panic) => panicked(function, &*panic),
    }
}

/// As [`call`], for functions without a result. If a rank is lost they end the job, since their caller
/// would continue with data that never arrived.
#[inline]
pub(crate) fn call_or_end<T>(function: &'static str, failed: T, act: impl FnOnce(&'static Library) -> Result<T>) -> T {
    call(function, failed, |library| act(library).map_err(|error| end_if_of_job(function, error)))
}

#[cold]
fn end_if_of_job(function: &'static str, error: CallError) -> CallError {
    if !error.is_of_job() {
        return error;
    }
    say(&message(function, &error));
    // The launcher, or the watch of the other processes, reports the loss itself.
    process::exit(ERROR)
}

/// Writes the reason of a failure to standard error, if the user has asked for it.
#[cold]
#[inline(never)]
pub(crate) fn report(function: &'static str, error: &dyn fmt::Display) {
    static IS_VERBOSE: OnceLock<bool> = OnceLock::new();
    let is_verbose = || env::var_os(VERBOSE).is_some_and(|value| !value.is_empty() && value != "0");
    if *IS_VERBOSE.get_or_init(is_verbose) {
        say(&message(function, error));
    }
}

/// Ends the job with `text`, which is written to standard error.
#[cold]
pub(crate) fn end(text: &str) -> ! {
    say(text);
    if let Some(library) = library::started() {
        let Err(_) = library.acp.abort(text.trim_end());
    }
    process::exit(ERROR)
}

#[cold]
#[inline(never)]
fn panicked(function: &'static str, panic: &(dyn Any + Send)) -> ! {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
    end(&message(function, &format_args!("a defect of the library: {}", said.unwrap_or("a panic"))))
}

fn message(function: &str, error: &dyn fmt::Display) -> String {
    match library::started() {
        Some(library) => format!("acp: rank {}: {function}: {error}\n", library.acp.rank().number()),
        None => format!("acp: {function}: {error}\n"),
    }
}

/// Writes a message in one call, so that messages of several processes do not interleave. A failure
/// is ignored, because there is nowhere to report it.
pub(crate) fn say(message: &str) {
    let _ = io::stderr().lock().write_all(message.as_bytes());
}
