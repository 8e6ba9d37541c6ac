//! Containers in global memory: plain words in the ranks' heaps, which any rank may operate on.

mod copy;
mod crc;
mod finish;
mod heap;
mod iter;
mod list;
mod lock;
mod map;
mod mapped;
mod multimap;
mod multiset;
mod sequence;
mod set;
mod stored;
mod table;
mod table_api;
mod work_space;

pub(crate) use finish::Unawaited;
pub use iter::Iter;
pub use list::{List, ListElement, ListIter, ListPosition};
pub use map::Map;
pub use multimap::Multimap;
pub use multiset::Multiset;
pub use sequence::{Arrangement, Circular, Cursor, Deque, Linear, Sequence, Vector};
pub use set::Set;
pub use stored::Stored;
pub use table::{Entry, Position, TableRef};
pub use work_space::{Striping, WorkSpace};
