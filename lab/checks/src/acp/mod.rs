//! Global addresses over a network that delivers in any order: small jobs, their invariants, and
//! mutants.
//!
//! A rank executes its operations itself, and serves others while it waits; or a helper does both,
//! and takes commands from a queue; or two helpers do one each, and those of different ranks use
//! [control queues](queues).

mod cases;
mod mutants;
pub mod queues;
mod reuse;
mod slots;
pub mod store_buffering;

pub use cases::explorations;

use crate::{
    exploration::{Expected, Exploration, Run},
    loss::{mortal, told},
};
use ::acp::{Acp, AcpError, Atomics, GlobalAddress, Mode, Options, Order};
use explore::{Explorer, Probe, mutant::mutated};
use mutants::{AcpMutant, Mutated};
use rdma_fabric::{Amo, Caps, Deps, Fabric, FabricError, ProgramResult, Rank, Region};
use std::{cell::Cell, rc::Rc};

/// The first of a series of facts, one for each rank: whether its set-up has completed.
const SET_UP: u32 = 0;
/// The fact that counts optional observations: orders that a rank may see, but need not.
const SEEN: u32 = 100;

/// The programs of the ranks. Rank 0 issues the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// A copy to rank 1, then one from there to rank 2, then an atomic there.
    Chain,
    /// Two copies of one pair, without any order; the destination checks.
    Pair,
    /// The same between ranks 1 and 2, and rank 1 checks.
    DelegatedPair,
    /// A copy to rank 1, and a continuation of it to rank 2; rank 2 checks both.
    Across,
    /// A copy from rank 1 to rank 2.
    Delegated,
    /// The same, while rank 1 requests a copy from rank 0 to rank 2.
    Both,
    /// Two atomics on a word of rank 1, which the network can't execute.
    Atomics,
    /// Rank 1 reuses the tag of a region for another one, this many times, while rank 0 reads.
    Reuse(u64),
}

/// A job, and its possible events.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    job: Job,
    ranks: usize,
    /// The rank that may die at any moment.
    mortal: Option<u32>,
    /// The ranks whose operations a helper executes, as bits.
    helped: u8,
    /// Whether programs post operations themselves if no command is unfinished.
    bypass: bool,
    /// Whether each rank has two helpers ([`Mode::Split`]).
    split: bool,
}

/// One rank in a job.
struct Member {
    acp: Acp,
    /// The fabric without a mutant.
    fabric: Fabric,
    probe: Probe,
    /// One word per rank: the number of other ranks that will send it no more requests.
    over: Region,
    me: u32,
}

/// Returns the word that a rank's starter memory initially contains.
const fn content(rank: u32) -> u64 {
    10 + rank as u64
}

impl Member {
    /// Returns the address of a word of a rank's starter memory.
    fn at(&self, rank: u32, word: u64) -> ProgramResult<GlobalAddress> {
        Ok(self.acp.starter(Rank::new(rank))?.offset_by(8 * word)?)
    }

    async fn load(&self, rank: u32, word: u64) -> ProgramResult<u64> {
        Ok(self.acp.load(self.at(rank, word)?).await?)
    }

    async fn copy(&self, to: (u32, u64), from: (u32, u64), order: impl Into<Order>) -> ProgramResult<Order> {
        Ok(self.acp.copy(self.at(to.0, to.1)?, self.at(from.0, from.1)?, 8, order).await?.into())
    }

    async fn add(&self, rank: u32, word: u64, order: Order) -> ProgramResult<u64> {
        let handle = self.acp.atomic(self.at(0, 2)?, self.at(rank, word)?, Amo::Add(1u64), order).await?;
        self.acp.complete(handle).await?;
        self.load(0, 2).await
    }

    /// Releases the serving ranks.
    async fn let_go(&self, job: Job) -> ProgramResult<()> {
        for rank in job.servers().iter().map(|rank| Rank::new(*rank)) {
            let gone = match self.fabric.remote_word::<u64>(self.over.at(rank, 0)) {
                Ok(over) => self.fabric.fetch_add(&over, 1).await.map(drop),
                Err(error) => Err(error),
            };
            if !matches!(gone, Err(FabricError::PeerLost { .. })) {
                gone?;
            }
        }
        Ok(())
    }

    /// Serves others until `askers` ranks have no more requests.
    async fn serve(&self, askers: u64) -> ProgramResult<()> {
        let over = self.over.word::<u64>(&self.fabric, 0)?;
        let deps = if askers == 1 { Deps::One(Rank::new(0)) } else { Deps::All };
        self.acp.while_serving(self.fabric.wait_until(&over, deps, |over| over == askers)).await?;
        Ok(())
    }

    /// Checks whether `second` has arrived, and if so, that `first` has also arrived.
    async fn sees_in_order(&self, first: (u32, u64), second: (u32, u64), value: u64) -> ProgramResult<()> {
        if self.load(second.0, second.1).await? == value {
            self.probe.add(SEEN, 1);
            assert_eq!(self.load(first.0, first.1).await?, value, "the first copy came after the second one");
        }
        Ok(())
    }

    async fn run(&self, job: Job) -> ProgramResult<()> {
        if job.servers().contains(&self.me) {
            return self.serve(if job == Job::Both { 2 } else { 1 }).await;
        }
        match (job, self.me) {
            (Job::Pair, 1) => self.sees_in_order((1, 1), (1, 2), content(0)).await,
            (Job::DelegatedPair, 1) => self.sees_in_order((2, 1), (2, 2), content(1)).await,
            (Job::Across, 2) => self.sees_in_order((1, 1), (2, 1), content(0)).await,
            (Job::Reuse(times), _) => self.reuse(times).await,
            (Job::Both, me) => self.asked(job, 1 - me).await,
            (_, 0) => self.asked(job, 1).await,
            _ => Ok(()),
        }
    }

    /// Runs a rank that issues operations, then releases the serving ranks.
    async fn asked(&self, job: Job, from: u32) -> ProgramResult<()> {
        let issued = self.issue(job, from).await;
        self.let_go(job).await?;
        issued
    }

    async fn issue(&self, job: Job, from: u32) -> ProgramResult<()> {
        match job {
            Job::Chain => {
                let first = self.copy((1, 1), (0, 0), Order::None).await?;
                self.copy((2, 1), (1, 1), first).await?;
                assert_eq!(self.add(2, 1, Order::All).await?, content(0), "what the atomic found");
                assert_eq!(self.load(2, 1).await?, content(0) + 1, "what the atomic left");
            }
            Job::Pair => {
                self.copy((1, 1), (0, 0), Order::None).await?;
                self.copy((1, 2), (0, 0), Order::None).await?;
            }
            Job::DelegatedPair => {
                self.copy((2, 1), (1, 0), Order::None).await?;
                self.copy((2, 2), (1, 0), Order::None).await?;
            }
            Job::Across => {
                self.copy((1, 1), (0, 0), Order::None).await?;
                self.copy((2, 1), (0, 0), Order::Continue).await?;
            }
            Job::Delegated | Job::Both => {
                let to = 1 + u64::from(self.me);
                self.copy((2, to), (from, 0), Order::None).await?;
                self.acp.complete_all().await?;
                assert_eq!(self.load(2, to).await?, content(from), "what came");
            }
            Job::Atomics => {
                assert_eq!(self.add(1, 0, Order::None).await?, content(1), "what the first atomic found");
                assert_eq!(self.add(1, 0, Order::None).await?, content(1) + 1, "what the second atomic found");
            }
            Job::Reuse(_) => {}
        }
        Ok(self.acp.complete_all().await?)
    }
}

impl Job {
    /// Returns the ranks that only serve.
    const fn servers(self) -> &'static [u32] {
        match self {
            Job::Chain | Job::Delegated | Job::DelegatedPair | Job::Both => &[2],
            Job::Atomics => &[1],
            Job::Pair | Job::Across | Job::Reuse(_) => &[],
        }
    }
}

async fn play(fabric: Fabric, mutant_fabric: Fabric, case: Case, begun: impl FnOnce()) -> ProgramResult<()> {
    let (probe, me) = (Probe::of(&fabric), fabric.rank().number());
    let atomics = if case.job == Job::Atomics { Atomics::Delegated } else { Atomics::Network };
    let mode = match case.split {
        true => Mode::Split,
        false if case.helped >> me & 1 == 1 => Mode::CommandQueue,
        false => Mode::Direct,
    };
    let options = Options::default().starter_bytes(32).heap_bytes(0).regions(1).depth(4).mode(mode).atomics(atomics);
    let options = options.bypass(case.bypass);
    let (acp_fabric, _notices) = match case.split {
        true => {
            let notices = fabric.alloc_symmetric(queues::notice_bytes(case.ranks)).await?;
            (queues::queued(&mutant_fabric, notices.key()), Some(notices))
        }
        false => (mutant_fabric, None),
    };
    let acp = Acp::init_with(&acp_fabric, options).await?;
    let over = fabric.alloc_symmetric(8).await?;
    let member = Member { acp, fabric, probe, over, me };
    member.acp.store(member.at(me, 0)?, content(me)).await?;
    if let Job::Reuse(_) = case.job {
        member.prepare_reuse().await?;
    }
    begun();
    member.probe.set(SET_UP + me, 1);
    member.run(case.job).await
}

impl Case {
    const fn new(name: &'static str, job: Job) -> Self {
        let ranks = match job {
            Job::Pair | Job::Atomics | Job::Reuse(_) => 2,
            _ => 3,
        };
        Case { name, job, ranks, mortal: None, helped: 0, bypass: false, split: false }
    }

    const fn dying(self, name: &'static str, rank: u32) -> Self {
        Case { name, mortal: Some(rank), ..self }
    }

    /// Gives each of these ranks (a bit mask) a helper and a queue of commands.
    const fn helped(self, name: &'static str, helped: u8) -> Self {
        Case { name, helped, ..self }
    }

    const fn bypassing(self, name: &'static str) -> Self {
        Case { name, bypass: true, ..self }
    }

    /// Gives each rank two helpers.
    const fn split(self, name: &'static str) -> Self {
        Case { name, split: true, ..self }
    }

    fn explorer(self) -> Explorer<'static> {
        let mut caps = Caps::weakest();
        caps.helpers = self.helped != 0 || self.split;
        let mut explorer = Explorer::new(self.ranks).caps(caps).leave_together().set_up(SET_UP);
        if matches!(self.job, Job::Pair | Job::DelegatedPair | Job::Across | Job::Reuse(_)) {
            explorer = explorer.possible("something is seen early", |view| view.fact(SEEN) > 0);
        }
        mortal(explorer, self.mortal)
    }

    fn exploration(self, expected: Expected, mutant: Option<AcpMutant>) -> Exploration {
        let name = match mutant {
            Some(mutant) => format!("acp: {mutant:?} ({})", self.name),
            None => format!("acp: {}", self.name),
        };
        let program = move |fabric: Fabric| {
            let (probe, begun) = (Probe::of(&fabric), Rc::new(Cell::new(false)));
            let mutant_fabric = match mutant {
                Some(mutant) => {
                    mutated(fabric.clone(), Mutated::new(mutant, begun.clone(), self.helped & 1 == 1 || self.split))
                }
                None => fabric.clone(),
            };
            Box::pin(async move {
                let ended = play(fabric, mutant_fabric, self, || begun.set(true)).await;
                told::<AcpError>(&probe, ended, self.mortal)
            }) as Run
        };
        Exploration::new(name, expected, move || self.explorer(), program)
    }
}
