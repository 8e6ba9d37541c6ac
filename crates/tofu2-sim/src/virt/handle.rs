//! Handles of posted operations.

use super::world::World;
use rdma_fabric::{FabricError, OpHandle, Result};
use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

/// The handle of an operation in virtual time.
///
/// Dropping it leaves the operation alone. [`OpHandle::wait`] can't block virtual time: it is
/// [`FabricError::Unsupported`] unless the operation is complete.
#[must_use = "a handle tells when the operation is complete"]
pub struct Handle<T> {
    world: Rc<World>,
    rank: u32,
    state: State<T>,
}

/// Writes an operation's result into what the handle carries: its word or its bytes.
pub(super) type Patch<T> = fn(&mut T, u64, &[u8]);

enum State<T> {
    /// Complete at a time that is known already.
    At { time: u64, value: T, timer: bool },
    /// Complete when the slot says so.
    Slot { slot: u32, generation: u32, value: T, patch: Patch<T> },
    /// Result taken.
    Over,
}

impl<T> Handle<T> {
    pub(super) fn at(world: Rc<World>, rank: u32, time: u64, value: T) -> Self {
        Handle { world, rank, state: State::At { time, value, timer: false } }
    }

    pub(super) fn of(world: Rc<World>, rank: u32, slot: (u32, u32), value: T, patch: Patch<T>) -> Self {
        Handle { world, rank, state: State::Slot { slot: slot.0, generation: slot.1, value, patch } }
    }

    fn is_complete(&self) -> bool {
        let mut core = self.world.core();
        match self.state {
            State::At { time, .. } => core.now_of(self.rank) >= time,
            State::Slot { slot, generation, .. } => core.slab.of(slot, generation).is_none_or(|op| op.done),
            State::Over => true,
        }
    }

    /// The result of a complete operation.
    #[inline]
    fn finish(&mut self) -> Result<T> {
        match mem::replace(&mut self.state, State::Over) {
            State::At { value, .. } => Ok(value),
            State::Slot { slot, generation, mut value, patch } => {
                let mut core = self.world.core();
                let Some(op) = core.slab.of(slot, generation) else {
                    return Err(FabricError::Unsupported { feature: "a handle of a finished job" });
                };
                let (word, cargo) = (op.a, op.cargo.take());
                core.slab.free(slot);
                drop(core);
                match cargo {
                    None => patch(&mut value, word, &[]),
                    Some(cargo) => match cargo.error {
                        Some(error) => return Err(error),
                        None => patch(&mut value, word, &cargo.bytes),
                    },
                }
                Ok(value)
            }
            State::Over => Err(FabricError::Unsupported { feature: "taking a result twice" }),
        }
    }
}

impl<T: Unpin> Future for Handle<T> {
    type Output = Result<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = self.get_mut();
        let mut core = me.world.core();
        let complete = match &mut me.state {
            State::At { time, timer, .. } => {
                let complete = core.now >= *time;
                if !complete && !mem::replace(timer, true) {
                    core.wake_at(me.rank, *time);
                }
                complete
            }
            State::Slot { slot, generation, .. } => match core.slab.of(*slot, *generation) {
                Some(op) => {
                    op.awaited = true;
                    op.done
                }
                None => true,
            },
            State::Over => true,
        };
        drop(core);
        if complete {
            return Poll::Ready(me.finish());
        }
        me.world.listen(me.rank, cx);
        Poll::Pending
    }
}

impl<T: Unpin + 'static> OpHandle<T> for Handle<T> {
    fn test(&mut self) -> bool {
        self.is_complete()
    }

    fn wait(mut self) -> Result<T> {
        if self.is_complete() {
            self.finish()
        } else {
            Err(FabricError::Unsupported { feature: "blocking in virtual time" })
        }
    }
}

impl<T> Drop for Handle<T> {
    #[inline]
    fn drop(&mut self) {
        if let State::Slot { slot, generation, .. } = self.state {
            let mut core = self.world.core();
            if let Some(op) = core.slab.of(slot, generation) {
                if op.done {
                    core.slab.free(slot);
                } else {
                    op.detached = true;
                }
            }
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle of rank {}: ", self.rank)?;
        match &self.state {
            State::At { time, .. } => write!(f, "complete at {}", rdma_fabric::Time::from_picos(*time)),
            State::Slot { slot, generation, .. } => write!(f, "operation {slot}.{generation}"),
            State::Over => f.write_str("result taken"),
        }
    }
}
