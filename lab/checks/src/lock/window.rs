//! Windows: the operations of an epoch have taken effect when the epoch has ended, and none takes
//! effect before the memory was exposed.

mod mutants;

use crate::exploration::{Expected, Exploration, Run};
use WindowMutant::*;
use WindowUse::*;
use explore::{Explorer, mutant::mutated};
use mutants::{MutatedWindow, WindowMutant};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{LockMode, Op, Window};
use std::{future::poll_fn, task::Poll};

/// A job with one mutated step, or none.
#[derive(Clone, Copy, Debug)]
struct WindowCase {
    does: WindowUse,
    ranks: usize,
    rounds: u64,
    mutant: Option<WindowMutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowUse {
    /// Between fences, each rank puts to the preceding one.
    Fences,
    /// [`Fences`], except that all ranks but the first drop their first fence at any moment and
    /// then call it again.
    FencesDropped,
    /// Only barriers.
    Barriers,
    /// All other ranks put to rank 0 once it has posted.
    OneTarget,
    /// [`OneTarget`] with epochs that are dropped instead of completed.
    OneTargetDropped,
    /// Each rank exposes its memory to all others and puts to each.
    AllTargets,
    /// Each rank increments an element of rank 0 under an exclusive lock.
    Exclusive,
    /// All ranks accumulate their maximum in an element of rank 0.
    Accumulates,
    /// [`Accumulates`] with requests that are dropped.
    AccumulatesDropped,
}

async fn fences(fabric: &Fabric, window: &Window<u64>, case: WindowCase) -> ProgramResult<()> {
    let (me, ranks) = (fabric.rank().number() as usize, case.ranks);
    let drops = case.does == FencesDropped && me > 0;
    window.write(0, &[99])?;
    let begun = match drops {
        true => fabric.before(fabric.now().plus_picos(1), window.fence()).await.transpose()?,
        false => None,
    };
    let mut epoch = match begun {
        Some(epoch) => epoch,
        None => window.fence().await?,
    };
    for round in 1..=case.rounds {
        // With four ranks, this is the one that this rank does not signal in the fence: signalling
        // it would flush it.
        let target = Rank::new(((me + ranks - 1) % ranks) as u32);
        epoch.at(target)?.put(0, [10 * round + me as u64]).await?;
        epoch.fence().await?;
        let origin = (me + 1) % ranks;
        assert_eq!(window.load(0)?, 10 * round + origin as u64, "a put of the epoch is not there, or one of another");
        if round < case.rounds {
            epoch.fence().await?;
        }
    }
    Ok(epoch.end().await?)
}

async fn one_target(fabric: &Fabric, window: &Window<u64>, case: WindowCase) -> ProgramResult<()> {
    let (me, target) = (fabric.rank(), Rank::new(0));
    let origins: Vec<_> = (1..case.ranks as u32).map(Rank::new).collect();
    for round in 1..=case.rounds {
        if me == target {
            let fresh = vec![99; case.ranks];
            if case.mutant != Some(WritesAfterPost) {
                window.write(0, &fresh)?;
            }
            let exposure = window.post(&origins).await?;
            if case.mutant == Some(WritesAfterPost) {
                window.write(0, &fresh)?;
            }
            exposure.wait().await?;
            for origin in &origins {
                assert_eq!(window.load(origin.index())?, round, "the put of {origin}");
            }
        } else {
            let epoch = match case.mutant {
                Some(StartsUnposted) => window.start_no_check(&[target]).await?,
                _ => window.start(&[target]).await?,
            };
            epoch.at(target)?.put(me.index(), [round]).await?;
            match case.does {
                OneTargetDropped => {
                    drop(epoch);
                    look_away().await;
                }
                _ => epoch.complete().await?,
            }
        }
    }
    Ok(())
}

/// Returns to the explorer once. It polls detached futures when a program has returned to it;
/// without this, a wait in the same poll would come first.
async fn look_away() {
    let mut looked = false;
    poll_fn(|_| if std::mem::replace(&mut looked, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

async fn all_targets(fabric: &Fabric, window: &Window<u64>, case: WindowCase) -> ProgramResult<()> {
    let me = fabric.rank();
    let others: Vec<_> = (0..case.ranks as u32).map(Rank::new).filter(|rank| *rank != me).collect();
    for round in 1..=case.rounds {
        window.write(0, &vec![99; case.ranks])?;
        let exposure = window.post(&others).await?;
        let epoch = window.start(&others).await?;
        for rank in &others {
            epoch.at(*rank)?.put(me.index(), [round]).await?;
        }
        epoch.complete().await?;
        exposure.wait().await?;
        for rank in &others {
            assert_eq!(window.load(rank.index())?, round, "the put of {rank}");
        }
    }
    Ok(())
}

async fn exclusive(window: &Window<u64>, rounds: u64) -> ProgramResult<()> {
    for _ in 0..rounds {
        let epoch = window.lock(LockMode::Exclusive, Rank::new(0)).await?;
        let old = epoch.get_one(0).await?;
        epoch.put(0, [old + 1]).await?;
        epoch.unlock().await?;
    }
    Ok(())
}

async fn accumulates(window: &Window<u64>, case: WindowCase) -> ProgramResult<()> {
    let epoch = window.lock_all_no_check()?;
    let target = epoch.at(Rank::new(0))?;
    // No atomic computes the maximum.
    let mine = [1 + u64::from(window.fabric().rank().number())];
    for _ in 0..case.rounds {
        match case.does {
            AccumulatesDropped => drop(target.raccumulate(1, Op::Max, &mine)?),
            _ => target.accumulate(1, Op::Max, &mine).await?,
        }
    }
    match case.does {
        AccumulatesDropped => drop(epoch),
        _ => epoch.unlock().await?,
    }
    Ok(())
}

async fn run(fabric: Fabric, case: WindowCase) -> ProgramResult<()> {
    let elements = case.ranks.max(3);
    let window = Window::<u64>::allocate(&fabric, elements).await?;
    match case.does {
        Fences | FencesDropped => fences(&fabric, &window, case).await,
        OneTarget | OneTargetDropped => one_target(&fabric, &window, case).await,
        AllTargets => all_targets(&fabric, &window, case).await,
        Exclusive => exclusive(&window, case.rounds).await,
        Accumulates | AccumulatesDropped => accumulates(&window, case).await,
        Barriers => {
            for _ in 0..case.rounds {
                window.barrier().await?;
            }
            Ok(())
        }
    }
}

impl WindowCase {
    fn explorer(self) -> Explorer<'static> {
        let explorer = Explorer::new(self.ranks).leave_together();
        let value = move |view: &explore::View<'_>, at: u64| {
            let found = view
                .words()
                .find(|(addr, _)| addr.region.index == 0 && addr.rank == Rank::new(0) && addr.offset == 8 * at);
            found.map_or(0, |(_, value)| value)
        };
        let times = self.rounds * self.ranks as u64;
        match self.does {
            Exclusive => explorer.at_end("all are counted", move |view| value(view, 0) == times),
            Accumulates | AccumulatesDropped => {
                explorer.at_end("the greatest is there", move |view| value(view, 1) == self.ranks as u64)
            }
            _ => explorer,
        }
    }

    fn exploration(self, expected: Expected) -> Exploration {
        let WindowCase { does, ranks, rounds, mutant } = self;
        let what = mutant.map_or(String::new(), |mutant| format!("{mutant:?}, "));
        let name = format!("window: {what}{does:?} of {ranks} x{rounds}");
        let program = move |fabric: Fabric| match mutant {
            None => Box::pin(run(fabric, self)) as Run,
            Some(mutant) => Box::pin(run(mutated(fabric, MutatedWindow { mutant, ranks }), self)),
        };
        Exploration::new(name, expected, move || self.explorer(), program)
    }
}

/// The uses of windows, the number of ranks, the rounds, and the minimum number of states, about
/// half of the recorded number.
const CASES: [(WindowUse, usize, u64, u64); 16] = [
    (Fences, 2, 1, 70),
    (Fences, 2, 2, 650),
    (Fences, 3, 1, 270),
    (FencesDropped, 2, 1, 360),
    (Barriers, 2, 3, 48),
    (Barriers, 3, 2, 120),
    (OneTarget, 2, 2, 9),
    (OneTarget, 3, 2, 48),
    (OneTargetDropped, 2, 1, 20),
    (OneTargetDropped, 2, 2, 54),
    (OneTargetDropped, 3, 1, 410),
    (AllTargets, 2, 2, 65),
    (AllTargets, 3, 1, 2_200),
    (Exclusive, 2, 2, 5_200),
    (Accumulates, 2, 1, 0),
    (AccumulatesDropped, 2, 1, 0),
];

/// Mutants, each with the smallest job known to detect it.
const MUTANTS: [(WindowMutant, WindowUse, usize, u64); 14] = [
    (NotFlushed, Fences, 4, 1),
    (LeavesEarly, Fences, 2, 1),
    (LeavesEarly, Fences, 3, 1),
    (TellsUnflushed, Barriers, 2, 3),
    (NotFlushed, OneTarget, 2, 1),
    (StartsUnposted, OneTarget, 2, 1),
    (WritesAfterPost, OneTarget, 2, 1),
    (OneIsEnough, OneTarget, 3, 1),
    (NotCleared, OneTarget, 2, 2),
    (PostNotTaken, OneTarget, 2, 2),
    (Forgotten, OneTargetDropped, 2, 1),
    (NotFlushed, Exclusive, 2, 1),
    (TornComparison, Accumulates, 2, 1),
    (Forgotten, AccumulatesDropped, 2, 1),
];

/// Returns the explorations of windows.
pub(super) fn explorations() -> Vec<Exploration> {
    let right = CASES.map(|(does, ranks, rounds, at_least)| {
        WindowCase { does, ranks, rounds, mutant: None }.exploration(Expected::Exhausted { at_least })
    });
    let wrong = MUTANTS.map(|(mutant, does, ranks, rounds)| {
        let caught = Expected::Violated { saying: "", within: 300_000 };
        WindowCase { does, ranks, rounds, mutant: Some(mutant) }.exploration(caught)
    });
    right.into_iter().chain(wrong).collect()
}
