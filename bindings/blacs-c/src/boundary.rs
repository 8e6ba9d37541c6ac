//! The entry point of calls from other languages, and the end of the job after an error.

use crate::{
    error::{CallError, Result},
    int::{Int, int},
    library::{Library, enter},
};
use core::fmt;
use rdma_fabric::{FabricError, provider::Turn};
use std::{
    any::Any,
    io::{self, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The exit code of a job that an error ended.
const ERROR: i32 = 1;

/// The context of calls that have none.
pub(crate) const NO_CONTEXT: Int = -1;

/// The identity of a call, for messages about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The routine's name, without the affixes of C or Fortran.
    pub(crate) routine: &'static str,
    pub(crate) context: Int,
}

impl Call {
    /// Executes a call: runs `act` with the library, which it locks for this time. If `act` fails or
    /// panics, the job ends.
    #[inline]
    pub(crate) fn run<T>(self, act: impl FnOnce(&mut Library) -> Result<T>) -> T {
        let mut library = enter();
        match catch_unwind(AssertUnwindSafe(|| act(&mut library))) {
            Ok(Ok(value)) => value,
            Ok(Err(error)) => self.failed(library, &error),
            Err(panic) => self.panicked(library, &*panic),
        }
    }

    /// Prints a warning; the call continues.
    #[cold]
    pub(crate) fn warn(self, library: &Library, text: impl fmt::Display) {
        say(&self.message(library, "WARNING", &text));
    }

    /// Ends the job with the message `text`.
    #[cold]
    pub(crate) fn abort(self, library: Turn<'_, Library>, text: &str, code: i32) -> ! {
        say(&format!("{text}\n{}\n", self.origin(&library)));
        end(library, Some(text), code)
    }

    #[cold]
    #[inline(never)]
    fn failed(self, library: Turn<'_, Library>, error: &CallError) -> ! {
        let aborts = match error.of_fabric() {
            // The rank that ended the job has reported the reason.
            Some(FabricError::Aborted { code, .. }) => end(library, None, *code),
            // The launcher reports more: how the other ranks ended, or what all ranks are waiting for.
            Some(FabricError::PeerLost { .. } | FabricError::Deadlock { .. }) => false,
            _ => !matches!(error, CallError::Deadlock { .. }),
        };
        let mut text = error.to_string();
        if let Some(&FabricError::PeerLost { rank }) = error.of_fabric() {
            let origin = library.origin(rank);
            if origin != rank {
                text = format!("{origin} was lost, and {rank}, for which this one waits, has given up because of it");
            }
            library.gives_up_for(origin);
        }
        if let Some(FabricError::OutOfMemory(_)) = error.of_fabric() {
            text += "; `onesided run --segment-bytes` gives more, or ONESIDED_SEGMENT_BYTES to a single process";
        }
        say(&self.message(&library, "ERROR", &text));
        let summary = format!("BLACS ERROR '{text}' in routine '{}'", self.routine);
        end(library, aborts.then_some(&*summary), ERROR)
    }

    #[cold]
    #[inline(never)]
    fn panicked(self, library: Turn<'_, Library>, panic: &(dyn Any + Send)) -> ! {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        let text = format!("a defect of the library: {}", said.unwrap_or("a panic"));
        say(&self.message(&library, "ERROR", &text));
        end(library, Some(&text), ERROR)
    }

    fn message(self, library: &Library, kind: &str, text: &dyn fmt::Display) -> String {
        format!("BLACS {kind} '{text}'\n{}, in routine '{}'.\n", self.origin(library), self.routine)
    }

    /// Describes the origin of a call.
    fn origin(self, library: &Library) -> String {
        let (row, column) = library.contexts.grid(self.context).map_or((-1, -1), |grid| {
            let (row, column) = grid.me();
            (int(row), int(column))
        });
        let number = library.rank().map_or(-1, |fabric| int(fabric.rank().index()));
        format!("from {{{row},{column}}}, pnum={number}, Contxt={}", self.context)
    }
}

/// Ends this process. If there is a text, it aborts the job with this text, which ends all other
/// processes.
fn end(library: Turn<'_, Library>, text: Option<&str>, code: i32) -> ! {
    let fabric = library.rank().cloned();
    // Exit handlers of the process may call the library.
    drop(library);
    // A process's exit code keeps only eight bits.
    let code = if code & 0xff == 0 { ERROR } else { code & 0xff };
    if let (Some(fabric), Some(text)) = (fabric, text) {
        let Err(_) = fabric.abort(text, code);
    }
    #[cfg(any(test, fuzzing))]
    crate::fuzz::ended(text);
    #[cfg(not(any(test, fuzzing)))]
    std::process::exit(code)
}

/// Writes a message in one call, so that messages of several processes do not interleave. A failure
/// is ignored, because there is nowhere to report it.
fn say(message: &str) {
    // A fuzzer would print thousands of messages per second.
    if cfg!(fuzzing) {
        return;
    }
    let _ = io::stderr().lock().write_all(message.as_bytes());
}
