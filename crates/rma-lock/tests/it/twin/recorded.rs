//! Recorded runs over thread ranks: all accesses of all ranks, in the order in which they took
//! effect.

use super::Same;
use checks::jobs::threads;
use rdma_fabric::{
    Amo, Fabric, Group, ProgramResult, Rank, RemoteAddr, Result, forward,
    provider::{Place, Posted, Provider, Sink, Source},
};
use rma_lock::{
    Guard, RmaLock,
    locks::{BargingLock, FairLock, PackedLock, RpLock, WritersFirstLock},
};
use std::{
    fmt,
    hint::spin_loop,
    mem,
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::yield_now,
};
use twin::{Access, Lock, Replay, Role, Word};

/// An access of a rank to a word of the model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) by: usize,
    pub(super) word: Word,
    pub(super) access: Access,
    /// The value that the word held or, after a put or store, holds.
    pub(super) bits: u64,
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recorded { by, word, access, bits } = self;
        write!(f, "rank {by}: {access:x?} of {bits:#x} at {word:?}")
    }
}

/// A run so far: the index of the data's region, and the accesses as named by their ranks' fabrics.
#[derive(Debug, Default)]
struct Run {
    data: u32,
    accesses: Vec<(usize, RemoteAddr, Access, u64)>,
}

impl Run {
    /// Returns the accesses to words of the model.
    fn known(self, same: &Same) -> Vec<Recorded> {
        let Run { data, accesses } = self;
        let known = accesses.into_iter().filter_map(|(by, mut at, access, bits)| {
            // In the model, the lock's words are in region 0 and the data in region 1.
            at.region.index = u32::from(at.region.index == data);
            same.word(at).map(|word| Recorded { by, word, access, bits })
        });
        known.collect()
    }
}

/// The run so far. The thread that holds the lock makes the next access.
#[derive(Clone, Debug, Default)]
struct Record(Arc<Mutex<Run>>);

impl Record {
    fn lock(&self) -> MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A rank's fabric that records, and occasionally lets other ranks go first.
#[derive(Debug)]
struct Recorder {
    below: Fabric,
    record: Record,
    /// The state of a sequence of numbers that depends only on its seed (splitmix64).
    random: AtomicU64,
    /// One in this number of accesses lets other ranks go first.
    every: u64,
}

impl Recorder {
    /// Returns a fabric that records.
    fn over(fabric: &Fabric, record: Record, seed: u64) -> Fabric {
        let random = AtomicU64::new(seed << 8 | u64::from(fabric.rank().number()));
        let every = [1, 2, 4, 16][(seed % 4) as usize];
        fabric.layered(Recorder { below: fabric.clone(), record, random, every })
    }

    fn number(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.random.fetch_add(STEP, Relaxed).wrapping_add(STEP);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn pause(&self) {
        let number = self.number();
        if !number.is_multiple_of(self.every) {
            return;
        }
        match number >> 32 & 3 {
            0 => (0..number >> 48 & 0xfff).for_each(|_| spin_loop()),
            _ => yield_now(),
        }
    }

    /// Makes one access. `then` returns its result, and the value that the word held or holds.
    fn access<T>(&self, at: &Place, access: Access, then: impl FnOnce() -> (T, Option<u64>)) -> T {
        assert_eq!(at.len(), 8, "{at:?} is no word");
        self.pause();
        let mut record = self.record.lock();
        let (out, bits) = then();
        if let Some(bits) = bits {
            record.accesses.push((self.below.rank().index(), at.addr(), access, bits));
        }
        out
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("a word"))
}

impl Provider for Recorder {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, wake, nop, poll, test, forget, try_notice);
    forward!(copy, poll_wait, end_wait, now, detach, optional);

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        self.access(from, if waiting { Access::Watch } else { Access::Load }, || {
            let read = self.below.provider().read(from, into, waiting);
            let bits = read.is_ok().then(|| word_of(into));
            (read, bits)
        })
    }

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()> {
        self.access(to, Access::Store, || {
            let written = self.below.provider().write(to, from, waited);
            let bits = written.is_ok().then(|| word_of(from));
            (written, bits)
        })
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        let Source::Bytes(bytes) = from else { panic!("a put of a place to {to:?}") };
        self.access(to, Access::Put, || over(self.below.provider().put(to, from, notice), |_| word_of(bytes)))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        let Sink::Bytes(bytes) = to else { panic!("a get of {from:?} to a place") };
        self.access(from, Access::Get, || {
            over(self.below.provider().get(from, Sink::Bytes(&mut *bytes)), |_| word_of(bytes))
        })
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.access(word, Access::Atomic(amo), || over(self.below.provider().atomic(word, amo), |old| old))
    }
}

/// Returns a completed operation, with the value that it has found or left in the word.
fn over(posted: Posted, bits: impl FnOnce(u64) -> u64) -> (Posted, Option<u64>) {
    let bits = match &posted {
        Posted::Complete(old) => Some(bits(*old)),
        Posted::Failed(_) => None,
        posted => panic!("{posted:?}: it is to be over at once"),
    };
    (posted, bits)
}

/// Takes the lock, reads or changes the data, and releases the lock: one rank's part of several
/// runs in sequence, each with a separate lock.
async fn play<L: RmaLock>(
    plain: Fabric,
    same: Same,
    seeds: Range<u64>,
    (record, runs): (Record, &Mutex<Vec<Run>>),
) -> ProgramResult<()> {
    let mut world = Group::world(&plain).await?;
    let (me, last) = (plain.rank().index(), Rank::new(plain.ranks() as u32 - 1));
    for seed in seeds {
        let fabric = Recorder::over(&plain, record.clone(), seed);
        let lock = L::symmetric(&fabric, Rank::new(0)).await?;
        // The data is at the last rank: it need not be at the lock's home.
        let shared = fabric.alloc_symmetric(8).await?;
        let word = fabric.remote_word::<u64>(shared.at(last, 0))?;
        record.lock().data = shared.key().index;
        world.barrier().await?;
        for _ in 0..same.rounds {
            if same.roles[me] == Role::Write {
                let guard = lock.write().await?;
                let before = fabric.get_word(&word).await?;
                fabric.put_word(&word, before + 1).await?;
                guard.release().await?;
            } else {
                let guard = lock.read().await?;
                fabric.get_word(&word).await?;
                guard.release().await?;
            }
        }
        world.barrier().await?;
        // The other ranks make no accesses before the next barrier.
        if me == 0 {
            let run = mem::take(&mut *record.lock());
            runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        }
    }
    Ok(())
}

/// Runs a job over threads once for each seed, and returns the accesses of each run. The
/// interleaving of ranks also depends on the system, so a seed does not reproduce a run; its record
/// does.
///
/// # Panics
/// If a rank fails, or the ranks wait for each other.
pub(super) fn record(same: &Same, seeds: Range<u64>) -> Vec<Vec<Recorded>> {
    let (same, record, runs) = (*same, Record::default(), Mutex::default());
    let job = threads(same.roles.len()).segment_bytes(1 << 20);
    let ended = job.run(&async |fabric: Fabric| {
        let (to, seeds) = ((record.clone(), &runs), seeds.clone());
        match same.lock {
            Lock::Flat => play::<RpLock>(fabric, same, seeds, to).await,
            Lock::Packed => play::<PackedLock>(fabric, same, seeds, to).await,
            Lock::Passing => play::<BargingLock>(fabric, same, seeds, to).await,
            Lock::WritersFirst => play::<WritersFirstLock>(fabric, same, seeds, to).await,
            Lock::Fair => play::<FairLock>(fabric, same, seeds, to).await,
            lock @ (Lock::Barging | Lock::Aggregated) => panic!("{lock:?} is not followed over threads"),
        }
    });
    let runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = ended {
        let (seed, run) = (seeds.start + runs.len() as u64, mem::take(&mut *record.lock()).known(&same));
        let fits = follow(&mut Replay::at_once(&same.model()), &run);
        panic!("{same:?}, seed {seed}: {error}; in the model: {fits:?}; {run:#?}");
    }
    runs.into_iter().map(|run| run.known(&same)).collect()
}

/// Follows accesses. Returns the largest number of states in which the model may have been, or a
/// description of the mismatch.
pub(super) fn follow(replay: &mut Replay<'_>, run: &[Recorded]) -> std::result::Result<usize, String> {
    let mut most = replay.states();
    for (number, Recorded { by, word, access, bits }) in run.iter().enumerate() {
        let did = replay.see(*by, *word, *access, *bits);
        did.map_err(|refused| format!("access {number}: {refused}"))?;
        most = most.max(replay.states());
    }
    Ok(most)
}
