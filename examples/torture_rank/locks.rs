//! Rounds of locks: a record of two halves that are equal unless a holder is inside.

use crate::{Play, Rounds};
use named_lock::{Error, NamedLock, WriteGuard};
use onesided::{
    Deps, Fabric, FabricError, Group, ProgramResult, Rank, RemoteWord,
    lock::{
        Guard, Lock, LockError, RwLock,
        locks::{RecoverableLock, Recovery},
    },
};
use std::{fs::File, os::unix::fs::FileExt, time::Duration};

/// The rank that keeps the locks and the record.
const HOME: Rank = Rank::new(0);
/// The time for which a lock by name may be held by others. A time-out, not a measurement.
const PATIENCE: Duration = Duration::from_secs(20);

type Record = [RemoteWord<u64>; 2];

async fn halves(fabric: &Fabric, record: &Record) -> ProgramResult<[u64; 2]> {
    Ok([fabric.get_word(&record[0]).await?, fabric.get_word(&record[1]).await?])
}

/// Adds 1 to both halves.
async fn write(fabric: &Fabric, record: &Record) -> ProgramResult<()> {
    let [a, b] = halves(fabric, record).await?;
    if a != b {
        return Err(format!("the record is torn: {a} and {b}").into());
    }
    fabric.put_word(&record[0], a + 1).await?;
    Ok(fabric.put_word(&record[1], a + 1).await?)
}

/// A readers-writer lock that a death breaks: the others must be notified.
pub(super) async fn lock(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(16).await?;
    let record = [memory.word_of(fabric, HOME, 0)?, memory.word_of(fabric, HOME, 8)?];
    let lock = RwLock::symmetric(fabric, HOME).await?;
    world.barrier().await?;
    let mut rounds = Rounds::begin(play, fabric.rank().number())?;
    loop {
        for _ in 0..8 {
            let guard = lock.write().await?;
            write(fabric, &record).await?;
            guard.release().await?;
            let guard = lock.read().await?;
            let [a, b] = halves(fabric, &record).await?;
            guard.release().await?;
            if a != b {
                return Err(format!("a reader saw {a} and {b}").into());
            }
        }
        if rounds.are_over(&mut world).await? {
            break;
        }
    }
    Ok(rounds.made)
}

/// The lock that survives the death of any rank but its home: the others repair the record, and
/// continue.
pub(super) async fn recoverable(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let me = fabric.rank();
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(16 + 8 * fabric.ranks() + 8).await?;
    let record = [memory.word_of(fabric, HOME, 0)?, memory.word_of(fabric, HOME, 8)?];
    let lock = RecoverableLock::symmetric_with(fabric, HOME, Recovery::of_deaths(3)).await?;
    world.barrier().await?;
    let mut rounds = Rounds::begin(play, me.number())?;
    loop {
        let guard = match lock.write().await {
            Err(LockError::Torn { .. }) => {
                let mut guard = lock.mend().await?;
                // Another rank may have repaired it first.
                if guard.torn().is_some() {
                    let [_, b] = halves(fabric, &record).await?;
                    fabric.put_word(&record[0], b).await?;
                    fabric.flush(HOME).await?;
                    guard.clear_torn().await?;
                }
                guard
            }
            guard => guard?,
        };
        write(fabric, &record).await?;
        guard.release().await?;
        if rounds.has_ended() {
            break;
        }
    }
    // The home stays until no other rank needs the lock.
    let mark = |rank: Rank| 16 + 8 * rank.index();
    let ended = 16 + 8 * fabric.ranks();
    if me != HOME {
        fabric.put_word(&memory.word_of::<u64>(fabric, HOME, mark(me))?, 1).await?;
        fabric.flush(HOME).await?;
        fabric.wait_until(&memory.word::<u64>(fabric, ended)?, Deps::One(HOME), |word| word == 1).await?;
        return Ok(rounds.made);
    }
    let others = (1..fabric.ranks() as u32).map(Rank::new);
    for other in others.clone() {
        let word = memory.word::<u64>(fabric, mark(other))?;
        match fabric.wait_until(&word, Deps::One(other), |word| word == 1).await {
            Ok(_) | Err(FabricError::PeerLost { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for other in others {
        // The memory of a rank that is lost can't be resolved.
        let told = match memory.word_of::<u64>(fabric, other, ended) {
            Ok(word) => fabric.put_word(&word, 1).await,
            Err(error) => Err(error),
        };
        match told {
            Ok(()) | Err(FabricError::PeerLost { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rounds.made)
}

/// The lock by name, between processes that are not ranks.
pub(super) fn named(play: &Play, number: u32) -> ProgramResult<u64> {
    let lock = NamedLock::open_path(play.report.join("named.lock"))?;
    let path = play.report.join("named.record");
    let record = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
    let mut rounds = Rounds::begin(play, number)?;
    loop {
        let guard = match lock.write_within(PATIENCE) {
            Err(Error::Torn { .. }) => mended(&lock, &record)?,
            guard => guard?,
        };
        let [a, b] = read(&record)?;
        if a != b {
            return Err(format!("the record is torn: {a} and {b}").into());
        }
        record.write_all_at(&(a + 1).to_ne_bytes(), 0)?;
        record.write_all_at(&(a + 1).to_ne_bytes(), 8)?;
        guard.release()?;
        if rounds.has_ended() {
            return Ok(rounds.made);
        }
    }
}

fn mended(lock: &NamedLock, record: &File) -> ProgramResult<WriteGuard> {
    let mut guard = lock.mend_within(PATIENCE)?;
    if guard.torn().is_some() {
        let [_, b] = read(record)?;
        record.write_all_at(&b.to_ne_bytes(), 0)?;
        guard.clear_torn()?;
    }
    Ok(guard)
}

/// Reads both halves; an empty file stands for zeros.
fn read(record: &File) -> ProgramResult<[u64; 2]> {
    let mut halves = [0; 2];
    for (half, at) in halves.iter_mut().zip([0, 8]) {
        let mut bytes = [0; 8];
        if record.read_at(&mut bytes, at)? == 8 {
            *half = u64::from_ne_bytes(bytes);
        }
    }
    Ok(halves)
}
