//! What a library with a C interface needs: a provider chosen by a string at run time, calls that
//! wait by `block_on`, arrays of the caller, and errors as codes. The C program calls nothing but
//! `extern "C"` functions.

#![allow(unsafe_code)]

use super::started;
use std::process::ExitCode;

/// The library, as its header would have it. All of a rank's calls come from one thread.
mod library {
    use onesided::{Deps, Fabric, FabricError, Group, Provider, Rank, Region, block_on};
    use std::{
        cell::{Cell, RefCell},
        ffi::{CStr, c_char, c_int},
        slice,
    };

    /// The handle that `c_open` gives.
    pub(crate) struct OpenRank {
        fabric: Fabric,
        world: Group,
        memory: Region,
    }

    pub(crate) const OK: c_int = 0;
    pub(crate) const REFUSED: c_int = 1;
    pub(crate) const LOST: c_int = 2;

    thread_local! {
        /// The message of the last call that failed.
        static SAID: RefCell<String> = const { RefCell::new(String::new()) };
        /// The rank that this thread is, where ranks are threads; the program that starts them sets
        /// it.
        static HERE: Cell<Option<Fabric>> = const { Cell::new(None) };
    }

    pub(crate) fn this_thread_is(fabric: Fabric) {
        HERE.set(Some(fabric));
    }

    fn code<T>(result: Result<T, FabricError>, out: impl FnOnce(T)) -> c_int {
        match result {
            Ok(value) => {
                out(value);
                OK
            }
            Err(error) => {
                SAID.set(error.to_string());
                if matches!(error, FabricError::PeerLost { .. }) { LOST } else { REFUSED }
            }
        }
    }

    fn chosen(name: &str) -> Result<Fabric, FabricError> {
        let provider = name.parse().map_err(|wrong: onesided::UnknownProvider| {
            FabricError::setting("the fabric", format!("`{name}`: {wrong}"))
        })?;
        match (provider, HERE.take()) {
            (Provider::Threads, Some(fabric)) => Ok(fabric),
            _ => provider.attach(),
        }
    }

    /// # Safety
    /// `name` is a C string; `rank` is writable.
    pub(crate) unsafe extern "C" fn c_open(name: *const c_char, bytes: usize, rank: *mut *mut OpenRank) -> c_int {
        // SAFETY: as the caller promises.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let opened = chosen(&name).and_then(|fabric| {
            block_on(async {
                let (world, memory) = (Group::world(&fabric).await?, fabric.alloc_symmetric(bytes).await?);
                Ok((world, memory))
            })
            .map(|(world, memory)| OpenRank { fabric, world, memory })
        });
        // SAFETY: as the caller promises.
        code(opened, |opened| unsafe { rank.write(Box::into_raw(Box::new(opened))) })
    }

    /// # Safety
    /// `rank` comes from `c_open`, and is used by no call after this.
    pub(crate) unsafe extern "C" fn c_close(rank: *mut OpenRank) -> c_int {
        // SAFETY: as the caller promises.
        let mut rank = unsafe { Box::from_raw(rank) };
        code(block_on(rank.world.barrier()), drop)
    }

    /// # Safety
    /// `rank` comes from `c_open` and open.
    pub(crate) unsafe extern "C" fn c_rank(rank: *const OpenRank) -> c_int {
        // SAFETY: as the caller promises.
        unsafe { &*rank }.fabric.rank().number() as c_int
    }

    /// # Safety
    /// `rank` comes from `c_open` and open; `values` has `count` elements.
    pub(crate) unsafe extern "C" fn c_put(
        rank: *mut OpenRank,
        to: u32,
        at: usize,
        values: *const f64,
        count: usize,
    ) -> c_int {
        // SAFETY: as the caller promises.
        let (rank, values) = unsafe { (&*rank, slice::from_raw_parts(values, count)) };
        let put = block_on(async {
            let to = Rank::new(to);
            let span = rank.memory.span_of(&rank.fabric, to, at, count)?;
            rank.fabric.put_slice(&span, values).await?;
            rank.fabric.flush(to).await
        });
        code(put, drop)
    }

    /// # Safety
    /// `rank` comes from `c_open` and open; `values` has room for `count` elements.
    pub(crate) unsafe extern "C" fn c_get(
        rank: *mut OpenRank,
        from: u32,
        at: usize,
        values: *mut f64,
        count: usize,
    ) -> c_int {
        // SAFETY: as the caller promises.
        let (rank, values) = unsafe { (&*rank, slice::from_raw_parts_mut(values, count)) };
        let got = block_on(async {
            let span = rank.memory.span_of(&rank.fabric, Rank::new(from), at, count)?;
            rank.fabric.get_slice(&span, values).await
        });
        code(got, drop)
    }

    /// # Safety
    /// `rank` comes from `c_open` and open; `before` is writable.
    pub(crate) unsafe extern "C" fn c_add(rank: *mut OpenRank, to: u32, at: usize, by: u64, before: *mut u64) -> c_int {
        // SAFETY: as the caller promises.
        let rank = unsafe { &*rank };
        let added = block_on(async {
            let word = rank.memory.word_of(&rank.fabric, Rank::new(to), at)?;
            rank.fabric.fetch_add(&word, by).await
        });
        // SAFETY: as the caller promises.
        code(added, |old| unsafe { before.write(old) })
    }

    /// Waits until the rank's own word is at least `least`.
    ///
    /// # Safety
    /// `rank` comes from `c_open` and open.
    pub(crate) unsafe extern "C" fn c_wait(rank: *mut OpenRank, at: usize, least: u64) -> c_int {
        // SAFETY: as the caller promises.
        let rank = unsafe { &*rank };
        let waited = block_on(async {
            let word = rank.memory.word::<u64>(&rank.fabric, at)?;
            rank.fabric.wait_until(&word, Deps::All, |value| value >= least).await
        });
        code(waited, drop)
    }

    /// Copies the message of the last call that failed on this thread: at most `room` bytes,
    /// zero-terminated.
    ///
    /// # Safety
    /// `text` has `room` bytes, at least 1.
    pub(crate) unsafe extern "C" fn c_said(text: *mut c_char, room: usize) {
        SAID.with_borrow(|said| {
            let said = &said.as_bytes()[..said.len().min(room - 1)];
            // SAFETY: that many bytes and one more are the caller's, as it promises.
            unsafe {
                text.copy_from_nonoverlapping(said.as_ptr().cast(), said.len());
                text.add(said.len()).write(0);
            }
        });
    }
}

/// The C program.
mod caller {
    use super::library::*;
    use std::{
        ffi::{CStr, CString, c_int},
        ptr::null_mut,
    };

    const FLOATS: usize = 1000;

    fn said() -> String {
        let mut text = [0; 200];
        // SAFETY: `text` has that many bytes.
        unsafe {
            c_said(text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        }
    }

    /// Computes a sum, and passes arrays around a ring of `ranks` ranks, the last of which may end
    /// in the middle of it.
    pub(crate) fn ring(fabric: &str, ranks: u32, last_dies: bool) -> c_int {
        let (name, mut rank) = (CString::new(fabric).expect("a name"), null_mut());
        // SAFETY: all pointers are to locals that outlive the call and are as long as stated;
        // `rank` is open until it is closed.
        unsafe {
            let opened = c_open(name.as_ptr(), 16 + 8 * FLOATS, &mut rank);
            if opened != OK {
                println!("not opened: {}", said());
                return opened;
            }
            let me = c_rank(rank) as u32;
            if last_dies && me == ranks - 1 {
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
                println!("{me}: {}", said());
                return failed;
            }
            assert_eq!(got, sent, "what was put into {next}");
            if !last_dies {
                assert_eq!(c_get(rank, ranks, 16, got.as_mut_ptr(), FLOATS), REFUSED);
                assert!(said().contains(&format!("rank {ranks}")), "{}", said());
                assert_eq!(c_put(rank, next, 24, sent.as_ptr(), FLOATS), REFUSED, "one too far");
            }
            let closed = c_close(rank);
            if closed != OK {
                println!("{me}: {}", said());
            }
            closed
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) fn processes_pass_arrays_on() {
    let (output, told) = started(&["c-launch", "ring"]);
    assert!(output.status.success(), "{told}");
}

#[cfg(target_os = "linux")]
pub(super) fn a_lost_peer_is_a_code() {
    let (output, told) = started(&["c-launch", "dying"]);
    assert!(!output.status.success() && told.contains(": rank 2 was lost"), "{told}");
    let codes = format!("ranks 0 and 1: exited with {}", library::LOST);
    assert!(told.contains(&codes), "{told}");
}

pub(super) fn threads_pass_arrays_on() {
    let ranks = onesided::sim::shm::Threads::new(3);
    let codes = ranks.run_with(|fabric| {
        library::this_thread_is(fabric);
        Ok(caller::ring("threads", 3, false))
    });
    assert_eq!(codes.expect("all end"), [library::OK; 3]);
}

pub(super) fn what_is_no_fabric_for_it_is_told() {
    for (fabric, why) in [
        ("shm", "this process is no rank"),
        ("virt", "ranks in virtual time"),
        ("threads", "ranks that are threads"),
        ("tofu", "`tofu`: it is none of shm, threads, virt"),
    ] {
        let (output, told) = started(&["c-program", fabric]);
        assert!(output.status.code() == Some(library::REFUSED) && told.contains(why), "{fabric}: {told}");
    }
}

/// Runs the C program: a rank of `ring` or of `dying` that a launcher has started, or one that
/// opens the fabric named `what` alone.
pub(super) fn program(what: &str) -> ExitCode {
    ExitCode::from(match what {
        "ring" => caller::ring("shm", 3, false),
        "dying" => caller::ring("shm", 3, true),
        fabric => caller::ring(fabric, 1, false),
    } as u8)
}

/// Starts three ranks of the C program.
#[cfg(target_os = "linux")]
pub(super) fn launch(what: &str) -> ExitCode {
    let own = std::env::current_exe().expect("own path");
    let code = onesided::sim::shm::Launcher::new(3).command(own, ["c-program", what]).run();
    ExitCode::from(code.expect("the ranks start").clamp(0, 255) as u8)
}
