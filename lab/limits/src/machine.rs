//! Bare forms between threads of this process, for harnesses that take samples themselves.

use crate::{
    bare::{Bare, Block, How},
    cores,
    limit::{self, Border},
    lines,
    rendezvous::{self, Abandoned, Rendezvous},
};
use std::{
    io,
    ops::Range,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, Release},
    },
    thread,
    time::{Duration, Instant},
};

/// Runs bare forms, each a given number of times. Forms of two ranks run on two threads, each
/// bound to a core of its own if there are two.
///
/// # Panics
/// Methods panic if a size exceeds this memory: 16 MiB for a copy, 72 MiB for a field.
#[derive(Debug)]
pub struct Machine {
    bare: Bare,
}

/// One of two threads in a measurement.
#[derive(Clone, Copy)]
struct Side<'a> {
    bare: &'a Bare,
    me: usize,
    abandoned: &'a AtomicU64,
}

impl Machine {
    /// Maps the memory. The system provides only the pages that are used.
    ///
    /// # Errors
    /// If the system does not report the thread's cores, provides no memory file, or does not map it.
    pub fn new() -> io::Result<Machine> {
        if cores::allowed_cores()?.len() < 2 {
            rendezvous::share_core();
        }
        Ok(Machine { bare: Bare::private()? })
    }

    /// Adds to and subtracts from a word, as a reader that enters and leaves a counting lock does.
    pub fn count_reader(&self, times: u64) -> Duration {
        self.alone(times, |bare, times| limit::count_reader(bare.word(lines::OWNED), times))
    }

    /// The same by both threads at once, on one word.
    pub fn count_readers(&self, times: u64) -> Duration {
        self.both(times, 0..0, |side, _, times| {
            limit::count_reader(side.bare.word(lines::OWNED), times);
            Ok(())
        })
    }

    /// Adds to a word.
    pub fn fetch_add(&self, times: u64) -> Duration {
        self.alone(times, |bare, times| limit::fetch_add(bare.word(lines::OWNED), times))
    }

    /// Copies `bytes` bytes by the faster of all ways.
    pub fn copy(&self, bytes: usize, times: u64) -> Duration {
        let each = How::ALL.map(|how| self.alone(times, |bare, times| bare.put_window(0, 1, bytes, how, times)));
        each.into_iter().min().unwrap_or_default()
    }

    /// Sends `bytes` bytes to the other thread, by the faster copy and a flag, or back in turn: the time is that of
    /// `times` messages one way.
    pub fn message(&self, bytes: usize, times: u64) -> Duration {
        let flags = lines::MESSAGE_FLAG..lines::MESSAGE_FLAG + 2;
        let round_trips = times.div_ceil(2);
        let each = How::ALL.map(|how| {
            self.both(round_trips, flags.clone(), |side, turn, round_trips| {
                limit::messages(side.bare, side.me, (bytes, how), turn, round_trips, side.abandoned)
            })
        });
        let took = each.into_iter().min().unwrap_or_default();
        took.mul_f64(times as f64 / (2 * round_trips) as f64)
    }

    /// Exchanges two blocks of `bytes` bytes each way, between flags that announce the receiver and the data.
    pub fn exchange(&self, bytes: usize, times: u64) -> Duration {
        let [ready, _] = lines::EXCHANGE;
        self.both(times, ready..ready + 8, |side, turn, times| {
            limit::exchange(side.bare, side.me, bytes, turn, times, side.abandoned)
        })
    }

    /// Updates the border of a field of doubles with `columns` × `columns` columns of `levels` levels: `layers` layers on
    /// each side, those along i to the other thread, those along j within the field.
    pub fn border(&self, [levels, columns, layers]: [usize; 3], times: u64) -> Duration {
        let faces = Block { levels, columns, layers }.faces();
        let to_peer = [true, true, false, false];
        let faces: [_; 4] = core::array::from_fn(|at| {
            let (from, to, face) = faces[at];
            (to_peer[at], from, to, face)
        });
        let border = Border { faces: &faces, rewritten: false };
        let [ready, _] = lines::FIELD;
        self.both(times, ready..ready + 8, |side, turn, times| {
            limit::border(side.bare, side.me, border, turn, times, side.abandoned)
        })
    }

    /// Times a form of one thread, after an eighth as many repetitions that are not timed.
    fn alone(&self, times: u64, form: impl Fn(&Bare, u64)) -> Duration {
        form(&self.bare, times.div_ceil(8));
        let begun = Instant::now();
        form(&self.bare, times);
        begun.elapsed()
    }

    /// Times a form of two threads likewise, and returns the time of the slower one. `flags` are the lines on which its
    /// threads wait, and count from 0.
    fn both(
        &self,
        times: u64,
        flags: Range<usize>,
        form: impl Fn(Side<'_>, &mut u64, u64) -> Result<(), Abandoned> + Sync,
    ) -> Duration {
        let bare = &self.bare;
        for line in flags.chain(lines::MET..lines::MET + 2) {
            // Relaxed: the threads do not exist yet.
            bare.word(line).store(0, Relaxed);
        }
        let run = |me: usize| -> Result<Duration, Abandoned> {
            // A thread that may not be bound is slower, not wrong.
            let _ = cores::pin_rank(me);
            let mut rendezvous = Rendezvous::new(bare, me, 2);
            let side = Side { bare, me, abandoned: rendezvous.abandoned() };
            let mut turn = 0;
            form(side, &mut turn, times.div_ceil(8))?;
            rendezvous.meet()?;
            let begun = Instant::now();
            form(side, &mut turn, times)?;
            Ok(begun.elapsed())
        };
        // A thread that panics must not leave the other one waiting.
        let guarded = |me: usize| {
            let abandon = Abandon(bare.word(lines::ABANDONED));
            let took = run(me);
            core::mem::forget(abandon);
            took
        };
        let took = thread::scope(|scope| [0, 1].map(|me| scope.spawn(move || guarded(me))).map(|thread| thread.join()));
        let took = took.map(|joined| joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        took.into_iter().map(|took| took.expect("only a panic abandons")).max().unwrap_or_default()
    }
}

/// Ends the waits of the other thread when dropped.
struct Abandon<'a>(&'a AtomicU64);

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.0.store(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_ends_and_takes_time() {
        let machine = Machine::new().expect("memory");
        for _ in 0..2 {
            assert!(machine.count_reader(100) > Duration::ZERO);
            assert!(machine.count_readers(100) > Duration::ZERO);
            assert!(machine.fetch_add(100) > Duration::ZERO);
            assert!(machine.copy(4096, 10) > Duration::ZERO);
            for times in [1, 2, 7] {
                assert!(machine.message(0, times) > Duration::ZERO);
                assert!(machine.message(4096, times) > Duration::ZERO);
            }
            assert!(machine.exchange(0, 10) > Duration::ZERO);
            assert!(machine.exchange(4096, 10) > Duration::ZERO);
            assert!(machine.border([4, 8, 2], 10) > Duration::ZERO);
        }
    }

    #[test]
    #[should_panic(expected = "len <= WINDOW")]
    fn a_size_that_does_not_fit_ends_both_threads() {
        Machine::new().expect("memory").message(17 << 20, 1);
    }
}
