//! Tokens: the posters' handles of operations in flight.
//!
//! The completion time of a put is known when it is posted, and is its token. All other operations
//! have a slot, which records their completion.

use super::{
    super::{core::Core, memory::Loc, provider::Me},
    GENERATIONS, Op, Opcode,
};
use rdma_fabric::{
    FabricError, Result,
    provider::{Sink, Token},
};
use std::{
    cell::RefMut,
    mem,
    num::NonZeroU64,
    task::{Context, Poll},
};

/// The bits that distinguish the kinds of tokens. The other bits are a slot and its generation, or
/// a time.
const KIND: u64 = 3 << 62;
/// The operation completes at a time that is kept in a slot.
const FAR: u64 = 0;
/// The slot records the completion of the operation.
const SLOT: u64 = 1 << 62;
/// The operation completes at the time in the token.
const TIME: u64 = 2 << 62;
/// The operation completes at the time in the token, at which the rank will be woken.
const TIMED: u64 = 3 << 62;

const _: () = assert!(GENERATIONS <= 1 << 30);

/// Makes the token of the operation in a slot.
#[inline]
pub(crate) fn of(slot: u32, generation: u32) -> Token {
    token(SLOT, u64::from(generation) << 32 | u64::from(slot))
}

/// Creates the token of an operation that completes at a given time.
pub(crate) fn at(core: &mut Core, rank: u32, time: u64) -> Token {
    if time & KIND == 0 { token(TIME, time) } else { far(core, rank, time) }
}

/// Creates the token of a time beyond 53 days, for which it reserves a slot that no event ever
/// concerns.
#[cold]
fn far(core: &mut Core, rank: u32, time: u64) -> Token {
    let mut op = Op::new(Opcode::Nop, rank, Loc::default());
    op.at = time;
    let slot = core.operations.insert(op);
    token(FAR, u64::from(core.operations.get(slot).generation) << 32 | (u64::from(slot) + 1))
}

/// Returns the slot of a token with the kind [`FAR`], and its operation; `None` once the slot was
/// released.
fn far_op(core: &mut Core, bits: u64) -> Option<(u32, &mut Op)> {
    let (slot, generation) = ((bits as u32).wrapping_sub(1), (bits >> 32) as u32);
    // No posted operation completes that late.
    let op = core.operations.of(slot, generation).filter(|op| op.opcode == Opcode::Nop && op.at & KIND != 0)?;
    Some((slot, op))
}

fn token(kind: u64, value: u64) -> Token {
    Token(NonZeroU64::new(kind | value).expect("it has a kind, or a slot"))
}

/// The record of the completion of a token's operation.
enum Ending {
    /// The operation completes at this time.
    At(u64),
    /// This slot, in this generation, records the completion.
    In(u32, u32),
}

fn ending(core: &mut Core, token: Token) -> Ending {
    let bits = token.0.get();
    match bits & KIND {
        SLOT => Ending::In(bits as u32, ((bits & !KIND) >> 32) as u32),
        FAR => Ending::At(far_op(core, bits).map_or(0, |(_, op)| op.at)),
        _ => Ending::At(bits & !KIND),
    }
}

impl Me {
    /// Takes the result of a completed operation. If the waker is a no-op, no task waits, so the
    /// operation completes when [`Me::test`] returns true.
    #[inline]
    pub(crate) fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let lane = self.lane();
        let mut core = self.world.core();
        match ending(&mut core, *token) {
            Ending::At(time) => {
                let now = if cx.waker().data().is_null() { core.now_of(lane) } else { core.clock.now() };
                if now >= time {
                    core.forget(*token);
                    return Poll::Ready(Ok(0));
                }
                // A timer belongs to the lane that has set it, and the token may have been passed
                // to another lane.
                if core.sets_timer(token) || !core.ranks.helpers_of(core.ranks.rank_of(lane)).is_empty() {
                    core.clock.wake_at(lane, time);
                }
            }
            Ending::In(slot, generation) => match core.operations.of(slot, generation) {
                None => return Poll::Ready(Err(FabricError::Unsupported { feature: &"a handle of a finished job" })),
                Some(op) => {
                    op.awaited = true;
                    if op.done {
                        return Poll::Ready(take(core, slot, into));
                    }
                    let poster = op.poster;
                    if poster != lane {
                        core.ranks.await_operation(lane, slot);
                    }
                }
            },
        }
        drop(core);
        self.world.listen(lane, cx);
        Poll::Pending
    }

    /// Returns whether an operation has completed at the rank's own time.
    pub(crate) fn test(&self, token: &Token) -> bool {
        let lane = self.lane();
        let mut core = self.world.core();
        match ending(&mut core, *token) {
            Ending::At(time) => core.now_of(lane) >= time,
            Ending::In(slot, generation) => core.operations.of(slot, generation).is_none_or(|op| op.done),
        }
    }

    pub(crate) fn forget(&self, token: Token) {
        self.world.core().forget(token);
    }
}

impl Core {
    /// Marks that the rank will be woken at a token's time. Returns whether this was not marked
    /// before.
    fn sets_timer(&mut self, token: &mut Token) -> bool {
        let bits = token.0.get();
        if bits & KIND == FAR {
            return far_op(self, bits).is_some_and(|(_, op)| !mem::replace(&mut op.awaited, true));
        }
        *token = Token(token.0 | TIMED);
        bits & KIND == TIME
    }

    fn forget(&mut self, token: Token) {
        let bits = token.0.get();
        if bits & KIND == FAR {
            if let Some((slot, _)) = far_op(self, bits) {
                self.operations.retire(slot);
            }
        } else if let Ending::In(slot, generation) = ending(self, token)
            && let Some(op) = self.operations.of(slot, generation)
        {
            if op.done {
                self.operations.retire(slot);
            } else {
                op.detached = true;
            }
        }
    }
}

/// Takes the result of a completed operation: the word's old value, and the bytes read.
#[inline]
fn take(mut core: RefMut<'_, Core>, slot: u32, into: Sink<'_>) -> Result<u64> {
    let op = core.operations.get_mut(slot);
    let (word, attachment) = (op.a, op.attachment.take());
    core.operations.retire(slot);
    drop(core);
    let short = word.to_ne_bytes();
    let bytes = match attachment.as_deref() {
        None => &short[..],
        Some(attachment) => match &attachment.error {
            Some(error) => return Err(error.clone()),
            None if attachment.bytes.is_empty() => &short[..],
            None => &attachment.bytes,
        },
    };
    if let Sink::Bytes(into) = into {
        // A sink whose length has changed in the meantime receives as many bytes as fit.
        let len = into.len().min(bytes.len());
        into[..len].copy_from_slice(&bytes[..len]);
    }
    Ok(word)
}
