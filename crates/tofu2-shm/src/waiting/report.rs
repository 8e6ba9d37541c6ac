//! The report, in a rank's segment, that the rank is parked until other ranks act.
//!
//! The [`watchdog`](super::watchdog) reads it. A rank with helpers has several threads that park:
//! they report to their process, and the segment contains only what holds for all of them.

use super::watchdog::{Awaiting, OTHERS};
use crate::memory::{Mapping, layout};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, MutexGuard, PoisonError};

/// The parking reports of the threads of one rank.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Helpers that have not ended.
    helpers: usize,
    /// Threads that are parked, by number.
    parked: Vec<Parked>,
    next: u64,
    /// Whether the segment shows the rank as parked.
    shown: bool,
}

/// A parked thread.
#[derive(Debug)]
struct Parked {
    number: u64,
    awaiting: Awaiting,
    /// Its other waits.
    others: usize,
    /// Whether something other than a rank may wake it.
    is_open: bool,
    /// Whether it has checked since the segment's count of checks was last incremented.
    has_looked: bool,
}

impl Reports {
    /// Writes the combined state of all threads.
    fn show(&mut self, segment: &Mapping) {
        if self.parked.len() <= self.helpers {
            return self.hide(segment);
        }
        let Some(first) = self.parked.first() else { return };
        let others = self.parked.iter().map(|parked| parked.others + 1).sum::<usize>() - 1;
        let is_open = self.parked.iter().any(|parked| parked.is_open);
        segment.word(layout::PARKED_WHAT).store(first.awaiting.what.to_bits(), Relaxed);
        segment
            .word(layout::PARKED_WHOM)
            .store(first.awaiting.whom | (others.min(0xff_ffff) as u64) << OTHERS, Relaxed);
        segment.word(layout::PARKED_OPEN).store(is_open.into(), Relaxed);
        segment.word(layout::PARKED_PROCESS).store(std::process::id().into(), Relaxed);
        if !self.shown {
            segment.word(layout::PARKINGS).fetch_add(1, SeqCst);
            self.shown = true;
        }
        if self.parked.iter().all(|parked| parked.has_looked) {
            self.parked.iter_mut().for_each(|parked| parked.has_looked = false);
            // Release: pairs with the acquire in `Watchdog::look`, for the words above.
            segment.word(layout::PARKED_LOOKS).fetch_add(1, SeqCst);
        }
    }

    fn hide(&mut self, segment: &Mapping) {
        if self.shown {
            segment.word(layout::PARKINGS).fetch_add(1, SeqCst);
            self.shown = false;
        }
    }
}

fn reports(segment: &Mapping) -> MutexGuard<'_, Reports> {
    // Consistent between statements, even if other code of the rank panics.
    segment.reports().lock().unwrap_or_else(PoisonError::into_inner)
}

/// One thread's part of the report.
#[derive(Debug, Default)]
pub(crate) struct ParkReport(Option<(Arc<Mapping>, u64)>);

impl ParkReport {
    /// Reports that this thread of the rank of `segment` parks for this wait and `others` more, for
    /// the first time or again. `is_open` is true if something other than a rank may wake it.
    pub(crate) fn keeps_waiting(&mut self, segment: &Arc<Mapping>, awaiting: Awaiting, others: usize, is_open: bool) {
        let mut reports = reports(segment);
        let number = match &self.0 {
            Some((_, number)) => *number,
            None => {
                reports.next += 1;
                self.0 = Some((segment.clone(), reports.next));
                reports.next
            }
        };
        let parked = Parked { number, awaiting, others, is_open, has_looked: true };
        match reports.parked.iter_mut().find(|parked| parked.number == number) {
            Some(before) => *before = parked,
            None => reports.parked.push(parked),
        }
        reports.show(segment);
    }

    /// Withdraws the report: the thread is no longer parked, or not waiting for other ranks.
    pub(crate) fn end(&mut self) {
        if let Some((segment, number)) = self.0.take() {
            let mut reports = reports(&segment);
            reports.parked.retain(|parked| parked.number != number);
            reports.hide(&segment);
        }
    }
}

impl Drop for ParkReport {
    fn drop(&mut self) {
        self.end();
    }
}

/// A helper of a rank. As long as this exists, the rank is not parked unless the helper is.
#[derive(Debug)]
pub(crate) struct HelperMark(Arc<Mapping>);

impl HelperMark {
    /// Announces one more helper of the rank of `segment`. Called by a thread of the rank, which is
    /// therefore not parked.
    pub(crate) fn new(segment: Arc<Mapping>) -> Self {
        reports(&segment).helpers += 1;
        HelperMark(segment)
    }
}

impl Drop for HelperMark {
    fn drop(&mut self) {
        // The remaining threads report again at their next check.
        reports(&self.0).helpers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::WaitsFor;
    use rdma_fabric::Deps;

    /// Whether the segment shows a parked rank, and its count of checks.
    fn shown(segment: &Mapping) -> (bool, u64) {
        (segment.word(layout::PARKINGS).load(SeqCst) % 2 == 1, segment.word(layout::PARKED_LOOKS).load(SeqCst))
    }

    #[test]
    fn a_rank_is_parked_when_all_its_threads_are() {
        let segment = Mapping::in_process(layout::HEAP + layout::PAGE, layout::HEAP).unwrap();
        let awaiting = Awaiting::new(WaitsFor::Notice, &Deps::All);
        let (mut program, mut helper) = (ParkReport::default(), ParkReport::default());
        program.keeps_waiting(&segment, awaiting, 0, false);
        assert_eq!(shown(&segment), (true, 1));
        program.end();
        let mark = HelperMark::new(segment.clone());
        program.keeps_waiting(&segment, awaiting, 0, false);
        program.keeps_waiting(&segment, awaiting, 0, false);
        assert_eq!(shown(&segment), (false, 1), "the helper may still do something");
        helper.keeps_waiting(&segment, awaiting, 2, true);
        assert_eq!(shown(&segment), (true, 2));
        assert_eq!(segment.word(layout::PARKED_WHOM).load(SeqCst) >> OTHERS, 3);
        assert_eq!(segment.word(layout::PARKED_OPEN).load(SeqCst), 1);
        helper.keeps_waiting(&segment, awaiting, 2, false);
        assert_eq!(shown(&segment), (true, 2), "the program has not looked again");
        program.keeps_waiting(&segment, awaiting, 0, false);
        assert_eq!(shown(&segment), (true, 3));
        helper.end();
        assert_eq!(shown(&segment), (false, 3));
        drop(mark);
        program.keeps_waiting(&segment, awaiting, 0, false);
        assert_eq!(shown(&segment), (true, 4));
    }
}
