//! Processes that are killed between two steps by which they change a lock's file: the test sets
//! the file to its state at that point, and kills the process.

use crate::{
    children::{HANG, Place, SOON},
    generations::GATE,
    roles::mended,
};
use named_lock::{Error, NamedLock};
use rustix::process::Signal;
use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
    thread,
    time::Duration,
};

/// Offsets in the file (`src/layout.rs`).
const DEATHS: u64 = 56;
const SLOTS: u64 = 4096;
const SLOT: u64 = 128;
const STATE: u64 = 0;
const LIVE: u64 = 16;
const HOLDS: u64 = 64;
const WRITES: u64 = 72;
/// The lock's own words.
const AGREEMENT: u64 = SLOTS + 142 * SLOT;
/// The first word of a slot: `kind:2 | turn:30 | number:32`.
const TAKEN: u64 = 1;
const KIND: u64 = 62;

/// The words of a lock's file.
struct Words(File);

impl Words {
    fn of(place: &Place) -> Self {
        Words(File::options().read(true).write(true).open(place.path()).expect("opened"))
    }

    fn get(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        self.0.read_exact_at(&mut word, at).expect("read");
        u64::from_ne_bytes(word)
    }

    fn set(&self, at: u64, word: u64) {
        self.0.write_all_at(&word.to_ne_bytes(), at).expect("written");
    }

    /// Returns the offset of a process's slot.
    fn slot(&self, process: u32) -> u64 {
        let is_its = |at: &u64| {
            let state = self.get(*at + STATE);
            state >> KIND == TAKEN && state as u32 == process
        };
        (1..128).map(|rank| SLOTS + rank * SLOT).find(is_its).expect("it is a member")
    }
}

type Outcome = Result<(), Error>;
type Finder = fn(&Place, NamedLock, &dyn Fn()) -> Outcome;

/// The processes that find a death: one that is waiting when the death is published, one that
/// arrives later, and one that tries.
const FINDERS: [(&str, Finder); 3] = [
    ("waits", |_, lock, act| {
        let waits = thread::spawn(move || lock.write_within(HANG)?.release());
        thread::sleep(Duration::from_millis(20));
        act();
        waits.join().expect("no panic")
    }),
    ("comes later", |place, lock, act| {
        act();
        drop(lock);
        NamedLock::open_path(place.path())?.write_within(SOON)?.release()
    }),
    ("tries", |_, lock, act| {
        act();
        let began = std::time::Instant::now();
        loop {
            match lock.try_write()? {
                Some(guard) => return guard.release(),
                None => assert!(began.elapsed() < SOON, "the death is not noticed"),
            }
        }
    }),
];

/// A process finds a death and publishes it in the slot; then it refuses the memory of the dead
/// rank, and counts the death. It is killed between these steps.
pub(crate) fn a_death_that_was_published_and_not_counted_is_counted() {
    for role in ["write", "read"] {
        for (finder, find) in FINDERS {
            for steps in 1..=3 {
                let place = Place::new();
                let lock = place.open();
                let mut holder = place.start(role, &[]);
                holder.expect_line("holds");
                // It does nothing until it is killed.
                holder.signal(Signal::STOP);
                let number = holder.id();
                let words = Words::of(&place);
                let slot = words.slot(number);
                let act = || {
                    let state = words.get(slot + STATE);
                    words.set(slot + STATE, state & !(3 << KIND) | 2 << KIND);
                    if steps >= 2 {
                        words.set(slot + LIVE, 0);
                    }
                    if steps >= 3 {
                        words.set(DEATHS, 1);
                    }
                };
                let found = find(&place, lock, &act);
                match (role, found) {
                    ("write", Err(Error::Torn { by, .. })) => assert_eq!(by, number, "{finder}, {steps} steps"),
                    ("read", Ok(())) => {}
                    (_, found) => panic!("{role}, {finder}, {steps} steps: {found:?}"),
                }
                holder.kill();
                // One that arrives later finds the dead rank through its queue node, and need not
                // check.
                if finder != "comes later" {
                    assert_eq!(words.get(DEATHS), 1, "{role}, {finder}, {steps} steps");
                }
            }
        }
    }
}

/// A call announces itself before it takes the lock; once it has the lock, it records that it
/// writes, and it clears this record before it releases the lock.
pub(crate) fn calls_killed_between_their_steps_hang_no_other_process() {
    // Announced, but not yet inside: nothing is torn.
    for (finder, find) in FINDERS {
        let place = Place::new();
        let lock = place.open();
        let mut member = place.start("stay", &[]);
        member.expect_line("holds");
        let words = Words::of(&place);
        words.set(words.slot(member.id()) + HOLDS, 1);
        member.kill();
        find(&place, lock, &|| {}).unwrap_or_else(|error| panic!("announced, {finder}: {error}"));
    }
    // Inside, and not yet or no longer writing: the lock's protocol cannot distinguish this, and
    // reports torn data.
    for (finder, find) in FINDERS {
        let place = Place::new();
        let lock = place.open();
        let mut holder = place.start("write", &[]);
        holder.expect_line("holds");
        let number = holder.id();
        holder.signal(Signal::STOP);
        let words = Words::of(&place);
        let slot = words.slot(number);
        words.set(slot + WRITES, 0);
        holder.kill();
        let outcome = find(&place, lock, &|| {});
        assert!(matches!(outcome, Err(Error::Torn { by, .. }) if by == number), "in, {finder}: {outcome:?}");
    }
}

/// The process that tore the data is identified even if another process did so earlier and its data
/// were mended.
pub(crate) fn torn_data_name_the_last_writer_that_tore_them() {
    let place = Place::new();
    let lock = place.open();
    let mut last = 0;
    for turn in 0..4 {
        let mut holder = place.start("write", &[]);
        holder.expect_line("holds");
        holder.kill_to_zombie();
        assert_ne!(holder.id(), last);
        last = holder.id();
        if turn % 2 == 1 {
            // No process has noticed yet: the file is replaced before that.
            Words::of(&place).set(GATE, 2);
        }
        let outcome = lock.write_within(SOON).map(drop);
        assert!(matches!(outcome, Err(Error::Torn { by, .. }) if by == last), "turn {turn}: {outcome:?}, not {last}");
        Words::of(&place).set(GATE, 2);
        let outcome = place.open().read_within(SOON).map(drop);
        assert!(matches!(outcome, Err(Error::Torn { by, .. }) if by == last), "turn {turn}: {outcome:?}, not {last}");
        let guard = lock.mend_within(SOON).expect("held");
        assert_eq!(guard.torn().map(|torn| torn.by), Some(last), "turn {turn}");
        drop(guard);
        mended(&lock).release().expect("released");
        lock.write_within(SOON).expect("whole").release().expect("released");
    }
    // And mended data are whole in the next file.
    Words::of(&place).set(GATE, 2);
    place.open().write_within(SOON).expect("whole").release().expect("released");
}

/// The next file is made under another name, the old one is marked as ended, and the new one is
/// renamed.
pub(crate) fn a_next_file_that_was_left_behind_is_overwritten() {
    let place = Place::new();
    let lock = place.open();
    let first = fs::metadata(place.path()).expect("there").ino();
    let next = place.path().with_file_name(".lock.next");
    for content in ["", "something half-written"] {
        fs::write(&next, content).expect("written");
        Words::of(&place).set(GATE, 2);
        lock.write_within(SOON).expect("held").release().expect("released");
        assert!(!next.exists(), "renamed");
    }
    assert_ne!(fs::metadata(place.path()).expect("there").ino(), first);
}

/// The agreement names a rank without a process as the opener of the next epoch.
pub(crate) fn an_epoch_opened_by_no_process_is_an_error() {
    let place = Place::new();
    let (lock, other) = (place.open(), place.open());
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    let (opening, next, by) = (1 << 32, 1 << 42, 100);
    Words::of(&place).set(AGREEMENT, opening | next | by);
    holder.kill();
    for lock in [lock, other] {
        let outcome = lock.write_within(HANG).map(drop);
        assert!(matches!(outcome, Err(Error::Lock { .. })), "{outcome:?}");
        let outcome = lock.read().map(drop);
        assert!(matches!(outcome, Err(Error::Lock { .. })), "{outcome:?}");
    }
}
