//! The requirements of a library with a C interface: a provider chosen by a string at run time,
//! calls that wait by `block_on`, arrays of the caller, and errors as codes. The C program calls
//! nothing but `extern "C"` functions.

#![allow(unsafe_code)]

mod library;
#[cfg(target_os = "linux")]
pub(super) mod streams;

use crate::run;
use caller::LastRank;
use std::process::ExitCode;

/// The C program.
mod caller {
    use super::library::*;
    use std::{
        ffi::{CStr, CString, c_int},
        ptr::null_mut,
    };

    const FLOATS: usize = 1000;

    /// The end of the last rank of a ring.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum LastRank {
        /// Like the others.
        Closes,
        /// By a signal, in the middle of it.
        Dies,
        /// By `exit(0)`, after all of it except `c_close`.
        Exits,
    }

    fn error_message() -> String {
        let mut text = [0; 200];
        // SAFETY: `text` has that many bytes.
        unsafe {
            c_error_message(text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        }
    }

    /// Computes a sum, and passes arrays around a ring of `ranks` ranks.
    pub(crate) fn ring(fabric: &str, ranks: u32, last: LastRank) -> c_int {
        let (name, mut rank) = (CString::new(fabric).expect("a name"), null_mut());
        // SAFETY: all pointers are to locals that outlive the call and are as long as stated;
        // `rank` is open until it is closed.
        unsafe {
            let opened = c_open(name.as_ptr(), 16 + 8 * FLOATS, &mut rank);
            if opened != OK {
                println!("not opened: {}", error_message());
                return opened;
            }
            let me = c_rank(rank) as u32;
            if last == LastRank::Dies && me == ranks - 1 {
                std::process::abort();
            }
            let next = (me + 1) % ranks;
            let sent: Vec<f64> = (0..FLOATS).map(|at| f64::from(me) + at as f64 / 8.0).collect();
            let (mut before, mut got) = (0, vec![0.0; FLOATS]);
            let steps = [
                c_put(rank, next, 16, sent.as_ptr(), FLOATS),
                c_add(rank, next, 8, 1, &mut before),
                c_add(rank, 0, 0, u64::from(me), &mut before),
                c_wait(rank, 8, 1),
                c_get(rank, next, 16, got.as_mut_ptr(), FLOATS),
            ];
            if let Some(failed) = steps.into_iter().find(|code| *code != OK) {
                println!("{me}: {}", error_message());
                return failed;
            }
            assert_eq!(got, sent, "the values that were put into rank {next}");
            if last != LastRank::Dies {
                assert_eq!(c_get(rank, ranks, 16, got.as_mut_ptr(), FLOATS), REFUSED);
                assert!(error_message().contains(&format!("rank {ranks}")), "{}", error_message());
                assert_eq!(c_put(rank, next, 24, sent.as_ptr(), FLOATS), REFUSED, "one too far");
            }
            if last == LastRank::Exits && me == ranks - 1 {
                std::process::exit(0);
            }
            let closed = c_close(rank);
            if closed != OK {
                println!("{me}: {}", error_message());
            }
            // The others can't synchronise with the rank that has exited, which is not a failure.
            if last == LastRank::Exits { OK } else { closed }
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) fn processes_pass_arrays_around_a_ring() {
    let ended = run(&["c-launch", "ring"]);
    assert!(ended.status.success(), "{ended:?}");
}

#[cfg(target_os = "linux")]
pub(super) fn a_lost_peer_is_an_error_code() {
    let ended = run(&["c-launch", "dying"]);
    assert!(!ended.status.success() && ended.printed().contains(": rank 2 was lost"), "{ended:?}");
    let codes = format!("ranks 0 and 1: exited with {}", library::LOST);
    assert!(ended.printed().contains(&codes), "{ended:?}");
}

/// The others can't synchronise with it any more, but have not lost it.
#[cfg(target_os = "linux")]
pub(super) fn a_rank_that_exits_without_closing_has_left() {
    let ended = run(&["c-launch", "exiting"]);
    let text = ": rank 2 has finished without taking part";
    assert!(ended.status.success() && ended.printed().contains(text), "{ended:?}");
}

/// A C program that was not launched is a job of one rank.
pub(super) fn a_program_alone_passes_arrays_to_itself() {
    let ended = run(&["c-program", "shm"]);
    assert!(ended.status.success(), "{ended:?}");
}

pub(super) fn threads_pass_arrays_around_a_ring() {
    let ranks = onesided::sim::shm::Threads::new(3);
    let codes = ranks.run_with(|fabric| {
        library::this_thread_is(fabric);
        Ok(caller::ring("threads", 3, LastRank::Closes))
    });
    assert_eq!(codes.expect("all end"), [library::OK; 3]);
}

/// A rank of another launcher's job would be the only one of its own.
#[cfg(target_os = "linux")]
pub(super) fn ranks_of_other_launchers_are_refused() {
    let mut command = process_tests::child::this_program(["c-program", "shm"]);
    command.envs([("PMI_RANK", "2"), ("PMI_SIZE", "3"), ("PMI_FD", "9")]);
    let ended = crate::run_command(command);
    assert_eq!(ended.code(), Some(library::REFUSED), "{ended:?}");
    for part in ["PMI-1 started this process as rank 2 of 3", "`onesided run -n 3 -- PROGRAM`"] {
        assert!(ended.out.contains(part), "{part}: {ended:?}");
    }
}

pub(super) fn unusable_fabrics_are_refused_with_the_reason() {
    for (fabric, why) in [
        ("virt", "ranks in virtual time"),
        ("threads", "ranks that are threads"),
        ("tofu", "`tofu`: it is not one of shm, threads, cluster, virt"),
    ] {
        let ended = run(&["c-program", fabric]);
        assert!(ended.code() == Some(library::REFUSED) && ended.printed().contains(why), "{fabric}: {ended:?}");
    }
}

/// Runs the C program: a rank of `ring`, `dying`, `exiting` or `closed-...` that a launcher has
/// started, or one that opens the fabric named `kind` alone.
pub(super) fn program(kind: &str) -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(closed) = kind.strip_prefix("closed-") {
        return streams::program(closed);
    }
    ExitCode::from(match kind {
        "ring" => caller::ring("shm", 3, LastRank::Closes),
        "dying" => caller::ring("shm", 3, LastRank::Dies),
        "exiting" => caller::ring("shm", 3, LastRank::Exits),
        fabric => caller::ring(fabric, 1, LastRank::Closes),
    } as u8)
}

/// Starts three ranks of the C program.
#[cfg(target_os = "linux")]
pub(super) fn launch(kind: &str) -> ExitCode {
    if let Some(closed) = kind.strip_prefix("closed-") {
        return streams::launch(closed);
    }
    let own = std::env::current_exe().expect("own path");
    let code = onesided::sim::shm::Launcher::new(3).command(own, ["c-program", kind]).run();
    ExitCode::from(code.expect("the ranks start").clamp(0, 255) as u8)
}
