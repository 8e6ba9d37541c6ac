//! Workloads, as programs over any fabric: the papers' own, and [those of the locks' literature](locks).
//!
//! Elapsed times are picoseconds of the fabric's clock: virtual on the simulator, wall clock elsewhere.

mod exchange;
pub mod hashtable;
mod lock;
pub mod locks;
mod stencil;
mod together;
mod waves;

pub use exchange::{Exchange, Kept, exchanges};
pub use lock::{FetchAdd, reader_pairs, single_fetch_adds};
pub use stencil::{Stencil, Tile, stencil_fence, stencil_lock_all, with_fences, with_lock_all};
pub use together::{Late, Together};
pub use waves::{Form, Wave, wave};
