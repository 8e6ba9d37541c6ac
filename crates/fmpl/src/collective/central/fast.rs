//! Barriers, reductions and broadcasts as far as they complete without a wait, where memory is mapped.
//!
//! The path for longer waits repeats a step that is not possible immediately, and continues after the
//! addition to the counter.

use super::{
    Central, MOST, ROW, body_after,
    rounds::{COMBINED, GIVEN, Given, VERDICT, Verdict},
    slots::{COUNT, FLAG, NUMBER, REPORT, Slots, slot_of},
    tally::Tally,
    waits::TURNS,
};
use crate::{
    Communicator,
    collective::{Op, Scalar},
};
use bytemuck::{cast_slice, cast_slice_mut};
use rdma_fabric::{Amo, LocalSpan, RemoteWord, provider::SHORT};
use std::thread::yield_now;

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
    /// It is the last one, and the result of the reduction is at all members. Their rows may be those of the next round.
    Combined,
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
            announce_now(comm, &self.releases, round)?;
        } else {
            self.released_soon(comm)?;
        }
        self.completed += 1;
        Some(())
    }

    /// Waits for the end of the round for [`TURNS`] turns of the ranks that share its CPU; `None` if it does not come.
    #[inline]
    fn released_soon(&self, comm: &Communicator) -> Option<()> {
        turns(comm.may_yield, || comm.fabric.load(&self.released).is_ok_and(|round| round >= self.round))
    }

    /// Combines the elements of all members into the span of each, and records the progress for
    /// [`Part::reduce_centrally`](crate::collective::Part::reduce_centrally).
    #[inline]
    pub(crate) fn combine_now<T: Scalar>(
        &mut self,
        comm: &Communicator,
        span: &LocalSpan<T>,
        op: Op,
        arrival: &mut Arrival,
    ) -> Option<()> {
        let (fabric, bytes) = (&comm.fabric, span.len() * size_of::<T>());
        if !(1..=MOST).contains(&bytes) {
            return None;
        }
        let (direct, round, mut words) = (fabric.direct(), self.round + 1, [0; MOST / 8]);
        let body = &mut cast_slice_mut::<u64, u8>(&mut words)[..bytes];
        fabric.read(span, cast_slice_mut(body)).ok()?;
        let given: Given = [round, bytes as u64];
        direct.put_words_at(&self.row, 0, given)?;
        pieces(bytes, |from, to| direct.put_slice_at(&self.row, body_after(GIVEN, bytes) + from, &body[from..to]))?;
        let last = self.arrivals.pass_now(comm, round)?;
        self.round = round;
        *arrival = Arrival::Counted { last };
        if !last {
            self.result_soon(comm, body)?;
            fabric.write(span, cast_slice(body)).ok()?;
            self.completed += 1;
            return Some(());
        }
        self.gather_now::<T>(comm, op, given)?;
        let result = &cast_slice::<u64, u8>(&self.gathered)[..bytes];
        let verdict: Verdict = [round, COMBINED, 0, 0, 0, 0];
        for there in self.results.iter().filter(|there| there.rank() != fabric.rank()) {
            direct.put_words_at(there, 0, verdict)?;
            pieces(bytes, |from, to| direct.put_slice_at(there, body_after(VERDICT, bytes) + from, &result[from..to]))?;
        }
        if !comm.puts_in_order {
            direct.barrier();
        }
        fabric.write(span, cast_slice(result)).ok()?;
        *arrival = Arrival::Combined;
        announce_now(comm, &self.releases, round)?;
        self.completed += 1;
        Some(())
    }

    /// Waits for the result of the round as [`Central::released_soon`] does; `None` also if it is not one of these bytes.
    fn result_soon(&self, comm: &Communicator, body: &mut [u8]) -> Option<()> {
        self.released_soon(comm)?;
        let (here, direct, bytes) = (&self.results[comm.me()], comm.fabric.direct(), body.len());
        let [round, kind, ..]: Verdict = direct.get_words_at(here, 0)?;
        if (round, kind) != (self.round, COMBINED) {
            return None;
        }
        pieces(bytes, |from, to| direct.get_slice_at(here, body_after(VERDICT, bytes) + from, &mut body[from..to]))
    }

    /// Combines the rows, in the same order as [`Central::combined`], into the first of `gathered`; `None` if a member
    /// gave something else.
    fn gather_now<T: Scalar>(&mut self, comm: &Communicator, op: Op, given: Given) -> Option<()> {
        let (members, bytes) = (comm.len(), given[1] as usize);
        let row = bytes.div_ceil(8);
        self.gathered.resize(members * row, 0);
        for (member, words) in self.gathered.chunks_mut(row).enumerate() {
            let (at, direct) = (member * ROW, comm.fabric.direct());
            if direct.get_words_at(&self.rows, at)? != given {
                return None;
            }
            let (body, at) = (cast_slice_mut::<u64, u8>(words), at + body_after(GIVEN, bytes));
            pieces(bytes, |from, to| direct.get_slice_at(&self.rows, at + from, &mut body[from..to]))?;
        }
        let mut step = 1;
        while step < members {
            for pair in self.gathered.chunks_mut(2 * step * row).filter(|pair| pair.len() > step * row) {
                let (mine, theirs) = pair.split_at_mut(step * row);
                let mine = &mut cast_slice_mut::<_, u8>(mine)[..bytes];
                op.combine::<T>(cast_slice_mut(mine), cast_slice(&cast_slice::<_, u8>(theirs)[..bytes]));
            }
            step *= 2;
        }
        Some(())
    }

    /// Sends or receives the next broadcast. Returns `None`, without an effect on a later try, where only
    /// [`Part::broadcast_centrally`](crate::collective::Part::broadcast_centrally) can.
    #[inline]
    pub(crate) fn broadcast_now(&mut self, comm: &Communicator, span: &LocalSpan<u8>, root: usize) -> Option<()> {
        let number = self.slots.number + 1;
        // A member alone accesses no other memory, so nothing here shows that its own is mapped.
        if span.len() > MOST || root >= comm.len() || comm.len() == 1 {
            return None;
        }
        let (fabric, at) = (&comm.fabric, slot_of(number) * ROW);
        let flag = number << NUMBER | span.len() as u64;
        let mut body = [0; MOST];
        let body = &mut body[..span.len()];
        let start = at + body_after(FLAG, body.len());
        if comm.me() == root {
            let (freed, used) = (&self.slots.freed, number.saturating_sub(COUNT as u64));
            turns(comm.may_yield, || fabric.load(freed).is_ok_and(|freed| freed >= used))?;
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
            let look = || fabric.direct().get_word_at::<u8, u64>(here, at);
            look()?;
            turns(comm.may_yield, || look().is_none_or(|there| there >> NUMBER == number))?;
            if look() != Some(flag) {
                return None;
            }
            pieces(body.len(), |from, to| fabric.direct().get_slice_at(here, start + from, &mut body[from..to]))?;
            fabric.write(span, body).ok()?;
        }
        (self.slots.number, self.completed) = (number, self.completed + 1);
        self.slots.report_now(comm);
        Some(())
    }
}

impl Slots {
    /// Reports the broadcasts taken, if that is due. If member 0 has dropped its memory, no slot becomes free any more,
    /// and a member that has dropped its own uses none.
    #[inline]
    fn report_now(&mut self, comm: &Communicator) {
        let Slots { number, taken, freed, freeing, .. } = self;
        if !number.is_multiple_of(REPORT) || taken.pass_now(comm, *number / REPORT) != Some(true) {
            return;
        }
        let _ = comm.fabric.store(freed, *number);
        let _ = announce_now(comm, freeing, *number);
        if !comm.puts_in_order {
            comm.fabric.direct().barrier();
        }
    }
}

/// Writes a number to a word at every member but this one, as [`announce`](super::announce) does. `None` if the memory of
/// one is not mapped any more.
#[inline]
fn announce_now(comm: &Communicator, words: &[RemoteWord<u64>], number: u64) -> Option<()> {
    let others = words.iter().filter(|word| word.rank() != comm.fabric.rank());
    // All are tried: the members that remain need their numbers.
    let missed = others.filter(|word| comm.fabric.direct().put_word(word, number).is_none()).count();
    (missed == 0).then_some(())
}

/// Checks a condition at most [`TURNS`] times, between which other ranks use this CPU, or once.
#[inline]
fn turns(may_yield: bool, mut holds: impl FnMut() -> bool) -> Option<()> {
    for _ in 0..if may_yield { TURNS } else { 0 } {
        if holds() {
            return Some(());
        }
        yield_now();
    }
    holds().then_some(())
}

/// Copies `bytes` bytes in pieces that are short enough to be copied directly.
#[inline(always)]
fn pieces(bytes: usize, mut copy: impl FnMut(usize, usize) -> Option<()>) -> Option<()> {
    (0..bytes).step_by(SHORT).try_for_each(|from| copy(from, bytes.min(from + SHORT)))
}
