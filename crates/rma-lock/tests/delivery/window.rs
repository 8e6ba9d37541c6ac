//! Windows under all delivery orders: what is done in an epoch is there when the epoch is over, and not before the memory was exposed.

use crate::mutant::{Mutation, mutant};
use explore::{Explorer, Report};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank, RemoteAddr};
use rma_lock::{LockMode, Op, Window};
use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::Instant,
};

/// A step done wrong, of windows or of the program that uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// The end of an epoch does not flush what was done in it.
    NotFlushed,
    /// A member tells the next one of a barrier without having flushed what it told of the one before.
    TellsUnflushed,
    /// A member does not wait for the last round of a fence.
    LeavesEarly,
    /// An origin starts without waiting until its target has posted.
    StartsUnposted,
    /// A target posts, and writes to its memory then.
    WritesAfterPost,
    /// A target does not wait until its last origin has completed.
    OneIsEnough,
    /// A target that has waited leaves the words set.
    NotCleared,
    /// An origin that has started leaves the words set.
    PostNotTaken,
    /// An element is compared, and put.
    TornComparison,
    /// What a dropped epoch owes is not done.
    Forgotten,
}
use Wrong::*;

/// Elements take the first line, words the next.
const WORDS: u64 = 64;

/// [`Wrong`] at one rank of so many.
#[derive(Debug)]
struct Mistake {
    wrong: Wrong,
    ranks: usize,
}

impl Mistake {
    fn rounds(&self) -> u64 {
        self.ranks.next_power_of_two().trailing_zeros().into()
    }

    /// Whether it is the posted (0) or completed (1) word of a member.
    fn is_word(&self, addr: RemoteAddr, which: u64, member: u64) -> bool {
        addr.region.index == 0 && addr.offset == WORDS + 8 * (self.rounds() + 2 * member + which)
    }

    fn is_any_word(&self, addr: RemoteAddr, which: u64) -> bool {
        (0..self.ranks as u64).any(|member| self.is_word(addr, which, member))
    }
}

impl Mutation for Mistake {
    fn flushes(&self, target: Option<Rank>) -> bool {
        match self.wrong {
            NotFlushed => target.is_some(),
            TellsUnflushed => target.is_none(),
            _ => true,
        }
    }

    fn waits(&self, addr: RemoteAddr) -> bool {
        match self.wrong {
            LeavesEarly => addr.offset != WORDS + 8 * (self.rounds() - 1),
            OneIsEnough => !self.is_word(addr, 1, self.ranks as u64 - 1),
            _ => true,
        }
    }

    /// What ends such a wait.
    fn taken_for(&self, _: RemoteAddr, _: u64) -> u64 {
        if self.wrong == LeavesEarly { u64::MAX } else { 1 }
    }

    /// Programs with this have no atomics, after which it would be stored.
    fn late(&self, addr: RemoteAddr, _: u64) -> bool {
        match self.wrong {
            NotCleared => self.is_any_word(addr, 1),
            PostNotTaken => self.is_any_word(addr, 0),
            _ => false,
        }
    }

    fn tears(&self, addr: RemoteAddr, _: Amo<u64>) -> bool {
        self.wrong == TornComparison && addr.region.index == 0 && addr.offset < WORDS
    }

    fn detaches(&self) -> bool {
        self.wrong != Forgotten
    }
}

/// A job with one step done wrong, or none.
#[derive(Clone, Copy, Debug)]
struct Job {
    what: What,
    ranks: usize,
    rounds: u64,
    wrong: Option<Wrong>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Each rank puts to the one before between fences.
    Fences,
    /// Fences that all but the first rank drop at any moment, and go on with.
    FencesDropped,
    /// Barriers and nothing else.
    Barriers,
    /// All other ranks put to rank 0 when it has posted.
    OneTarget,
    /// The same with epochs that are dropped and not completed.
    OneTargetDropped,
    /// Each rank exposes its memory to all others and puts to each.
    AllTargets,
    /// Each rank counts an element of rank 0 exclusively.
    Exclusive,
    /// All ranks leave their greatest in an element of rank 0.
    Accumulates,
    /// The same with requests that are dropped.
    AccumulatesDropped,
}
use What::*;

async fn fences(fabric: &Fabric, window: &Window<u64>, job: Job) -> ProgramResult<()> {
    let (me, ranks) = (fabric.rank().number() as usize, job.ranks);
    let drops = job.what == FencesDropped && me > 0;
    window.write(0, &[99])?;
    let begun = match drops {
        true => fabric.before(fabric.now().plus_picos(1), window.fence()).await.transpose()?,
        false => None,
    };
    let mut epoch = match begun {
        Some(epoch) => epoch,
        None => window.fence().await?,
    };
    for round in 1..=job.rounds {
        // Of four ranks the one that is not told of the fence by this one, and would be flushed for it.
        let target = Rank::new(((me + ranks - 1) % ranks) as u32);
        epoch.at(target)?.put(0, [10 * round + me as u64]).await?;
        epoch.fence().await?;
        let origin = (me + 1) % ranks;
        assert_eq!(window.load(0)?, 10 * round + origin as u64, "a put of the epoch is not there, or one of another");
        if round < job.rounds {
            epoch.fence().await?;
        }
    }
    Ok(epoch.end().await?)
}

async fn one_target(fabric: &Fabric, window: &Window<u64>, job: Job) -> ProgramResult<()> {
    let (me, target) = (fabric.rank(), Rank::new(0));
    let origins: Vec<_> = (1..job.ranks as u32).map(Rank::new).collect();
    for round in 1..=job.rounds {
        if me == target {
            let fresh = vec![99; job.ranks];
            if job.wrong != Some(WritesAfterPost) {
                window.write(0, &fresh)?;
            }
            let exposure = window.post(&origins).await?;
            if job.wrong == Some(WritesAfterPost) {
                window.write(0, &fresh)?;
            }
            exposure.wait().await?;
            for origin in &origins {
                assert_eq!(window.load(origin.index())?, round, "the put of {origin}");
            }
        } else {
            let epoch = match job.wrong {
                Some(StartsUnposted) => window.start_no_check(&[target]).await?,
                _ => window.start(&[target]).await?,
            };
            epoch.at(target)?.put(me.index(), [round]).await?;
            match job.what {
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

/// The explorer looks at what was detached when a program has returned to it: a wait in the same poll would come first.
async fn look_away() {
    let mut looked = false;
    poll_fn(|_| if std::mem::replace(&mut looked, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

async fn all_targets(fabric: &Fabric, window: &Window<u64>, job: Job) -> ProgramResult<()> {
    let me = fabric.rank();
    let others: Vec<_> = (0..job.ranks as u32).map(Rank::new).filter(|rank| *rank != me).collect();
    for round in 1..=job.rounds {
        window.write(0, &vec![99; job.ranks])?;
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

async fn accumulates(window: &Window<u64>, job: Job) -> ProgramResult<()> {
    let epoch = window.lock_all_no_check()?;
    let target = epoch.at(Rank::new(0))?;
    // The greatest has no atomic of its own.
    let mine = [1 + u64::from(window.fabric().rank().number())];
    for _ in 0..job.rounds {
        match job.what {
            AccumulatesDropped => drop(target.raccumulate(1, Op::Max, &mine)?),
            _ => target.accumulate(1, Op::Max, &mine).await?,
        }
    }
    match job.what {
        AccumulatesDropped => drop(epoch),
        _ => epoch.unlock().await?,
    }
    Ok(())
}

async fn run(fabric: Fabric, job: Job) -> ProgramResult<()> {
    let elements = job.ranks.max(3);
    let window = Window::<u64>::allocate(&fabric, elements).await?;
    match job.what {
        Fences | FencesDropped => fences(&fabric, &window, job).await,
        OneTarget | OneTargetDropped => one_target(&fabric, &window, job).await,
        AllTargets => all_targets(&fabric, &window, job).await,
        Exclusive => exclusive(&window, job.rounds).await,
        Accumulates | AccumulatesDropped => accumulates(&window, job).await,
        Barriers => {
            for _ in 0..job.rounds {
                window.barrier().await?;
            }
            Ok(())
        }
    }
}

impl Job {
    fn program(self) -> impl Fn(Fabric) -> std::pin::Pin<Box<dyn Future<Output = ProgramResult<()>>>> {
        move |fabric| match self.wrong {
            None => Box::pin(run(fabric, self)),
            Some(wrong) => Box::pin(run(mutant(fabric, Mistake { wrong, ranks: self.ranks }), self)),
        }
    }

    fn explorer(self) -> Explorer<'static> {
        let explorer = Explorer::new(self.ranks).leave_together().state_limit(300_000);
        let value = move |view: &explore::View<'_>, at: u64| {
            let found = view
                .words()
                .find(|(addr, _)| addr.region.index == 0 && addr.rank == Rank::new(0) && addr.offset == 8 * at);
            found.map_or(0, |(_, value)| value)
        };
        let times = self.rounds * self.ranks as u64;
        match self.what {
            Exclusive => explorer.at_end("all are counted", move |view| value(view, 0) == times),
            Accumulates | AccumulatesDropped => {
                explorer.at_end("the greatest is there", move |view| value(view, 1) == self.ranks as u64)
            }
            _ => explorer,
        }
    }

    fn explore(self) -> Report {
        let start = Instant::now();
        let report = self.explorer().run(self.program());
        println!("{self:?}: {report}, {:.2} s", start.elapsed().as_secs_f64());
        report
    }
}

fn job(what: What, ranks: usize, rounds: u64) -> Job {
    Job { what, ranks, rounds, wrong: None }
}

/// Jobs, and how many states at least, about half of what was recorded.
fn exhaust(jobs: &[(Job, u64)]) {
    for (job, at_least) in jobs {
        let report = job.explore();
        report.expect_exhausted();
        assert!(report.states >= *at_least, "{job:?}: {} states explored", report.states);
    }
}

#[test]
fn fences_end_epochs() {
    exhaust(&[
        (job(Fences, 2, 1), 70),
        (job(Fences, 2, 2), 650),
        (job(Fences, 3, 1), 270),
        (job(FencesDropped, 2, 1), 360),
        (job(Barriers, 2, 3), 48),
        (job(Barriers, 3, 2), 120),
    ]);
}

#[test]
fn post_and_start_end_epochs() {
    exhaust(&[
        (job(OneTarget, 2, 2), 9),
        (job(OneTarget, 3, 2), 48),
        (job(OneTargetDropped, 2, 1), 20),
        (job(OneTargetDropped, 2, 2), 54),
        (job(OneTargetDropped, 3, 1), 410),
        (job(AllTargets, 2, 2), 65),
        (job(AllTargets, 3, 1), 2_200),
    ]);
}

#[test]
fn locked_epochs_exclude_and_accumulates_are_whole() {
    exhaust(&[(job(Exclusive, 2, 2), 5_200), (job(Accumulates, 2, 1), 0), (job(AccumulatesDropped, 2, 1), 0)]);
}

#[test]
fn mutations_are_caught() {
    let wrongs = [
        (NotFlushed, job(Fences, 4, 1)),
        (LeavesEarly, job(Fences, 2, 1)),
        (LeavesEarly, job(Fences, 3, 1)),
        (TellsUnflushed, job(Barriers, 2, 3)),
        (NotFlushed, job(OneTarget, 2, 1)),
        (StartsUnposted, job(OneTarget, 2, 1)),
        (WritesAfterPost, job(OneTarget, 2, 1)),
        (OneIsEnough, job(OneTarget, 3, 1)),
        (NotCleared, job(OneTarget, 2, 2)),
        (PostNotTaken, job(OneTarget, 2, 2)),
        (Forgotten, job(OneTargetDropped, 2, 1)),
        (NotFlushed, job(Exclusive, 2, 1)),
        (TornComparison, job(Accumulates, 2, 1)),
        (Forgotten, job(AccumulatesDropped, 2, 1)),
    ];
    for (wrong, job) in wrongs {
        let job = Job { wrong: Some(wrong), ..job };
        let report = job.explore();
        let Some(found) = report.violation() else { panic!("{job:?} passed: {report}") };
        println!("{wrong:?}: {} in {} moves, {} states", found.what, found.moves, report.states);
    }
}
