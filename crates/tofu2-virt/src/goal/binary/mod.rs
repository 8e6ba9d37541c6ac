//! The binary format of GOAL, as LogGOPSim reads it: little-endian, nothing aligned.
//!
//! | part | content |
//! |---|---|
//! | head | [`MAGIC`] (u64), number of ranks (u32), highest CPU and interface in use (u8 each) |
//! | for each rank | start and end of its part (u64 each), counted from behind the magic number |
//! | parts | numbers of operations and of those that wait for nothing (u32 each), the latter's indices (u32 each), operations, edges (u32 each) |
//! | operation | number of dependencies (u32), kind (u8: 1 send, 2 receive, 3 calc), peer (u32), size (u64), tag (u32), CPU and interface (u8 each), number and first of the edges from its end, number and first of those from its start (u32 each) |
//!
//! An edge is the index of an operation in its rank. All bits set mean any rank or any tag.

mod read;
mod write;

/// The first number of a file.
const MAGIC: u64 = 4223;
/// The first number of a file that LogGOPSim has changed while it ran (`--save-mem`).
const USED: u64 = 2342;
/// The lengths of the head, of the two positions of a rank, of an operation.
const HEAD: u64 = 14;
const POSITIONS: u64 = 16;
const OPERATION: usize = 39;

const SEND: u8 = 1;
const RECV: u8 = 2;
const CALC: u8 = 3;

/// Returns whether a file that starts with these bytes is meant to be binary.
pub(super) fn is_binary(start: &[u8]) -> bool {
    start.first_chunk().is_some_and(|start| [MAGIC, USED].contains(&u64::from_le_bytes(*start)))
}
