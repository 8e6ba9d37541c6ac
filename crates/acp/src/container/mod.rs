//! Containers in global memory: plain words in the ranks' heaps, which any rank may operate on.

mod crc;
mod finish;
mod fronts;
mod heap;
mod iter;
mod list;
mod lock;
mod map;
mod multimap;
mod multiset;
mod set;
mod stored;
mod table;

pub use iter::Iter;
pub use list::{List, ListIter, ListPosition};
pub use map::Map;
pub use multimap::Multimap;
pub use multiset::Multiset;
pub use set::Set;
pub use stored::Stored;
pub use table::{Entry, Position, TableRef};
