//! Barriers and broadcasts as far as they complete without a wait, where memory is mapped.
//!
//! The path for longer waits repeats a step that is not possible immediately, and continues after the
//! addition to the counter.

use super::{
    Central, MOST, ROW,
    slots::{COUNT, NUMBER, REPORT, body_at, slot_of},
    tally::Tally,
};
use crate::Communicator;
use rdma_fabric::{Amo, LocalSpan, provider::SHORT};

/// A member's progress in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Arrival {
    /// It has not been counted.
    #[default]
    Due,
    /// It has been counted.
    Counted {
        /// Whether it is the last one.
        last: bool,
    },
}

impl Tally {
    /// Passes a mark as [`Tally::pass`] does; returns `None` where only that is possible.
    #[inline]
    fn pass_now(&mut self, comm: &Communicator, mark: u64) -> Option<bool> {
        let direct = comm.fabric.direct();
        direct.put_word(&self.mark, mark)?;
        if !comm.puts_in_order {
            direct.barrier();
        }
        let before = direct.atomic(&self.counters[mark as usize % 2], Amo::Add(1))?;
        self.passed = mark;
        Some(self.is_last(before, mark))
    }
}

impl Central {
    /// Meets all members, and records the progress for [`Central::meet`].
    #[inline]
    pub(crate) fn meet_now(&mut self, comm: &Communicator, arrival: &mut Arrival) -> Option<()> {
        let round = self.round + 1;
        let last = self.arrivals.pass_now(comm, round)?;
        self.round = round;
        *arrival = Arrival::Counted { last };
        if last {
            let others = self.releases.iter().enumerate().filter(|(member, _)| *member != comm.me());
            for (_, word) in others {
                comm.fabric.direct().put_word(word, round)?;
            }
        } else if comm.fabric.load(&self.released).ok()? < round {
            return None;
        }
        self.completed += 1;
        Some(())
    }

    /// Sends or receives the next broadcast. Returns `None`, without an effect on a later try, where only
    /// [`Part::broadcast_centrally`](crate::collective::Part::broadcast_centrally) can.
    #[inline]
    pub(crate) fn broadcast_now(&mut self, comm: &Communicator, span: &LocalSpan<u8>, root: usize) -> Option<()> {
        let number = self.slots.number + 1;
        // A member reports once in a while.
        if number.is_multiple_of(REPORT) || span.len() > MOST || root >= comm.len() {
            return None;
        }
        let (fabric, at) = (&comm.fabric, slot_of(number) * ROW);
        let flag = number << NUMBER | span.len() as u64;
        let mut body = [0; MOST];
        let body = &mut body[..span.len()];
        let start = at + body_at(body.len());
        if comm.me() == root {
            if fabric.load(&self.slots.freed).ok()? < number.saturating_sub(COUNT as u64) {
                return None;
            }
            fabric.read(span, body).ok()?;
            let others = self.slots.there.iter().enumerate().filter(|(member, _)| *member != root);
            for (_, slots) in others {
                pieces(body.len(), |from, to| fabric.direct().put_slice_at(slots, start + from, &body[from..to]))?;
                if !comm.puts_in_order {
                    fabric.direct().barrier();
                }
                fabric.direct().put_word_at(slots, at, flag)?;
            }
        } else {
            let here = &self.slots.there[comm.me()];
            let there: u64 = fabric.direct().get_word_at(here, at)?;
            if there != flag {
                return None;
            }
            pieces(body.len(), |from, to| fabric.direct().get_slice_at(here, start + from, &mut body[from..to]))?;
            fabric.write(span, body).ok()?;
        }
        (self.slots.number, self.completed) = (number, self.completed + 1);
        Some(())
    }
}

/// Copies `bytes` bytes in pieces that are short enough to be copied directly.
#[inline(always)]
fn pieces(bytes: usize, mut copy: impl FnMut(usize, usize) -> Option<()>) -> Option<()> {
    (0..bytes).step_by(SHORT).try_for_each(|from| copy(from, bytes.min(from + SHORT)))
}
