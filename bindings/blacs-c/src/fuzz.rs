//! The entry point for fuzzing: arguments as C passes them. Errors, which otherwise end the
//! process, unwind to it. The module is public only with `--cfg fuzzing`, for the target in
//! `fuzz/`, whose seeds a test replays.

#![allow(unreachable_pub)]

mod array;
mod call;

use crate::library::{Library, enter};
use call::Caller;
use onesided::sim::{JobError, shm::Threads};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Bytes of a call: the routine, the precision, and ten arguments.
pub(crate) const CALL: usize = 12;
/// The maximum number of calls in an input.
const MOST: usize = 12;
/// Bytes that the process can register.
const SEGMENT: usize = 8 << 20;

/// The panic payload with which [`crate::boundary`] unwinds instead of ending the process.
struct Ended {
    /// The text of the abort that would have ended the other processes.
    text: Option<String>,
}

/// Unwinds to the entry point, where an error would otherwise end the process.
pub(crate) fn ended(text: Option<&str>) -> ! {
    resume_unwind(Box::new(Ended { text: text.map(str::to_owned) }))
}

/// Makes calls on a grid of one process, up to the first that would end the process.
///
/// # Panics
/// If the library has a defect, or accesses memory outside the arguments.
pub fn arguments(bytes: &[u8]) {
    let calls = bytes.as_chunks::<CALL>().0;
    let job = Threads::new(1).segment_bytes(SEGMENT).run_with(|fabric| {
        *enter() = Library::of(fabric);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let mut caller = Caller::begin();
            calls.iter().take(MOST).for_each(|call| caller.call(call));
        }));
        *enter() = Library::default();
        match ran.map_err(|panic| panic.downcast::<Ended>()) {
            Ok(()) => {}
            Err(Ok(ended)) => {
                let text = ended.text.unwrap_or_default();
                assert!(!text.contains("a defect of the library"), "{text}");
            }
            Err(Err(panic)) => resume_unwind(panic),
        }
        Ok(())
    });
    assert!(matches!(job, Ok(_) | Err(JobError::Aborted { .. })), "{job:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_conformance::seeds::replay;

    #[test]
    fn seeds_of_the_fuzz_target_are_withstood() {
        replay(env!("CARGO_MANIFEST_DIR"), "blacs_arguments", arguments);
    }
}
