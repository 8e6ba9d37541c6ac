//! One hashtable in the memory of all ranks, each part with its own lock.
//!
//! Every rank inserts keys and looks up those of others, one insert for nine lookups; at the end
//! all keys must be there. The table is [`repro::workloads::hashtable`], generic over the lock. Run
//! it between real processes, and in virtual time:
//!
//! ```text
//! cargo example distributed_hashtable --release -- --ranks 4
//! cargo example distributed_hashtable --release -- --ranks 4 --fabric virt
//! cargo example distributed_hashtable --release -- --ranks 4 --lock back-off
//! ```

use onesided::{
    Fabric, Group, ProgramResult, Rank,
    lock::{RwLock, locks::LockKind},
};
use repro::workloads::{
    hashtable::{Hashtable, VolumeSize},
    locks::{Draws, WriterShare},
};
use std::{ffi::OsString, process::ExitCode};

/// The number of keys that each rank inserts.
const KEYS: u64 = 500;
/// Fewer buckets than keys, so that the heap is used.
const SIZE: VolumeSize = VolumeSize { buckets: 400, heap: 4000 };

/// Inserts and looks up keys under locks of this kind.
async fn distributed_hashtable(fabric: Fabric, kind: LockKind) -> ProgramResult<()> {
    let (me, ranks) = (u64::from(fabric.rank().number()), fabric.ranks() as u64);
    let mut world = Group::world(&fabric).await?;
    // One volume for each rank, in that rank's memory.
    let table = Hashtable::<RwLock>::symmetric(&mut world, fabric.ranks(), SIZE, kind.into()).await?;
    world.barrier().await?;

    let start = fabric.now();
    let mut draws = Draws::new(1, fabric.rank());
    let (mut inserted, mut found, mut looked) = (0, 0, 0u64);
    while inserted < KEYS {
        let drawn = draws.next();
        if drawn.writes(WriterShare::per_mille(100)) {
            let key = me * KEYS + inserted;
            if let Some(before) = table.insert(key, value_of(key)).await? {
                return Err(format!("key {key} had the value {before} before anybody inserted it").into());
            }
            inserted += 1;
        } else {
            let key = drawn.of(ranks * KEYS);
            looked += 1;
            if let Some(value) = table.get(key).await? {
                found += 1;
                check(key, value)?;
            }
        }
    }
    let took = fabric.now() - start;

    world.barrier().await?;
    for key in 0..ranks * KEYS {
        let value = table.get(key).await?.ok_or_else(|| format!("key {key} is lost"))?;
        check(key, value)?;
    }
    let keys = table.count().await?;
    if keys != ranks * KEYS {
        return Err(format!("{keys} keys instead of {}", ranks * KEYS).into());
    }
    if fabric.rank() == Rank::new(0) {
        println!("{ranks} ranks inserted {keys} keys under {kind} locks, none lost");
        println!("rank 0: {inserted} inserts and {looked} lookups, of which {found} met a key, in {took:?}");
    }
    Ok(world.barrier().await?)
}

fn value_of(key: u64) -> u64 {
    key * key + 1
}

fn check(key: u64, value: u64) -> Result<(), String> {
    let right = value_of(key);
    if value == right { Ok(()) } else { Err(format!("key {key} has the value {value} instead of {right}")) }
}

const USAGE: &str = "\
One hashtable in the memory of all ranks; every rank inserts, looks up, and in the end all keys must be there.

  --lock NAME          the lock of each part (that of the paper)
";

/// Parses the lock given by `--lock`; by default the queue lock that prefers readers.
fn lock(rest: Vec<OsString>) -> Result<LockKind, String> {
    match &rest[..] {
        [] => Ok(LockKind::ReaderPreference),
        [option, name] if option == "--lock" => name.to_string_lossy().parse().map_err(|error| format!("{error}")),
        rest => Err(format!("only `--lock NAME` is left to say, not {rest:?}")),
    }
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, |rest| {
        lock(rest).map(|lock| async move |fabric| distributed_hashtable(fabric, lock).await)
    })
}
