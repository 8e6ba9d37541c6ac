//! The ring under loom: every interleaving, within a bound on preemptions, of a producer that laps
//! two entries and a consumer. The words of a command are tracked as plain memory, so loom finds
//! every write that is concurrent with a read, even if it would never make the stored value visible
//! to that read.

use super::*;
use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::{cell::UnsafeCell, model::Builder, sync::atomic::AtomicU64 as LoomWord, thread};
use std::{cell::RefCell, rc::Rc, sync::Arc};

/// A mutant of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    Nothing,
    /// `offer` does not release the words.
    RelaxedPublish,
    /// `read` does not acquire them.
    RelaxedRead,
    /// `free` does not release the entry.
    RelaxedFree,
    /// `offer` does not acquire it.
    RelaxedOffer,
    /// `offer` does not check the state at all.
    BlindOffer,
    /// `offer` writes the words after the state.
    WordsLast,
}

loom::thread_local! {
    static IS_PRODUCER: core::cell::Cell<bool> = core::cell::Cell::new(false);
    static MUTANT: core::cell::Cell<Mutant> = core::cell::Cell::new(Mutant::Nothing);
    /// The words that [`Mutant::WordsLast`] has not written yet.
    static LATE: RefCell<Vec<(Rc<Both>, u64)>> = RefCell::new(Vec::new());
}

/// Sets the role and the mutant of the calling thread.
fn play(is_producer: bool, mutant: Mutant) {
    IS_PRODUCER.with(|is| is.set(is_producer));
    MUTANT.with(|is| is.set(mutant));
}

fn makes(mutant: Mutant, as_producer: bool) -> bool {
    MUTANT.with(|made| made.get() == mutant) && IS_PRODUCER.with(|is| is.get() == as_producer)
}

struct Watched(Rc<Both>);

struct Both {
    word: LoomWord,
    /// Accessed together with the words of commands, the only words that are loaded without
    /// acquire, and in all calls that only the consumer makes.
    plain: UnsafeCell<()>,
}

impl Both {
    fn store_plain(&self, value: u64) {
        self.plain.with_mut(|_| ());
        self.word.store(value, Relaxed);
    }
}

impl Word for Watched {
    fn new(value: u64) -> Self {
        Watched(Rc::new(Both { word: LoomWord::new(value), plain: UnsafeCell::new(()) }))
    }

    fn load(&self, acquire: bool) -> u64 {
        if !acquire {
            self.0.plain.with(|_| ());
            return self.0.word.load(Relaxed);
        }
        let order = match makes(Mutant::RelaxedRead, false) || makes(Mutant::RelaxedOffer, true) {
            true => Relaxed,
            false => Acquire,
        };
        let state = self.0.word.load(order);
        if makes(Mutant::BlindOffer, true) { EntryState::Free as u64 } else { state }
    }

    fn store(&self, value: u64, release: bool) {
        if !release && makes(Mutant::WordsLast, true) {
            return LATE.with(|late| late.borrow_mut().push((self.0.clone(), value)));
        }
        if !release {
            return self.0.store_plain(value);
        }
        let relaxed = makes(Mutant::RelaxedPublish, true) || makes(Mutant::RelaxedFree, false);
        self.0.word.store(value, if relaxed { Relaxed } else { Release });
        LATE.with(|late| late.take()).into_iter().for_each(|(word, value)| word.store_plain(value));
    }
}

const PREEMPTIONS: usize = 3;
/// One more than the number of entries.
const COMMANDS: i64 = 3;

fn command(number: i64) -> [u64; WORDS] {
    core::array::from_fn(|at| number as u64 * 10 + at as u64)
}

/// Explores more than one lap; returns the number of executions.
fn explore(mutant: Mutant) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = 10_000;
    // Loom explores its main thread poorly, so this thread only waits for the others.
    builder.check(move || {
        count.fetch_add(1, SeqCst);
        // Loom's threads take turns on a single system thread, so `Rc` is sufficient.
        let ring = Rc::new(Ring::<Watched>::new(2));
        let theirs = ring.clone();
        let producer = thread::spawn(move || {
            play(true, mutant);
            for number in 1..=COMMANDS {
                while !theirs.offer(number, command(number)) {
                    thread::yield_now();
                }
                // Regardless of the state that it has reached in the meantime.
                assert!(theirs.state(number).is_some(), "an entry has no state");
            }
        });
        let consumer = thread::spawn(move || {
            play(false, mutant);
            for number in 1..=COMMANDS {
                let read = loop {
                    match ring.read(number) {
                        Some(read) => break read,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(read, command(number), "a torn command");
                for state in [EntryState::OrderEnd, EntryState::Executing, EntryState::Finished] {
                    ring.set(number, state);
                    assert_eq!(ring.state(number), Some(state), "somebody else changed the state");
                }
                ring.free(number);
            }
        });
        producer.join().unwrap();
        consumer.join().unwrap();
    });
    executions.load(SeqCst)
}

#[test]
fn a_producer_laps_the_ring() {
    let executions = explore(Mutant::Nothing);
    println!("{executions} executions with at most {PREEMPTIONS} preemptions");
    assert!(executions >= 100);
}

macro_rules! found {
    ($($test:ident: $mutant:ident, $panic:literal;)*) => {$(
        #[test]
        #[should_panic(expected = $panic)]
        fn $test() {
            explore(Mutant::$mutant);
        }
    )*};
}

found! {
    offering_must_release: RelaxedPublish, "Causality violation";
    reading_must_acquire: RelaxedRead, "Causality violation";
    freeing_must_release: RelaxedFree, "Causality violation";
    offering_must_acquire: RelaxedOffer, "Causality violation";
    words_must_come_before_their_state: WordsLast, "Causality violation";
    offering_must_look: BlindOffer, "Causality violation";
}
