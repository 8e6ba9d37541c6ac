//! The middle layer: channels, work spaces, the heap and containers, over the crate `acp`.

use crate::{error::Result, library::Library};

/// The middle layer's state of this process.
#[derive(Debug, Default)]
pub(crate) struct State {}

/// Starts the data library of this rank, in `acp_init` and `acp_reset`, before the communication
/// library. The basic layer is running.
pub(crate) fn start_data(library: &'static Library) -> Result<()> {
    let State {} = library.middle;
    Ok(())
}

/// Starts the communication library of this rank.
pub(crate) fn start_channels(_library: &'static Library) -> Result<()> {
    Ok(())
}

/// Ends the communication library of this rank, in `acp_finalize` and `acp_reset`. The basic layer is
/// running, and registrations are alive.
pub(crate) fn end_channels(_library: &'static Library) -> Result<()> {
    Ok(())
}

/// Ends the data library of this rank.
pub(crate) fn end_data(_library: &'static Library) -> Result<()> {
    Ok(())
}
