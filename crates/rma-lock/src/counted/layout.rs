//! The lock's words at its home, by their offsets in bytes.

use crate::queue::HOME_BYTES;

#[derive(Clone, Copy)]
pub(super) enum Home {
    Count = 0,
    Readers = 8,
    Tail = 16,
    Head = 24,
}
const _: () = assert!(Home::Head as u64 + 8 <= HOME_BYTES);
