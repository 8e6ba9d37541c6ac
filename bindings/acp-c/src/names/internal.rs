//! The names that a middle layer imports from a basic layer and that a basic layer imports from a
//! middle layer: ACP's own interface between `libacpbl` and `libacpml`.

#![allow(unsafe_code)]
#![allow(non_upper_case_globals, reason = "the names are ACP's")]

use crate::{boundary::call, middle, options::Options};
use core::{
    cell::UnsafeCell,
    ffi::{c_char, c_int},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The size of a text in the option record: C's `BUFSIZ`.
const TEXT: usize = 8192;

/// An option with a number, and its limits.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Number {
    value: u64,
    min: u64,
    max: u64,
}

impl Number {
    const fn new(value: u64) -> Self {
        Number { value, min: 0, max: u64::MAX }
    }
}

/// The option record, as ACP's layers share it.
#[repr(C)]
pub(crate) struct OptionRecord {
    port_file: [c_char; TEXT],
    rank_offset: Number,
    rank: Number,
    ranks: Number,
    local_port: Number,
    remote_host: [c_char; TEXT],
    remote_address: u32,
    remote_port: Number,
    task: Number,
    starter_bytes: Number,
    channel_bytes: Number,
    heap_bytes: Number,
    hook_small: Number,
    hook_large: Number,
    hook_huge: Number,
    hook_low: Number,
    hook_high: Number,
    ethernet_speed: Number,
}

/// The option record as a variable of C.
#[repr(transparent)]
pub(crate) struct Shared(UnsafeCell<OptionRecord>);

// SAFETY: written by `publish` only, while the middle layer, which reads it, is not running.
unsafe impl Sync for Shared {}

const NOTHING: Number = Number::new(0);

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
pub(crate) static iacpbl_option: Shared = Shared(UnsafeCell::new(OptionRecord {
    port_file: [0; TEXT],
    rank_offset: NOTHING,
    rank: NOTHING,
    ranks: NOTHING,
    local_port: NOTHING,
    remote_host: [0; TEXT],
    remote_address: 0,
    remote_port: NOTHING,
    task: NOTHING,
    starter_bytes: NOTHING,
    channel_bytes: NOTHING,
    heap_bytes: NOTHING,
    hook_small: NOTHING,
    hook_large: NOTHING,
    hook_huge: NOTHING,
    hook_low: NOTHING,
    hook_high: NOTHING,
    ethernet_speed: NOTHING,
}));

// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) static iacp_starter_memory_size_dl: AtomicUsize = AtomicUsize::new(0);
// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) static iacp_starter_memory_size_cl: AtomicUsize = AtomicUsize::new(0);

/// Gives the options to the middle layer. The caller has begun a change of the library's phase, and
/// the middle layer does not run.
pub(crate) fn publish(options: &Options) {
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    iacp_starter_memory_size_dl.store(size(options.heap_bytes), Relaxed);
    iacp_starter_memory_size_cl.store(size(options.channel_bytes), Relaxed);
    let record = OptionRecord {
        port_file: characters(&options.port_file),
        rank_offset: Number::new(options.rank_offset),
        rank: Number::new(options.rank.unwrap_or(0)),
        ranks: Number::new(options.ranks),
        local_port: Number::new(options.local_port),
        remote_host: characters(&options.remote_host),
        remote_address: 0,
        remote_port: Number::new(options.remote_port),
        task: Number::new(options.task),
        starter_bytes: Number::new(options.starter_bytes),
        channel_bytes: Number::new(options.channel_bytes),
        heap_bytes: Number::new(options.heap_bytes),
        hook_small: Number::new(options.hook_small),
        hook_large: Number::new(options.hook_large),
        hook_huge: Number::new(options.hook_huge),
        hook_low: Number::new(options.hook_low),
        hook_high: Number::new(options.hook_high),
        ethernet_speed: Number::new(options.ethernet_speed),
    };
    // SAFETY: no other thread accesses it now, by the caller's promise.
    unsafe { iacpbl_option.0.get().write(record) };
}

/// Returns a text with a zero at its end; a longer one is cut.
fn characters(text: &str) -> [c_char; TEXT] {
    let mut characters = [0; TEXT];
    for (to, from) in characters.iter_mut().zip(text.bytes().take(TEXT - 1)) {
        *to = c_char::from_ne_bytes([from]);
    }
    characters
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn iacp_query_starter_ga_dl(rank: c_int) -> u64 {
    call("iacp_query_starter_ga_dl", 0, |library| Ok(library.acp.heap_memory(library.rank(rank)?)?.to_bits()))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn iacp_query_starter_ga_cl(rank: c_int) -> u64 {
    call("iacp_query_starter_ga_cl", 0, |library| Ok(library.acp.channel_memory(library.rank(rank)?)?.to_bits()))
}

// ----- the entry points of this library's middle layer -----

/// Exports entry points with a return code.
macro_rules! entries {
    ($($name:ident = $function:path;)*) => { $(
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name() -> c_int {
            call(stringify!($name), -1, |library| $function(library).map(|()| 0))
        }
    )* };
}

entries! {
    iacp_init_dl = middle::start_data;
    iacp_init_cl = middle::start_channels;
    iacp_finalize_cl = middle::end_channels;
    iacp_finalize_dl = middle::end_data;
}

// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn iacp_abort_cl() {}

// SAFETY: as above.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn iacp_abort_dl() {}
