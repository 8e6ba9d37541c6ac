//! Standard output of programs in C, of which a rank that is killed must leave what it has printed.
//!
//! # Safety
//! What is declared here is the C library's, as its headers have it. Its functions lock the stream,
//! so that other threads may write to it meanwhile.

#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
mod of_c {
    use core::ffi::{c_int, c_void};

    // SAFETY: as in `stdio.h` and `stdio_ext.h` of glibc and musl. A program never assigns `stdout`.
    unsafe extern "C" {
        static stdout: *mut c_void;
        fn setlinebuf(stream: *mut c_void);
        fn fflush(stream: *mut c_void) -> c_int;
        fn __fbufsize(stream: *mut c_void) -> usize;
    }

    /// The size of the buffer of a stream that is not buffered.
    const UNBUFFERED: usize = 1;

    /// Writes out what the program has printed, and from now on each line when it is complete, as it
    /// is on a terminal. The launcher ends a rank of an aborted job that is busy elsewhere by a
    /// signal, after which nothing can be written. (Fortran's runtime does this itself.)
    pub(crate) fn keep_lines() {
        // SAFETY: the stream exists as long as the process; an unbuffered one keeps nothing, and
        // stays as the program has set it.
        unsafe {
            if __fbufsize(stdout) != UNBUFFERED {
                setlinebuf(stdout);
                // After the change: glibc lets single characters fill the buffer as before until it
                // is empty once.
                fflush(stdout);
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use of_c::keep_lines;

/// Elsewhere, jobs have one rank.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_lines() {}
