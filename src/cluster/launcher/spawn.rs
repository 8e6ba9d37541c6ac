//! Threads of a launcher and of its agents.

use std::{io, thread::Builder};

/// Stack size in bytes of these threads, which only pass bytes on.
const STACK: usize = 256 << 10;

/// Starts a thread. The error names it: a system may refuse one for lack of memory or because of a
/// limit.
pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let refused = |cause: io::Error| io::Error::new(cause.kind(), format!("no thread for {name}: {cause}"));
    Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop).map_err(refused)
}
