//! The library, as its header would have it. All of a rank's calls come from one thread.

use onesided::{Backend, Deps, Fabric, FabricError, Group, Rank, Region, block_on};
use std::{
    cell::{Cell, RefCell},
    ffi::{CStr, c_char, c_int},
    slice,
};

/// The handle that `c_open` writes.
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
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
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
            MESSAGE.set(error.to_string());
            if matches!(error, FabricError::PeerLost { .. }) { LOST } else { REFUSED }
        }
    }
}

fn chosen(name: &str) -> Result<Fabric, FabricError> {
    let provider = name
        .parse()
        .map_err(|wrong: onesided::UnknownBackend| FabricError::setting("the fabric", format!("`{name}`: {wrong}")))?;
    match (provider, HERE.take()) {
        (Backend::Threads, Some(fabric)) => Ok(fabric),
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
/// `rank` comes from `c_open` and is open.
pub(crate) unsafe extern "C" fn c_rank(rank: *const OpenRank) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { &*rank }.fabric.rank().number() as c_int
}

/// # Safety
/// `rank` comes from `c_open` and is open; `values` has `count` elements.
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
/// `rank` comes from `c_open` and is open; `values` has room for `count` elements.
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
/// `rank` comes from `c_open` and is open; `before` is writable.
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
/// `rank` comes from `c_open` and is open.
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
pub(crate) unsafe extern "C" fn c_error_message(text: *mut c_char, room: usize) {
    MESSAGE.with_borrow(|message| {
        let message = &message.as_bytes()[..message.len().min(room - 1)];
        // SAFETY: `text` has room for these bytes and one more, as the caller promises.
        unsafe {
            text.copy_from_nonoverlapping(message.as_ptr().cast(), message.len());
            text.add(message.len()).write(0);
        }
    });
}
