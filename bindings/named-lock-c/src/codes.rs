//! The codes that functions return, and the corresponding failures.

use core::fmt;
use named_lock::Error;

/// The return code of a function. The numbers are those of `onesided_lock.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    Ok = 0,
    /// Another thread or process holds the lock.
    Busy = 1,
    TimedOut = 2,
    /// The data that the lock protects may be half-written.
    Torn = 3,
    Name = 4,
    Foreign = 5,
    Full = 6,
    Forked = 7,
    /// The number is not a handle, or its lock was closed.
    NoLock = 8,
    /// The calling thread does not hold the lock, or not in the mode that the call requires.
    NotHeld = 9,
    /// An attempt to close a lock that is held.
    Held = 10,
    System = 11,
    Protocol = 12,
    /// A null pointer, or a text that is not UTF-8.
    Argument = 13,
    /// A panic in the library.
    Defect = 14,
    /// The lock's file is no longer at its path.
    Removed = 15,
}

/// The failure of a call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) text: String,
    /// The process that tore the data, if that is the failure; otherwise 0.
    pub(crate) torn_by: i32,
}

impl Failure {
    pub(crate) fn new(code: Code, text: impl fmt::Display) -> Self {
        Failure { code, text: text.to_string(), torn_by: 0 }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Name { .. } => Code::Name,
            Error::Foreign { .. } => Code::Foreign,
            Error::System { .. } | Error::Probe { .. } => Code::System,
            Error::Removed { .. } | Error::Replaced { .. } => Code::Removed,
            Error::Torn { .. } => Code::Torn,
            Error::TimedOut { .. } => Code::TimedOut,
            Error::Full { .. } => Code::Full,
            Error::Forked { .. } => Code::Forked,
            // `Lock`, and variants that may be added later.
            _ => Code::Protocol,
        };
        let torn_by = if let Error::Torn { by, .. } = error { number(by) } else { 0 };
        Failure { torn_by, ..Failure::new(code, error) }
    }
}

/// Returns a process ID in the form that programs receive: -1 if it is unknown.
pub(crate) fn number(process: u32) -> i32 {
    i32::try_from(process).ok().filter(|&process| process > 0).unwrap_or(-1)
}

/// The result of a call.
pub(crate) type Outcome<T> = Result<T, Failure>;
