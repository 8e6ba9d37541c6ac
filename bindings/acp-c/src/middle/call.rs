//! The entry of the functions of the middle layer.

use crate::boundary;
use acp::Acp;
use onesided::block_on_short;

pub(super) use crate::error::{CallError, Result};

/// Executes a call of `function`: runs `body` on this thread. Returns `failed` if the library is not
/// initialized or `body` fails.
pub(super) fn call<T>(function: &'static str, failed: T, body: impl AsyncFnOnce(&Acp) -> Result<T>) -> T {
    boundary::call(function, failed, |library| block_on_short(body(&library.acp)))
}

/// As [`call`], for functions without a result: the loss of a rank ends the process.
pub(super) fn run(function: &'static str, body: impl AsyncFnOnce(&Acp) -> Result<()>) {
    boundary::call_or_end(function, (), |library| block_on_short(body(&library.acp)));
}
