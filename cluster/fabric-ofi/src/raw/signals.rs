//! Signal handlers of libraries that libfabric loads.
//!
//! `libinfinipath` and `libpsm2` install handlers in constructors, when the program is loaded: with
//! libfabric 1.17 of Debian 12 for SIGINT, SIGILL, SIGABRT, SIGBUS, SIGSEGV and SIGTERM. Later
//! calls of libfabric install none (verified for `fi_getinfo`). Such a handler writes a backtrace
//! to a file and ends the process with code 1; `signal-hook` calls it before the actions of the
//! program.
//!
//! The invariant of the unsafe blocks: system calls receive valid addresses of local values, and
//! the address of a handler is compared, not called.

use std::{ffi::CStr, mem::MaybeUninit, path::Path, ptr};

/// Prefixes of the file names of these libraries.
const LIBRARIES: [&str; 3] = ["libinfinipath.", "libpsm2.", "libpsm_infinipath."];

/// Restores the default action of signals that one of the libraries handles. Returns the signals.
///
/// The only purpose of these handlers is this file, for which no use is known. Rust does not
/// install its own handler for stack overflows if another one is already installed; this is not
/// corrected.
pub(crate) fn release() -> Vec<i32> {
    let standard = 1..32;
    standard.filter(|signal| handler_of(*signal).is_some_and(is_of_library) && set_default(*signal)).collect()
}

/// Returns the address of a signal's handler, if it has one.
fn handler_of(signal: i32) -> Option<usize> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the address is that of a value of the right type; nothing is changed.
    let known = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } == 0;
    // SAFETY: the call has filled it; zeros are also a valid value.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    (known && handler != libc::SIG_DFL && handler != libc::SIG_IGN).then_some(handler)
}

/// Returns whether this address is in one of the libraries.
fn is_of_library(address: usize) -> bool {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let address = ptr::without_provenance(address);
    // SAFETY: any address may be queried; the other one is that of a value of the right type.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return false;
    }
    // SAFETY: the call has filled it; zeros are also a valid value.
    let name = unsafe { info.assume_init() }.dli_fname;
    // SAFETY: it is null, or the name of a file that stays loaded, as its handler is installed.
    let name = unsafe { name.as_ref() }.map(|first| unsafe { CStr::from_ptr(first) }.to_string_lossy().into_owned());
    let file = name.as_deref().and_then(|name| Path::new(name).file_name()?.to_str());
    file.is_some_and(|file| LIBRARIES.iter().any(|library| file.starts_with(library)))
}

fn set_default(signal: i32) -> bool {
    // SAFETY: zeros are a value: the default effect, no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = libc::SIG_DFL;
    // SAFETY: the address is that of a value of the right type.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_library_handles_a_signal_afterwards() {
        let standard = || (1..32).filter(|signal| handler_of(*signal).is_some_and(is_of_library));
        let before: Vec<i32> = standard().collect();
        println!("handled by libraries of libfabric's: {before:?}");
        assert_eq!(release(), before);
        assert_eq!(standard().count() + release().len(), 0);
        assert!(handler_of(libc::SIGTERM).is_none() && handler_of(libc::SIGINT).is_none());
    }

    #[test]
    fn handlers_of_others_stay() {
        extern "C" fn own(_: i32) {}
        assert!(!is_of_library(own as *const () as usize) && !is_of_library(1));
    }
}
