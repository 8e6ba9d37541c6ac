//! Several threads of one rank, and tasks of a runtime with several threads.

use acp::{Acp, AcpError, GlobalAtomic, Options, Order, Threads};
use checks::jobs::threads;
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};
use std::time::Duration;
use tofu2_sim::shm::block_on;
use tokio::runtime::Builder;

const RANKS: u32 = 2;
const WORKERS: u64 = 4;
const ROUNDS: u64 = 500;

fn options() -> Options {
    Options::default().threads(Threads::Many).depth(16)
}

/// The work of one thread, or task, of a rank: in each round it increments a shared word and a word
/// of its own, and copies the latter, and a longer piece, to locations of its own at the other
/// rank. Returns the sum of the shared word's previous values.
async fn work(acp: Acp, number: u64) -> ProgramResult<u64> {
    let me = acp.rank().number();
    let [own, peer] = [me, 1 - me].map(|rank| acp.starter(Rank::new(rank)));
    let (own, peer) = (own?.offset_by(4096 * (number + 1))?, peer?.offset_by(4096 * (number + 1))?);
    let shared = acp.starter(Rank::new(0))?;
    let mut sum = 0;
    for round in 1..=ROUNDS {
        let raised = acp.atomic(own, shared, Amo::Add(1u64), Order::None).await?;
        acp.complete(raised).await?;
        sum += acp.load::<u64>(own).await?;
        let counted = acp.atomic(own.offset_by(8)?, own.offset_by(16)?, Amo::Add(1u64), raised).await?;
        let short = acp.copy(peer.offset_by(24)?, own.offset_by(16)?, 8, counted).await?;
        let long = acp.copy(peer.offset_by(1024)?, own.offset_by(16)?, 1000, Order::Continue).await?;
        acp.complete(long).await?;
        assert!(acp.is_complete(short)?);
        let seen: [u64; 2] = [acp.load(peer.offset_by(24)?).await?, acp.load(peer.offset_by(1024)?).await?];
        assert_eq!(seen, [round, round]);
    }
    Ok(sum)
}

async fn finish(acp: Acp, sums: Vec<u64>) -> ProgramResult<()> {
    acp.sync().await?;
    let shared = GlobalAtomic::<u64>::new(acp.starter(Rank::new(0))?)?;
    let all = u64::from(RANKS) * WORKERS * ROUNDS;
    assert_eq!(shared.load(&acp).await?, all);
    let sum = GlobalAtomic::<u64>::new(acp.starter(Rank::new(0))?.offset_by(64)?)?;
    sum.fetch_add(&acp, sums.iter().sum()).await?;
    acp.sync().await?;
    // Each value was the previous value of exactly one addition.
    assert_eq!(sum.load(&acp).await?, all * (all - 1) / 2);
    acp.finalize().await?;
    Ok(())
}

fn starter_bytes() -> usize {
    4096 * (WORKERS as usize + 1)
}

/// A call by another thread.
type Call<'a> = dyn Fn(&Acp) -> acp::Result<()> + Sync + 'a;

#[test]
fn threads_of_a_rank_issue_at_once() {
    let ran = threads(RANKS as usize).run_with(|fabric| {
        let acp = block_on(Acp::init_with(&fabric, options().starter_bytes(starter_bytes())))?;
        let sums = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    let acp = acp.clone();
                    scope.spawn(move || block_on(work(acp, number)))
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("no panic")).collect::<ProgramResult<Vec<_>>>()
        })?;
        block_on(finish(acp, sums))
    });
    ran.expect("the job");
}

#[test]
fn tasks_of_a_runtime_issue_at_once() {
    let ran = threads(RANKS as usize).run_with(|fabric: Fabric| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
        let rank = async {
            let acp = Acp::init_with(&fabric, options().starter_bytes(starter_bytes())).await?;
            let workers: Vec<_> = (0..WORKERS).map(|number| tokio::spawn(work(acp.clone(), number))).collect();
            let mut sums = Vec::new();
            for worker in workers {
                sums.push(worker.await??);
            }
            finish(acp, sums).await
        };
        let guarded = async { tokio::time::timeout(Duration::from_secs(20), rank).await };
        runtime.block_on(guarded).unwrap_or_else(|_| Err("nothing happened for 20 s".into()))
    });
    ran.expect("the job");
}

#[test]
fn one_thread_means_one() {
    let ran = threads(1).run_with(|fabric| {
        let acp = block_on(Acp::init(&fabric))?;
        let own = acp.starter(Rank::new(0))?;
        let elsewhere =
            |call: &Call<'_>| std::thread::scope(|scope| scope.spawn(|| call(&acp)).join().expect("no panic"));
        let calls: [&Call<'_>; 5] = [
            &|acp| block_on(acp.copy(own, own, 8, Order::None)).map(drop),
            &|acp| block_on(acp.atomic(own, own, Amo::Add(1u64), Order::None)).map(drop),
            &|acp| block_on(acp.load::<u64>(own)).map(drop),
            &|acp| block_on(acp.complete_all()),
            &|acp| acp.allocate(8, 0).map(drop),
        ];
        for call in calls {
            assert_eq!(elsewhere(call), Err(AcpError::OtherThread));
            // The turns of other threads were not affected.
            assert_eq!(block_on(acp.load::<u64>(own)), Ok(0));
        }
        block_on(acp.finalize())?;
        Ok(())
    });
    ran.expect("the job");
}
