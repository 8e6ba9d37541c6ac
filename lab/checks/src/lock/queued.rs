//! The locks with queues, correct and mutated.

pub(super) mod mutants;

use self::mutants::{IN_ORDER_MUTANTS, QueuedMutantCase, queued_mutants};
use super::{
    mutants::QueuedMutant::{self, *},
    program::{
        Role::{self, *},
        explorer, job,
    },
};
use crate::exploration::{Expected, Exploration, Size};
use rdma_fabric::{Caps, PutOrder};
use rma_lock::locks::LockKind;

/// The ranks and rounds of a job.
struct Shape {
    name: &'static str,
    roles: &'static [Role],
    rounds: usize,
    quick: bool,
    /// The minimum number of states with each of [`QUEUED`]; 1 with other locks.
    at_least: [u64; 4],
}

const fn shape(name: &'static str, roles: &'static [Role], rounds: usize, quick: bool, at_least: [u64; 4]) -> Shape {
    Shape { name, roles, rounds, quick, at_least }
}

/// The smallest number of acquisitions after which a rank needs a node that holds the mark for a
/// successor that has yet to arrive: it leaves the mark in one node, and its other nodes in queues.
const WRITES_AGAIN: Role = Turns(&[Write, WriteBefore, WriteBefore, WriteBefore, Write]);

const READS_AGAIN: Role = Turns(&[Read, ReadBefore, ReadBefore, ReadBefore, Read]);

/// The smallest number of acquisitions after which a rank has no node left.
const WRITES_IN_VAIN: Role = Turns(&[WriteBefore, WriteBefore, WriteBefore, WriteBefore, Write]);

const READS_IN_VAIN: Role = Turns(&[ReadBefore, ReadBefore, ReadBefore, ReadBefore, Read]);

/// A second acquisition, while writers arrive.
const READS_TWICE: Role = Turns(&[Read, Read]);

/// The locks with queues.
pub(super) const ALL: [LockKind; 5] =
    [LockKind::ReaderPreference, LockKind::Packed, LockKind::WritersFirst, LockKind::Fair, LockKind::Barging];

/// The locks in which every rank queues up.
const QUEUED: [LockKind; 4] = [LockKind::ReaderPreference, LockKind::Packed, LockKind::WritersFirst, LockKind::Fair];

/// The jobs of each lock. In a name, R and W stand for readers and writers, and the factor for
/// rounds.
const SHAPES: [Shape; 43] = [
    shape("R1W1x1", &[Read, Write], 1, true, [100, 100, 100, 90]),
    shape("R1W1x2", &[Read, Write], 2, true, [500, 900, 5_000, 2_000]),
    shape("W1R1x2, the writer at home", &[Write, Read], 2, true, [500, 900, 5_000, 2_000]),
    shape("W2x2", &[Write, Write], 2, true, [500, 3_000, 3_000, 2_000]),
    shape("R2x2", &[Read, Read], 2, true, [100, 400, 400, 10_000]),
    shape("R2W1x1", &[Read, Read, Write], 1, true, [5_000, 9_000, 30_000, 7_000]),
    shape("R1W2x1", &[Read, Write, Write], 1, true, [2_000, 2_000, 20_000, 1_000]),
    shape("W3x1", &[Write, Write, Write], 1, true, [2_000, 2_000, 2_000, 1_000]),
    shape("R1W2x2", &[Read, Write, Write], 2, false, [100_000, 400_000, 1, 600_000]),
    shape("R2W1x2", &[Read, Read, Write], 2, false, [100_000, 300_000, 10_000_000, 2_000_000]),
    shape("R2W2x1", &[Read, Read, Write, Write], 1, false, [100_000, 300_000, 5_000_000, 100_000]),
    shape("R1W3x1", &[Read, Write, Write, Write], 1, false, [50_000, 60_000, 5_000_000, 30_000]),
    shape("R3W1x1", &[Read, Read, Read, Write], 1, false, [1_000_000, 1_800_000, 1, 2_000_000]),
    // Larger than the largest number of states exhausted so far.
    shape("R2W2x2", &[Read, Read, Write, Write], 2, false, [100_000, 1, 1, 1]),
    shape("R1W3x2", &[Read, Write, Write, Write], 2, false, [100_000, 1, 1, 1]),
    shape("R3W2x1", &[Read, Read, Read, Write, Write], 1, false, [100_000, 1, 1, 1]),
    shape("tries: write and read x2", &[TryWrite, Read], 2, true, [100, 500, 1_000, 800]),
    shape("tries: write and write x2", &[TryWrite, Write], 2, true, [100, 700, 700, 400]),
    shape("tries: read and write x2", &[TryRead, Write], 2, true, [100, 500, 400, 900]),
    shape("tries: write twice x2", &[TryWrite, TryWrite], 2, true, [100, 100, 100, 100]),
    shape("tries: write, read and write x1", &[TryWrite, Read, Write], 1, true, [1_000, 1_000, 7_000, 700]),
    shape("deadlines: write and read x2", &[WriteBefore, Read], 2, true, [500, 3_000, 10_000, 7_000]),
    shape("deadlines: write and write x2", &[WriteBefore, Write], 2, true, [500, 6_000, 6_000, 4_000]),
    shape("deadlines: read and write x2", &[ReadBefore, Write], 2, true, [500, 2_000, 20_000, 5_000]),
    shape("deadlines: write, read and write x1", &[WriteBefore, Read, Write], 1, true, [1_000, 4_000, 30_000, 2_000]),
    shape(
        "deadlines: read, write and write x1",
        &[ReadBefore, WriteBefore, Write],
        1,
        true,
        [1_000, 7_000, 50_000, 4_000],
    ),
    shape("dropped: read and write x1", &[ReadDropped, Write], 1, true, [100, 1_000, 2_000, 2_000]),
    shape("dropped: write and read x1", &[WriteDropped, Read], 1, true, [100, 2_000, 2_000, 2_000]),
    shape("dropped: write and write x1", &[WriteDropped, Write], 1, true, [100, 2_000, 2_000, 1_000]),
    shape("dropped: write twice x1", &[WriteDropped, WriteDropped], 1, true, [100, 40_000, 40_000, 10_000]),
    shape("dropped: release of a reader, write x1", &[ReadReleaseDropped, Write], 1, true, [100, 800, 800, 1_000]),
    shape("dropped: release of a writer, read x1", &[WriteReleaseDropped, Read], 1, true, [100, 2_000, 2_000, 900]),
    shape(
        "dropped: release and write x1",
        &[WriteReleaseDropped, WriteDropped],
        1,
        true,
        [100, 40_000, 40_000, 10_000],
    ),
    shape(
        "dropped: write, read and write x1",
        &[WriteDropped, Read, Write],
        1,
        false,
        [1_000, 80_000, 1_000_000, 50_000],
    ),
    shape("dropped: read, read and write x1", &[ReadDropped, Read, Write], 1, true, [1_000, 200_000, 900_000, 100_000]),
    shape("R1x2W2x1", &[READS_TWICE, Write, Write], 1, true, [12_000, 11_000, 90_000, 10_000]),
    shape("puts: read and write x1", &[ReadAndPut, WriteAndLook], 1, true, [200, 160, 180, 130]),
    shape("puts: read and write x2", &[ReadAndPut, WriteAndLook], 2, true, [1_500, 1_400, 8_000, 4_000]),
    shape(
        "puts: read, read and write x1",
        &[ReadAndPut, ReadAndPut, WriteAndLook],
        1,
        true,
        [18_000, 17_000, 55_000, 11_000],
    ),
    shape("nodes: write, three give up, write", &[WRITES_AGAIN, Write], 1, true, [34_000, 115_000, 112_000, 30_000]),
    shape("nodes: read, three give up, read", &[READS_AGAIN, Write], 1, true, [11_000, 11_000, 18_000, 95_000]),
    shape("nodes: four reads give up", &[READS_IN_VAIN, Write], 1, true, [23_000, 22_000, 33_000, 260_000]),
    shape("nodes: four writes give up", &[WRITES_IN_VAIN, Write], 1, true, [68_000, 480_000, 470_000, 88_000]),
];

/// Jobs that are quick with other locks, but not with this one.
const SLOW: &[(LockKind, &str)] = &[
    (LockKind::ReaderPreference, "nodes: four writes give up"),
    (LockKind::Packed, "nodes: four writes give up"),
    (LockKind::WritersFirst, "nodes: four writes give up"),
    (LockKind::WritersFirst, "dropped: read, read and write x1"),
    (LockKind::Fair, "nodes: four reads give up"),
    (LockKind::Barging, "nodes: four writes give up"),
];

/// `cargo test` also runs a quick job, unless more than about twice this many states were recorded
/// with some lock.
const SMALL: u64 = 35_000;

/// Jobs on a fabric that delivers puts before later atomics: there the locks flush nothing, and
/// take different steps if operations complete when they are posted.
const IN_ORDER: [(&[Role], usize); 11] = [
    (&[Read, Write], 1),
    (&[Write, Write], 1),
    (&[ReadAndPut, WriteAndLook], 1),
    (&[WriteBefore, Write], 1),
    (&[Read, Write], 2),
    (&[Write, Write], 2),
    (&[ReadAndPut, WriteAndLook], 2),
    (&[Read, Read, Write], 1),
    (&[Read, Write, Write], 1),
    (&[WriteBefore, Write], 2),
    (&[Write, Write, Write], 1),
];

/// More ranks and rounds than can be exhausted.
const AT_RANDOM: [(&[Role], usize); 10] = [
    (&[Read, Read, Write, Write], 2),
    (&[Read, Write, Write, Write], 2),
    (&[Read, Read, Read, Write], 2),
    (&[Read, Read, Read, Write, Write], 2),
    (&[ReadBefore, ReadBefore, Write, Write], 3),
    (&[Read, Read, WriteBefore, WriteBefore], 3),
    (&[ReadBefore, ReadBefore, ReadBefore, WriteBefore, WriteBefore, WriteBefore], 3),
    (&[ReadBefore, TryRead, WriteBefore, TryWrite, Read, Write], 3),
    (&[ReadDropped, ReadReleaseDropped, WriteReleaseDropped, WriteDropped, Write], 3),
    (&[ReadDropped, WriteDropped, ReadBefore, WriteBefore, Read, Write], 3),
];

fn exploration(
    name: String,
    lock: LockKind,
    (roles, rounds): (&'static [Role], usize),
    mutant: Option<QueuedMutant>,
    expected: Expected,
) -> Exploration {
    Exploration::new(name, expected, move || explorer(roles), job(lock, roles, rounds, mutant))
}

/// Returns the weakest capabilities with puts in this order, if operations complete when they are
/// posted: only a lock that allows barging queries this.
fn immediate(put_order: PutOrder) -> Caps {
    let mut caps = Caps::weakest();
    (caps.put_order, caps.immediate) = (put_order, true);
    caps
}

/// Returns the explorations of one of the locks with queues.
pub(super) fn explorations(lock: LockKind) -> Vec<Exploration> {
    let which = QUEUED.iter().position(|queued| *queued == lock);
    let (mut all, of) = (Vec::new(), lock.type_name());
    for Shape { name, roles, rounds, quick, at_least } in SHAPES {
        let (most, at_least) =
            (at_least.into_iter().max().unwrap_or_default(), which.map_or(1, |which| at_least[which]));
        let size = match quick && !SLOW.contains(&(lock, name)) {
            true if most <= SMALL => Size::Test,
            true => Size::Quick,
            false => Size::Full,
        };
        let expected = Expected::Exhausted { at_least };
        all.push(exploration(format!("{of}: {name}"), lock, (roles, rounds), None, expected).of_size(size));
        if lock == LockKind::Barging {
            let explorer = move || explorer(roles).caps(immediate(PutOrder::None));
            let name = format!("{of}: {name}, immediate");
            all.push(Exploration::new(name, expected, explorer, job(lock, roles, rounds, None)).of_size(size));
        }
    }
    for QueuedMutantCase { mutant, roles, rounds, .. } in queued_mutants().filter(|mutant| mutant.lock == lock) {
        let roles_of: Vec<_> = roles.iter().map(|role| format!("{role:?}")).collect();
        let name = format!("{of}: {mutant:?} ({}, x{rounds})", roles_of.join(" "));
        let expected = Expected::Violated { saying: "", within: 500_000 };
        let job = (roles, rounds);
        if mutant == ToldTooLate {
            // Exploring all orders takes long.
            let random = Expected::ViolatedAtRandom { runs: 200_000 };
            all.push(exploration(name.clone(), lock, job, Some(mutant), random));
            all.push(exploration(name, lock, job, Some(mutant), expected).of_size(Size::Full));
        } else {
            all.push(exploration(name, lock, job, Some(mutant), expected));
        }
    }
    let caps = immediate(PutOrder::AllTargets);
    let mut in_order = |name: String, expected, roles: &'static [Role], rounds, mutant: Option<QueuedMutant>| {
        let explorer = move || explorer(roles).caps(caps);
        let name = format!("{of}: {name}{roles:?} x{rounds}, puts in order");
        // With two rounds there are up to 400,000 states, with three ranks up to five million.
        let size = if roles.len() + rounds > 3 && mutant.is_none() { Size::Full } else { Size::Test };
        all.push(Exploration::new(name, expected, explorer, job(lock, roles, rounds, mutant)).of_size(size));
    };
    for (roles, rounds) in IN_ORDER {
        in_order(String::new(), Expected::Exhausted { at_least: 1 }, roles, rounds, None);
    }
    for (mutant, _, roles, rounds) in IN_ORDER_MUTANTS.iter().filter(|(_, locks, ..)| locks.contains(&lock)) {
        let expected = Expected::Violated { saying: "", within: 500_000 };
        in_order(format!("{mutant:?} "), expected, roles, *rounds, Some(*mutant));
    }
    for (roles, rounds) in AT_RANDOM {
        let name = format!("{of}: {roles:?} x{rounds}");
        all.push(exploration(name, lock, (roles, rounds), None, Expected::Sampled { runs: 2_000 }));
    }
    all
}
