//! Fabric memory for programs: messages from and to it need no copies.

use crate::boundary::{Call, NO_CONTEXT};
use core::ptr::null_mut;

/// Returns the address of `bytes` bytes; null if memory runs out.
pub(crate) fn alloc(routine: &'static str, bytes: usize) -> *mut u8 {
    let call = Call { routine, context: NO_CONTEXT };
    call.run(|library| {
        let fabric = library.attached()?.clone();
        Ok(library.allocations.add(&fabric, bytes).unwrap_or_else(|refused| {
            call.warn(library, format_args!("{bytes} bytes can't be allocated: {refused}"));
            null_mut()
        }))
    })
}

pub(crate) fn free(routine: &'static str, start: usize) {
    let call = Call { routine, context: NO_CONTEXT };
    call.run(|library| {
        if start != 0 && !library.allocations.remove(start) {
            call.warn(library, format_args!("{start:#x} does not come from blacs_fmpl_alloc, or was freed before"));
        }
        Ok(())
    });
}
