//! The objects of the middle layer that this process has created.

use super::{
    call::Result,
    channel::Pending,
    handles::{Handle, Handles},
    segments::Side,
};
use crate::library;
use acp::WorkSpace;
use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The middle layer's state of this process. Its lock is not held while a call waits.
#[derive(Default)]
pub(crate) struct State(Mutex<Objects>);

/// Requests, segmented buffers and work spaces.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) requests: Handles<Pending>,
    pub(super) segments: Handles<Side>,
    pub(super) spaces: Handles<Arc<WorkSpace>>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

/// Uses the objects of a running library.
pub(super) fn with<Out>(used: impl FnOnce(&mut Objects) -> Result<Out>) -> Result<Out> {
    used(&mut library::running()?.middle.0.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Adds an object; returns its handle.
pub(super) fn add<T>(object: T, to: impl FnOnce(&mut Objects) -> &mut Handles<T>) -> Result<Handle> {
    with(|objects| Ok(to(objects).add(object)))
}

impl State {
    /// Drops requests and segmented buffers. Their handles stay unknown.
    pub(super) fn end_channels(&self) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = (objects.requests.take_all(), objects.segments.take_all());
        drop(objects);
        drop(dropped);
    }

    /// Drops work spaces.
    pub(super) fn end_data(&self) {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = objects.spaces.take_all();
        drop(objects);
        drop(dropped);
    }
}
