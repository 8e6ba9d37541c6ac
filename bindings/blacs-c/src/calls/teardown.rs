//! The routines that end contexts, the library, or all processes.

use super::awaited::WaitingFor as _;
use crate::{
    boundary::{Call, NO_CONTEXT},
    int::{Int, narrow},
    library::enter,
};
use onesided::block_on_short;

pub(crate) fn freebuff(routine: &'static str, context: Int, wait: Int) {
    Call { routine, context }.run(|library| {
        let freed = block_on_short(library.contexts.open(context)?.free_buffers(wait != 0));
        freed.waiting_for(|| "other processes to receive what this one has sent".to_owned())
    });
}

pub(crate) fn gridexit(routine: &'static str, context: Int) {
    Call { routine, context }.run(|library| {
        let exited = block_on_short(library.contexts.take(context)?.exit());
        exited.waiting_for(|| "the other processes to exit the grid".to_owned())
    });
}

/// Ends the library; with `go_on`, only its contexts.
pub(crate) fn exit(routine: &'static str, go_on: Int) {
    Call { routine, context: NO_CONTEXT }.run(|library| {
        let ended = if go_on == 0 { library.end() } else { library.exit_contexts() };
        ended.waiting_for(|| "the other processes to call blacs_exit".to_owned())
    });
}

pub(crate) fn abort(routine: &'static str, context: Int, error: Int) -> ! {
    let text = format!("BLACS ABORT with error number {error}");
    Call { routine, context }.abort(enter(), &text, narrow(error).unwrap_or(1))
}
