//! The middle layer: channels, work spaces, the heap and containers, over the crate `acp`.
//!
//! | module | responsibility |
//! |---|---|
//! | `call`, `types`, `handles`, `state` | the entry of calls, C's types, handles of this process and their objects |
//! | `channel`, `segments` | channels, segmented buffers |
//! | `heap`, `work_space` | `acp_malloc` and `acp_free`, work spaces |
//! | `sequence`; `vector`, `deque` | what both have in common, and their exported names |
//! | `list`, `order` | lists; sorting and merging them |
//! | `tables`; `set`, `multiset`, `map` | what all three have in common, and the rest |

mod call;
mod channel;
mod deque;
mod handles;
mod heap;
mod list;
mod map;
mod multiset;
mod order;
mod segments;
mod sequence;
mod set;
mod state;
mod tables;
mod types;
mod vector;
mod work_space;

use crate::{error::Result, library::Library};
pub(crate) use state::State;

/// Starts the containers, which the crate `acp` has done.
pub(crate) fn start_data(_library: &'static Library) -> Result<()> {
    Ok(())
}

/// Starts the channels, which the crate `acp` has done.
pub(crate) fn start_channels(_library: &'static Library) -> Result<()> {
    Ok(())
}

/// Ends requests and segmented buffers, before `acp_finalize` or `acp_reset` ends the basic layer.
pub(crate) fn end_channels(library: &'static Library) -> Result<()> {
    library.middle.end_channels();
    Ok(())
}

/// Ends work spaces.
pub(crate) fn end_data(library: &'static Library) -> Result<()> {
    library.middle.end_data();
    Ok(())
}
