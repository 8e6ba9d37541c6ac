//! Operations, from their posting to their results.

use crate::{
    act::{Act, Answer, Op, Rmw, Told},
    cell::Agent,
    dropped::Holding,
    fabric::Seat,
    look::{Waiter, waiter_for, waits_for},
    slots::Parts,
    transfer::{bits_of, bytes_of},
};
use rdma_fabric::{
    Amo, FabricError, Result,
    provider::{Place, Posted, Sink, Source, Token},
};
use std::{num::NonZeroU64, slice, task::Poll};

impl Seat {
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::StaleRegion`]: its memory can't be used any more.
    fn usable(&self, place: &Place) -> Result<()> {
        self.alive(place.rank())?;
        self.registered(place.addr())
    }

    /// Post what `op` makes of its number. Its result is made of `parts`.
    fn post(&self, parts: Parts, op: impl FnOnce(u8) -> Op) -> Posted {
        let slot = self.session.take_slot(parts);
        self.session.tell(Act::Post(op(slot)));
        Posted::Pending(Token(NonZeroU64::new(waiter_for(slot)).expect("no waiter is 0")))
    }

    pub(crate) fn post_put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Result<Posted> {
        let bits = self.session.facts.caps.notice_bits;
        if let Some(data) = notice.filter(|data| bits < 64 && data >> bits != 0) {
            return Err(FabricError::NoticeTooWide { data, bits });
        }
        self.usable(to)?;
        if let Source::Place(own) = from {
            self.registered(own.addr())?;
        }
        let addr = to.addr();
        let notice = notice.map(|data| Told {
            from: self.me().number(),
            data,
            region: addr.region.to_bits(),
            end: addr.offset + to.len() as u64,
        });
        let target = Holding::of(addr);
        let pieces = match from {
            Source::Place(own) if !to.is_empty() => {
                let pieces = self.across(to, own);
                return Ok(self.post(Parts::new(), |slot| Op::PutFrom { slot, target, pieces, notice }));
            }
            Source::Place(_) => Box::default(),
            Source::Bytes(bytes) => {
                let pieces = self.pieces(Agent::Network, to).into_iter();
                pieces.map(|(part, at)| (part, bits_of(part, &bytes[at]))).collect()
            }
        };
        self.session.tell(Act::Post(Op::Put { target, pieces, notice }));
        Ok(Posted::Over(0))
    }

    pub(crate) fn post_get(&self, from: &Place, to: &Sink<'_>) -> Result<Posted> {
        self.usable(from)?;
        if let Sink::Place(own) = to {
            self.registered(own.addr())?;
        }
        if from.is_empty() {
            return Ok(Posted::Over(0));
        }
        let target = Holding::of(from.addr());
        Ok(match to {
            Sink::Place(own) => {
                let sink = own.addr().region.index;
                let pieces = self.across(from, own).iter().map(|(part, own)| (*part, Some(*own))).collect();
                self.post(Parts::new(), |slot| Op::Get { slot, target, pieces, sink })
            }
            Sink::Bytes(_) => {
                let parts = self.pieces(Agent::Network, from);
                let pieces = parts.iter().map(|(part, _)| (*part, None)).collect();
                self.post(parts, |slot| Op::Get { slot, target, pieces, sink: 0 })
            }
        })
    }

    pub(crate) fn post_atomic(&self, word: &Place, amo: Amo<u64>) -> Result<Posted> {
        self.usable(word)?;
        let (at, rmw, target) = (self.word(Agent::Network, word), Rmw::new(amo), Holding::of(word.addr()));
        Ok(self.post(Parts::new(), |slot| Op::Atomic { slot, target, at, rmw }))
    }

    /// The result of the operation that `waiter` waits for.
    pub(crate) fn take(&self, waiter: Waiter, into: Sink<'_>) -> Poll<Result<u64>> {
        let slot = waits_for(waiter);
        let answer = self.session.ask(Act::Await(slot));
        let words = match &answer {
            Some(Answer::Value(word)) => Ok(slice::from_ref(word)),
            Some(Answer::Words(words)) => Ok(&words[..]),
            Some(Answer::Done) => Ok(&[][..]),
            Some(Answer::Lost(rank)) => Err(FabricError::PeerLost { rank: *rank }),
            Some(Answer::Stale(holding)) => Err(holding.stale()),
            _ => {
                self.session.has_to_wait(waiter);
                return Poll::Pending;
            }
        };
        self.session.went_on();
        let parts = self.session.free_slot(slot);
        Poll::Ready(words.map(|words| {
            if let Sink::Bytes(bytes) = into {
                for ((part, at), bits) in parts.into_iter().zip(words) {
                    bytes_of(part, *bits, &mut bytes[at]);
                }
            }
            words.first().copied().unwrap_or(0)
        }))
    }

    pub(crate) fn is_complete(&self, waiter: Waiter) -> bool {
        let complete = self.session.ask(Act::Test(waits_for(waiter))) == Some(Answer::Value(1));
        self.session.went_on();
        complete
    }

    /// Nobody wants the result of the operation that `waiter` waited for.
    pub(crate) fn drop_handle(&self, waiter: Waiter) {
        let slot = waits_for(waiter);
        self.session.tell(Act::Forget(slot));
        self.session.free_slot(slot);
    }
}
