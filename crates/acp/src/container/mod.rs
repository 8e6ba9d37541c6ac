//! Containers in global memory: plain words in the ranks' heaps, which any rank may operate on.

mod finish;
mod heap;
mod lock;
mod moving;
mod sequence;
mod work_space;

pub(crate) use finish::Unawaited;
pub use sequence::{Arrangement, Circular, Cursor, Deque, Linear, Sequence, Vector};
pub use work_space::{Striping, WorkSpace};
