//! A rank kills itself in the middle of an update under a lock. The others notice, repair the
//! record, and continue.
//!
//! ```text
//! cargo example crash_recovery --release -- --ranks 4
//! cargo example crash_recovery --release -- --ranks 4 --fabric virt
//! ```
//!
//! Between processes the rank is killed as by `kill -9`. Elsewhere its program panics, and the rank
//! is lost to the others just the same. A job that has lost a rank ends with that rank's exit code,
//! so the launcher's is not 0.

use onesided::lock::Guard;
use onesided::{
    Backend, Group, ProgramResult, Rank, RemoteWord,
    lock::{
        Lock, LockError,
        locks::{RecoverableLock, Recovery},
    },
};
use rdma_fabric::Fabric;
use std::{process::Command, time::Duration};

/// The rank that keeps the lock and the record. It must survive.
const HOME: Rank = Rank::new(0);

/// Two halves, which are equal when no rank holds the lock.
type Record = [RemoteWord<u64>; 2];

/// Each rank adds to both halves of a record, `rounds` times; the last one dies between them in its
/// second round.
async fn crash_recovery(fabric: Fabric, rounds: u64, processes: bool) -> ProgramResult<()> {
    let (me, last) = (fabric.rank(), Rank::new(fabric.ranks() as u32 - 1));
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(16).await?;
    let record = [fabric.remote_word(window.at(HOME, 0))?, fabric.remote_word(window.at(HOME, 8))?];
    // One rank may die. Each death consumes an epoch, and 136 bytes at each rank.
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(1)).await?;
    let survivors = world.split((me != last || me == HOME).then_some(0), 0).await?;
    world.barrier().await?;

    for round in 0..rounds {
        let guard = match lock.write().await {
            Err(LockError::Torn { by }) => {
                let mut guard = lock.mend().await?;
                // Another rank may have repaired it first.
                if guard.torn().is_some() {
                    mend(&fabric, &record, by).await?;
                    guard.clear_torn().await?;
                }
                guard
            }
            guard => guard?,
        };
        let value = fabric.get_word(&record[0]).await?;
        fabric.put_word(&record[0], value + 1).await?;
        if me == last && me != HOME && round == 1 {
            fabric.flush(HOME).await?;
            println!("{me} dies with one half of version {} written", value + 1);
            die(processes);
        }
        fabric.put_word(&record[1], value + 1).await?;
        guard.release().await?;
        fabric.sleep(Duration::from_millis(1)).await;
    }

    let mut survivors = survivors.ok_or("the rank that was to die lives")?;
    survivors.barrier().await?;
    if me == HOME {
        let [a, b] = look(&fabric, &record).await?;
        println!("{} survivors went on; the record holds {a} and {b}", survivors.len());
        if a != b {
            return Err("the record is torn".into());
        }
    }
    Ok(survivors.barrier().await?)
}

async fn look(fabric: &Fabric, record: &Record) -> ProgramResult<[u64; 2]> {
    Ok([fabric.get_word(&record[0]).await?, fabric.get_word(&record[1]).await?])
}

/// Undoes the first half, which is newer than the second or equal to it.
async fn mend(fabric: &Fabric, record: &Record, by: Rank) -> ProgramResult<()> {
    let [a, b] = look(fabric, record).await?;
    println!("{} finds {a} and {b}, torn by {by}, and mends that", fabric.rank());
    fabric.put_word(&record[0], b).await?;
    Ok(fabric.flush(HOME).await?)
}

/// Ends this rank without notifying any other.
fn die(processes: bool) {
    if processes {
        let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
        loop {
            std::thread::park();
        }
    }
    panic!("this rank dies on purpose");
}

fn main() -> std::process::ExitCode {
    let of_processes = |backend| matches!(backend, Backend::Shm | Backend::Cluster);
    let processes = onesided::Launch::from_args().is_ok_and(|(launch, _)| of_processes(launch.backend));
    onesided::launch(async move |fabric| crash_recovery(fabric, 4, processes).await)
}
