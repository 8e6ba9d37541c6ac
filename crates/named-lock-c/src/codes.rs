//! The codes that functions return, and the failures behind them.

use core::fmt;
use named_lock::Error;

/// What a function returns. The numbers are those of `onesided_lock.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    Ok = 0,
    /// Somebody else holds the lock.
    Busy = 1,
    TimedOut = 2,
    /// What the lock protects may be half-written.
    Torn = 3,
    Name = 4,
    Foreign = 5,
    Full = 6,
    Forked = 7,
    /// The handle is none, or was closed.
    NoLock = 8,
    /// The calling thread does not hold the lock, or not as the call demands.
    NotHeld = 9,
    /// A lock that is held was to be closed.
    Held = 10,
    System = 11,
    Protocol = 12,
    /// A null pointer, or a text that is no UTF-8.
    Argument = 13,
    /// A panic in the library.
    Defect = 14,
    /// The lock's file is not at its path any more.
    Removed = 15,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) text: String,
    /// The process that tore what the lock protects, if that is the failure.
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
            // `Lock`, and what may come later.
            _ => Code::Protocol,
        };
        let torn_by = if let Error::Torn { by, .. } = error { number(by) } else { 0 };
        Failure { torn_by, ..Failure::new(code, error) }
    }
}

/// Returns a process's number as programs get it: -1 if it is not known.
pub(crate) fn number(process: u32) -> i32 {
    i32::try_from(process).ok().filter(|&process| process > 0).unwrap_or(-1)
}

/// The outcome of a call.
pub(crate) type Outcome<T> = Result<T, Failure>;
