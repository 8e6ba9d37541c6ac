//! The ACP paper: its published figures in virtual time, and adds and copies by global address between threads of this
//! machine.
//!
//! Run with `cargo bench --bench paper_acp`.

mod paper;

use paper::Reproduced;
use repro::{
    ReproError,
    acp_paper::{self, AcpPlan},
    figures::Paper,
};

fn main() {
    paper::published(Paper::Acp, reproduce);
    #[cfg(target_os = "linux")]
    threads::bench();
}

fn reproduce(smoke: bool) -> Result<Reproduced, ReproError> {
    let plan = if smoke { AcpPlan::quick(0) } else { AcpPlan::paper(0) }.published();
    let runs = acp_paper::run(&plan, &mut paper::progress())?;
    Ok(Reproduced { rows: acp_paper::compare(&runs), jobs: runs.jobs().cloned().collect() })
}

#[cfg(target_os = "linux")]
mod threads {
    use super::paper::threads::{Machine, Operations, criterion, in_jobs, run};
    use onesided::{
        Fabric, ProgramResult, Rank,
        acp::{Acp, Options, Order},
        sim::shm::Threads,
    };
    use repro::{
        acp_paper::{Condition, How},
        figures::Paper,
        workloads::{Target, Together, global_adds},
    };
    use std::time::Duration;

    pub(super) fn bench() {
        let mut criterion = criterion();
        let mut operations = Operations::new(&mut criterion, Paper::Acp);
        for target in Target::BOTH {
            let atomic = |machine: &Machine, times| machine.fetch_add(times);
            let direct = (String::new(), move |times| add(How::Direct, target, times));
            operations.beside(&format!("{} add", target.name()), ("atomic", atomic), [direct]);
        }
        // A helper is another thread for each rank: the limit is a flag to it and back. On fewer than four cores threads
        // share cores.
        let table = Condition::TABLE.into_iter().zip(1..);
        let table = table.map(|(condition, number)| (format!("condition {number}"), How::Table(condition)));
        let ways = table.chain([("two helpers".to_owned(), How::Split)]);
        let adds = ways.map(|(name, how)| (name, move |times| add(how, Target::Remote, times)));
        let flags = |machine: &Machine, times| machine.message(0, 2 * times);
        operations.beside("remote add by a helper", ("flag and back", flags), adds);
        for bytes in [8, 1 << 20] {
            let bare = |machine: &Machine, times| machine.copy(bytes, times);
            let copy = move |times| copy(bytes, times);
            operations.beside(&format!("copy, {bytes} B"), ("copy", bare), [(String::new(), copy)]);
        }
    }

    fn add(how: How, target: Target, times: u64) -> Duration {
        let options = how.options().expect("a way of this library");
        in_jobs(times, 100_000, |count| {
            let program = async |fabric| global_adds(fabric, options, target, count, Together::Barrier).await;
            match how {
                How::Direct => run(2, &program)[0],
                // Helpers would be bound to the cores of their ranks.
                _ => Threads::new(2).shared_address_space(true).run(&program).expect("it runs")[0],
            }
        })
    }

    /// Copies between the starter memories of two ranks.
    fn copy(bytes: usize, times: u64) -> Duration {
        in_jobs(times, u32::MAX, |count| run(2, &async |fabric| copies(fabric, bytes, count).await)[0])
    }

    /// Returns rank 0's picoseconds for `count` copies, after as many as bring the memory into the caches.
    async fn copies(fabric: Fabric, bytes: usize, count: u32) -> ProgramResult<u64> {
        let acp = Acp::init_with(&fabric, Options::default().starter_bytes(bytes)).await?;
        let (own, peer) = (acp.starter(acp.rank())?, acp.starter(Rank::new(1))?);
        let mut took = 0;
        if acp.rank() == Rank::new(0) {
            acp.write(own, &vec![1u8; bytes]).await?;
            for count in [count.div_ceil(8), count] {
                let begun = fabric.now();
                for _ in 0..count {
                    let handle = acp.copy(peer, own, bytes, Order::None).await?;
                    acp.complete(handle).await?;
                }
                took = fabric.now().picos_since(begun);
            }
        }
        acp.finalize().await?;
        Ok(took)
    }
}
