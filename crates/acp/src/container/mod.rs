//! Containers in global memory: plain words in the ranks' heaps, which any rank may operate on.

mod finish;
mod heap;
mod lock;
mod moving;
mod sequence;

pub use sequence::{Arrangement, Circular, Cursor, Deque, Linear, Sequence, Vector};
