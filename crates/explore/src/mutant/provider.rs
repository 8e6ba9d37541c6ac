//! What a mutation makes of calls.

use super::{
    operation::{Operation, Then},
    spoiled::{Spoiled, word_bits},
};
use rdma_fabric::{
    Amo, Fabric, Pact, Refused, Result, forward,
    provider::{BarrierUnit, Goal, Keyless, Leftover, Place, Posted, Provider, Queues, Sink, Slot, Source, Token},
};
use std::{
    future::poll_fn,
    mem::replace,
    task::{Context, Poll},
};

impl Provider for Spoiled {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, ring, try_notice, end_wait, now);

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        let (addr, mutation) = (from.addr(), &self.mutation);
        let waits = !waiting || mutation.waits(addr);
        self.provider().read(from, into, waiting && waits)?;
        if let Some(bits) = word_bits(into) {
            let bits = if waits { mutation.seen(addr, bits) } else { mutation.taken_for(addr, bits) };
            into.copy_from_slice(&bits.to_ne_bytes());
        }
        Ok(())
    }

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()> {
        if let Some(bits) = word_bits(from)
            && self.mutation.late(to.addr(), bits)
        {
            self.held.borrow_mut().push((to.addr(), bits));
            return Ok(());
        }
        self.provider().write(to, from, waited)
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        match from {
            Source::Bytes(bytes) => {
                if let Some(bits) = word_bits(bytes) {
                    return self.put_word(to, bits, notice);
                }
            }
            Source::Place(own) => {
                if self.mutation.holds(to.addr(), to.len()) {
                    self.hold(to, own, notice);
                    return Posted::Over(0);
                }
            }
        }
        self.posted(self.provider().put(to, from, notice), Then::Nothing, Sink::none())
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        match to {
            Sink::Bytes(bytes) => {
                let posted = self.provider().get(from, Sink::Bytes(&mut *bytes));
                self.posted(posted, Then::Got(from.addr()), Sink::Bytes(bytes))
            }
            own => self.posted(self.provider().get(from, own), Then::Nothing, Sink::none()),
        }
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.change(word, amo).unwrap_or_else(Posted::failed)
    }

    fn nop(&self) -> Posted {
        if self.mutation.nop_at_once() {
            return self.posted(self.provider().nop(), Then::Nothing, Sink::none());
        }
        let nop = match self.below.try_nop() {
            Ok(nop) => nop,
            Err(Refused::Full(())) => return Posted::Full,
            Err(Refused::Failed(error, ())) => return Posted::failed(error),
        };
        let mut polled = false;
        let later = poll_fn(move |cx| {
            if replace(&mut polled, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        self.several(async {
            later.await;
            nop.await.map(|()| 0)
        })
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.result(*token, into, cx)
    }

    fn test(&self, token: &Token) -> bool {
        self.is_complete(*token)
    }

    fn forget(&self, token: Token) {
        if let Some(Operation::Below(token, _)) = self.under_way.take(token) {
            self.provider().forget(token);
        }
    }

    fn poll_wait(&self, slot: &mut Slot, goal: Goal<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match goal {
            Goal::Flush(target) => self.flush(slot, target, cx),
            _ => self.provider().poll_wait(slot, goal, cx),
        }
    }

    fn detach(&self, rest: Leftover<'_>) {
        if self.mutation.detaches() {
            self.provider().detach(rest);
        }
    }

    /// None: what they do would pass unmutated.
    fn queues(&self) -> Option<&dyn Queues> {
        None
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        self.provider().gates()
    }

    fn keyless(&self) -> Option<&dyn Keyless> {
        self.provider().keyless().map(|_| self as &dyn Keyless)
    }
}

impl Keyless for Spoiled {
    fn open(&self, like: &Fabric, pact: Pact) -> Result<Fabric> {
        Ok(like.beside(self.over(self.below.keyless(pact)?)))
    }
}
