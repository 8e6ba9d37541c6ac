//! Where calls of other languages enter, and the end of the job where they can't go on.

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

/// The code of a job that an error ended.
const ERROR: i32 = 1;

/// What calls without a context have as theirs.
pub(crate) const NO_CONTEXT: Int = -1;

/// A call, for messages about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// The routine's name, without what C or Fortran add.
    pub(crate) routine: &'static str,
    pub(crate) context: Int,
}

impl Call {
    /// Carries out a call: `act` with the library, which no other thread uses meanwhile. Where that
    /// fails or panics, the job ends.
    #[inline]
    pub(crate) fn run<T>(self, act: impl FnOnce(&mut Library) -> Result<T>) -> T {
        let mut library = enter();
        match catch_unwind(AssertUnwindSafe(|| act(&mut library))) {
            Ok(Ok(value)) => value,
            Ok(Err(error)) => self.failed(library, &error),
            Err(panic) => self.panicked(library, &*panic),
        }
    }

    /// Tells what is wrong, and goes on.
    #[cold]
    pub(crate) fn warn(self, library: &Library, text: impl fmt::Display) {
        say(&self.message(library, "WARNING", &text));
    }

    /// Ends the job by what `text` says.
    #[cold]
    pub(crate) fn abort(self, library: Turn<'_, Library>, text: &str, code: i32) -> ! {
        say(&format!("{text}\n{}\n", self.origin(&library)));
        end(library, Some(text), code)
    }

    #[cold]
    #[inline(never)]
    fn failed(self, library: Turn<'_, Library>, error: &CallError) -> ! {
        let aborts = match error.of_fabric() {
            // The rank that ended the job has said why.
            Some(FabricError::Aborted { code, .. }) => end(library, None, *code),
            // The launcher knows more: how the others ended, or what all are waiting for.
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

    /// Says where a call comes from.
    fn origin(self, library: &Library) -> String {
        let (row, column) = library.contexts.grid(self.context).map_or((-1, -1), |grid| {
            let (row, column) = grid.me();
            (int(row), int(column))
        });
        let number = library.rank().map_or(-1, |fabric| int(fabric.rank().index()));
        format!("from {{{row},{column}}}, pnum={number}, Contxt={}", self.context)
    }
}

/// Ends this process, and if there is a text, which then is the job's end, all others.
fn end(library: Turn<'_, Library>, text: Option<&str>, code: i32) -> ! {
    let fabric = library.rank().cloned();
    // What runs at the end of the process may call the library.
    drop(library);
    // Of a code, processes keep eight bits.
    let code = if code & 0xff == 0 { ERROR } else { code & 0xff };
    if let (Some(fabric), Some(text)) = (fabric, text) {
        let Err(_) = fabric.abort(text, code);
    }
    #[cfg(any(test, fuzzing))]
    crate::fuzz::ended(text);
    #[cfg(not(any(test, fuzzing)))]
    std::process::exit(code)
}

/// Writes a message at once, so that those of several processes stay whole. There is nowhere to
/// tell if that fails.
fn say(message: &str) {
    // Thousands of calls a second would write it.
    if cfg!(fuzzing) {
        return;
    }
    let _ = io::stderr().lock().write_all(message.as_bytes());
}
