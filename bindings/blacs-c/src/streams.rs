//! Standard output of C programs. The output that a rank has printed must survive if the rank is
//! killed.
//!
//! # Safety
//! The declarations are those of the C library's headers. Its functions lock the stream, so that other
//! threads may write to it at the same time.

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

    /// The buffer size of an unbuffered stream.
    const UNBUFFERED: usize = 1;

    /// Flushes the program's output, and switches to line buffering, as on a terminal. When a job is
    /// aborted, the launcher ends a rank that is busy elsewhere by a signal, after which nothing can
    /// be written. (Fortran's runtime does this itself.)
    pub(crate) fn keep_lines() {
        // SAFETY: the stream exists as long as the process. An unbuffered stream retains no output,
        // and remains as the program has set it.
        unsafe {
            if __fbufsize(stdout) != UNBUFFERED {
                setlinebuf(stdout);
                // After the change: glibc lets single characters fill the buffer as before until it
                // has been empty once.
                fflush(stdout);
            }
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use of_c::keep_lines;

/// On other systems, jobs have one rank.
#[cfg(not(target_os = "linux"))]
pub(crate) fn keep_lines() {}
