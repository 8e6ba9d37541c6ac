//! The papers' workloads, as programs over any fabric.
//!
//! Elapsed times are picoseconds of the fabric's clock: virtual on the simulator, wall clock elsewhere.

mod lock;
mod stencil;
mod together;

pub use lock::{FetchAdd, reader_pairs, single_fetch_adds};
pub use stencil::{Stencil, Tile, stencil_fence, stencil_lock_all, with_fences, with_lock_all};
pub use together::{Late, Together};
