//! A side of a segmented buffer, and its memory.

#![allow(unsafe_code, reason = "the buffers of the program")]

use crate::middle::{
    call::{CallError, Result},
    handles::Handle,
    state,
};
use acp::{Acp, GlobalAddress, Key, SegmentDestination, SegmentSource};

pub(super) enum Kind {
    Source(SegmentSource),
    /// With the number of segments that were copied to the program's buffer.
    Destination(SegmentDestination, u64),
}

/// Calls a method that both kinds have.
macro_rules! either {
    ($side:expr, $method:ident) => {
        match $side {
            Kind::Source(side) => side.$method(),
            Kind::Destination(side, _) => side.$method(),
        }
    };
}

pub(super) use either;

/// A side, and its memory.
pub(in crate::middle) struct Side {
    pub(super) kind: Kind,
    pub(super) key: Key,
    pub(super) memory: GlobalAddress,
    pub(super) program: *mut u8,
    pub(super) segment_bytes: usize,
    pub(super) segments: u64,
    /// Whether the program has disconnected it.
    pub(super) disconnected: bool,
}

// SAFETY: the pointer is only used in calls, during which the program lends the buffer to the
// library, by whichever thread.
unsafe impl Send for Side {}

pub(super) const DISCONNECTED: CallError = CallError::Argument("a segmented buffer that is not connected");
pub(super) const WRONG_SIDE: CallError = CallError::Argument("the other side of a segmented buffer");

impl Side {
    /// Returns the address of a segment and the program's memory for it.
    pub(super) fn segment(&self, counter: u64) -> Result<(GlobalAddress, *mut u8)> {
        let at = (counter % self.segments) as usize * self.segment_bytes;
        Ok((self.memory.offset_by(at as u64)?, self.program.wrapping_add(at)))
    }

    /// Copies the segments that have arrived to the program's buffer.
    pub(super) async fn look(&mut self, acp: &Acp) -> Result<()> {
        let Kind::Destination(side, done) = &self.kind else { return Ok(()) };
        let (mut copied, tail) = (*done, side.tail()?);
        while copied < tail {
            let (at, to) = self.segment(copied)?;
            // SAFETY: the program has lent as much memory, and does not use the segment, which it has
            // given back or never had.
            acp.read(at, unsafe { core::slice::from_raw_parts_mut(to, self.segment_bytes) }).await?;
            copied += 1;
        }
        if let Kind::Destination(_, done) = &mut self.kind {
            *done = copied;
        }
        Ok(())
    }

    /// Checks that it was connected, and is not disconnected by the program.
    pub(super) fn check(&self) -> Result<()> {
        match !self.disconnected && either!(&self.kind, was_connected)? {
            true => Ok(()),
            false => Err(DISCONNECTED),
        }
    }
}

/// Uses a side, which no other thread can do meanwhile.
pub(super) async fn used<Out>(of: Handle, body: impl AsyncFnOnce(&mut Side) -> Result<Out>) -> Result<Out> {
    let mut side = state::with(|objects| objects.segments.take(of))?;
    let out = body(&mut side).await;
    state::with(|objects| {
        objects.segments.put_back(of, side);
        out
    })
}
