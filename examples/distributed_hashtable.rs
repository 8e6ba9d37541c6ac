//! One hashtable in the memory of all ranks, each part with its own lock.
//!
//! Every rank inserts keys and looks up those of others, one insert for nine lookups; at the end
//! all keys must be there. The table is [`workloads::hashtable`], generic over the lock. Run
//! it between real processes, and in virtual time:
//!
//! ```text
//! cargo example distributed_hashtable --release -- --ranks 4
//! cargo example distributed_hashtable --release -- --ranks 4 --fabric virt
//! cargo example distributed_hashtable --release -- --ranks 4 --lock back-off --keys 10000
//! ```

use onesided::{
    Fabric, Group, Program, ProgramResult, Rank,
    lock::{RwLock, locks::LockKind},
};
use std::{ffi::OsString, process::ExitCode};
use workloads::{
    hashtable::{Hashtable, VolumeSize},
    locks::{Draws, WriterShare},
};

/// Inserts `keys` keys at each rank and looks up others, under locks of this kind.
async fn distributed_hashtable(fabric: Fabric, kind: LockKind, keys: u32) -> ProgramResult<()> {
    // Fewer buckets than keys, so that the heap is used.
    let size = VolumeSize { buckets: keys / 5 * 4, heap: keys.saturating_mul(8) };
    let keys = u64::from(keys);
    let (me, ranks) = (u64::from(fabric.rank().number()), fabric.ranks() as u64);
    let mut world = Group::world(&fabric).await?;
    // One volume for each rank, in that rank's memory.
    let table = Hashtable::<RwLock>::symmetric(&mut world, fabric.ranks(), size, kind.into()).await?;
    world.barrier().await?;

    let start = fabric.now();
    let mut draws = Draws::new(1, fabric.rank());
    let (mut inserted, mut found, mut looked) = (0, 0, 0u64);
    while inserted < keys {
        let drawn = draws.next();
        if drawn.writes(WriterShare::per_mille(100)) {
            let key = me * keys + inserted;
            if let Some(before) = table.insert(key, value_of(key)).await? {
                return Err(format!("key {key} had the value {before} before anybody inserted it").into());
            }
            inserted += 1;
        } else {
            let key = drawn.of(ranks * keys);
            looked += 1;
            if let Some(value) = table.get(key).await? {
                found += 1;
                check(key, value)?;
            }
        }
    }
    let took = fabric.now() - start;

    world.barrier().await?;
    for key in 0..ranks * keys {
        let value = table.get(key).await?.ok_or_else(|| format!("key {key} is lost"))?;
        check(key, value)?;
    }
    let stored = table.count().await?;
    if stored != ranks * keys {
        return Err(format!("{stored} keys instead of {}", ranks * keys).into());
    }
    if fabric.rank() == Rank::new(0) {
        let each = took.div_f64((inserted + looked) as f64);
        println!("{ranks} ranks inserted {stored} keys under {kind} locks, none lost");
        println!("rank 0: {inserted} inserts and {looked} lookups, of which {found} met a key: {each:?} a call");
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
  --keys N             keys that each rank inserts (500)
";

/// Returns the program selected by the rest of the command line. The default lock is the queue lock that prefers
/// readers.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let lock = rest.opt_value_from_str("--lock")?.unwrap_or(LockKind::ReaderPreference);
        let keys: u32 = rest.opt_value_from_str("--keys")?.unwrap_or(500);
        Ok(async move |fabric| distributed_hashtable(fabric, lock, keys).await)
    };
    let program = told().map_err(|error: pico_args::Error| error.to_string())?;
    match &rest.finish()[..] {
        [] => Ok(program),
        more => Err(format!("there is no {more:?}; --help says what there is")),
    }
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, program)
}
