//! System contexts as handles, and message ids: routines of the reference implementation that its
//! documentation does not describe.
//!
//! Over MPI, a handle is derived from a communicator. Here, handle and system context are the same
//! integer, because no other library could have made one. Messages have no ids that two libraries
//! would have to share, so 0 stands for all of them.

use crate::{
    arguments::Integers,
    boundary::{Call, NO_CONTEXT},
    int::Int,
};

/// The single message id that the library would use.
const ID: Int = 0;
const LAST_ID: Int = 32_767;

pub(crate) fn to_system(routine: &'static str, handle: Int) -> Int {
    Call { routine, context: NO_CONTEXT }.run(|library| library.contexts.system(handle).map(|_| handle))
}

pub(crate) fn from_system(routine: &'static str, system: Int) -> Int {
    to_system(routine, system)
}

pub(crate) fn free(routine: &'static str, handle: Int) {
    let call = Call { routine, context: NO_CONTEXT };
    call.run(|library| {
        if !library.contexts.free_system(handle) {
            call.warn(library, format_args!("there is no system context {handle} to free"));
        }
        Ok(())
    });
}

pub(crate) fn message_id(_: &'static str, _: Int, _: Int, _: Int) -> Int {
    ID
}

pub(crate) fn scope_id(_: &'static str, _: Int, _: u8) -> Int {
    ID
}

pub(crate) fn scope_id_from(_: &'static str, _: Int, _: u8, _: Int, _: Int) -> Int {
    ID
}

/// Returns the first and the last message id. Programs that reserve some ids for themselves get the
/// range that every MPI has.
pub(crate) fn message_ids(value: Integers) {
    value.set(0, ID);
    value.set(1, LAST_ID);
}
