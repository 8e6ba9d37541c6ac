//! One slot for requests at the server and two ranks that issue requests. One of them may die while
//! it holds the slot.
//!
//! The waits for a slot are bounded, because unbounded waits have infinitely many states. Rank 0
//! tries once. Rank 1 tries once, waits until rank 0 has ended or is known to be lost, and sleeps
//! once before it tries again; if it does not obtain the slot then, the dead rank must have sent
//! its request.

use super::SET_UP;
use crate::exploration::{Expected, Exploration, Run, Size};
use crate::loss::{NAMED, mortal};
use ::acp::{Acp, GlobalAddress, Options, Order};
use explore::{
    Explorer, Probe,
    mutant::{Mutant, mutated},
};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, LocalWord, ProgramResult, Rank, Region, RemoteAddr, Result, forward,
    join::{Either, race},
    provider::{OneThread, Place, Posted, Provider, WaitFor, WaitState},
};
use std::{
    cell::Cell,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

const DYING: Rank = Rank::new(0);
const ASKER: Rank = Rank::new(1);
const SERVER: Rank = Rank::new(2);
/// The words that the two ranks copy, each from its own word at the server to another word there.
const CONTENT: [u64; 2] = [70, 71];
/// The fact that records that the rank that may die has sent its request.
const SENT: u32 = 300;

/// The time at which rank 1 issues its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    AtOnce,
    /// When rank 0 has ended or is known to be lost.
    Afterwards,
}

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotMutant {
    /// A slot whose owner has died is left to it.
    NotTakenOver,
    /// Such a slot is taken over although its request was sent.
    TakenOverArmed,
    /// The server frees a slot before it clears its bit.
    FreedFirst,
}

#[derive(Debug)]
struct Mutated {
    mutant: SlotMutant,
    /// The location of the word that marks the slots that hold a request.
    area: Cell<Option<u64>>,
}

/// The offset of the only slot in the area for requests.
const SLOT: u64 = 64 + 2 * 16 * 16;

impl Mutant for Mutated {
    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        if matches!(amo, Amo::CompareSwap { expected: 0, .. }) {
            self.area.set(Some(addr.offset - SLOT));
        }
        amo
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match self.mutant {
            _ if self.area.get() != Some(addr.offset) => bits,
            SlotMutant::NotTakenOver => u64::MAX,
            SlotMutant::TakenOverArmed => 0,
            SlotMutant::FreedFirst => bits,
        }
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        let frees = self.mutant == SlotMutant::FreedFirst && matches!(amo, Amo::And(_));
        frees.then(|| (RemoteAddr { offset: addr.offset + SLOT, ..addr }, 0))
    }
}

/// A rank's fabric that bounds its number of sleeps.
#[derive(Debug)]
struct Patient {
    below: Fabric,
    probe: OneThread<Probe>,
    /// Whether it sleeps.
    sleeps: AtomicBool,
    /// The number of remaining sleeps, less one during a sleep.
    patience: Arc<AtomicU32>,
    /// Whether it attempted to sleep once too often.
    spent: Arc<AtomicBool>,
}

impl Provider for Patient {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, put, get, copy, nop);
    forward!(poll, test, forget, try_notice, now, detach, end_wait, optional);

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        if self.below.rank() == DYING && matches!(amo, Amo::Or(_)) {
            self.probe.set(SENT, 1);
        }
        self.below.provider().atomic(word, amo)
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if !matches!(wait_for, WaitFor::Until(_)) {
            return self.below.provider().poll_wait(wait_state, wait_for, cx);
        }
        if !self.sleeps.load(Relaxed) {
            let left = self.patience.load(Relaxed);
            if left == 0 {
                self.spent.store(true, Relaxed);
                return Poll::Pending;
            }
            self.patience.store(left - 1, Relaxed);
            self.sleeps.store(true, Relaxed);
        }
        let slept = self.below.provider().poll_wait(wait_state, wait_for, cx);
        self.sleeps.store(slept.is_pending(), Relaxed);
        slept
    }
}

/// One rank in a job.
struct Member {
    acp: Acp,
    fabric: Fabric,
    probe: Probe,
    /// A word of each rank: whether the rank before it has no more requests.
    over: Region,
    patience: Arc<AtomicU32>,
    spent: Arc<AtomicBool>,
}

impl Member {
    /// Returns the address of a word of the server's starter memory.
    fn at(&self, word: usize) -> ProgramResult<GlobalAddress> {
        Ok(self.acp.starter(SERVER)?.offset_by(8 * word as u64)?)
    }

    /// Completes all operations; returns whether the bound on sleeps sufficed.
    async fn completes(&self) -> ProgramResult<bool> {
        self.spent.store(false, Relaxed);
        let spent = poll_fn(|_| if self.spent.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending });
        match race(self.acp.complete_all(), spent).await {
            Either::First(done) => Ok(done.map(|()| true)?),
            Either::Second(()) => Ok(false),
        }
    }

    /// Notifies `rank` that this one has no more requests.
    async fn leave(&self, rank: Rank) -> ProgramResult<()> {
        Ok(self.fabric.put_word(&self.fabric.remote_word::<u64>(self.over.at(rank, 0))?, 1u64).await?)
    }

    async fn ask(&self, asker: usize) -> ProgramResult<()> {
        self.acp.copy(self.at(2 + asker)?, self.at(asker)?, 8, Order::None).await?;
        Ok(())
    }

    /// Waits for the end of rank 0; returns whether it is lost.
    async fn is_lost(&self, over: &LocalWord<u64>) -> ProgramResult<bool> {
        match self.fabric.wait_until(over, Deps::One(DYING), |over| over == 1).await {
            Ok(_) => Ok(false),
            Err(FabricError::PeerLost { rank: DYING }) => {
                self.probe.add(NAMED, 1);
                Ok(true)
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Issues the request, immediately or when rank 0 has ended; finally only this rank needs the
    /// server.
    async fn ask_too(&self, when: When, over: &LocalWord<u64>) -> ProgramResult<()> {
        let mut lost = None;
        if when == When::Afterwards {
            lost = Some(self.is_lost(over).await?);
        }
        self.ask(1).await?;
        let mut done = self.completes().await?;
        let lost = match lost {
            Some(lost) => lost,
            None => self.is_lost(over).await?,
        };
        if !done {
            self.patience.store(1, Relaxed);
            done = self.completes().await?;
        }
        if !done {
            assert!(lost, "a free slot is not claimed");
            assert_eq!(self.probe.get(SENT), 1, "nobody takes over the slot of the dead");
            return Ok(());
        }
        let came = self.acp.load::<u64>(self.at(3)?).await?;
        assert_eq!(came, CONTENT[1], "what came");
        Ok(())
    }

    async fn run(&self, when: When) -> ProgramResult<()> {
        let over = self.over.word::<u64>(&self.fabric, 0)?;
        match self.fabric.rank() {
            DYING => {
                self.ask(0).await?;
                self.completes().await?;
                self.leave(ASKER).await
            }
            ASKER => {
                self.ask_too(when, &over).await?;
                self.leave(SERVER).await
            }
            _ => {
                let asked = self.fabric.wait_until(&over, Deps::One(ASKER), |over| over == 1);
                self.acp.while_serving(asked).await?;
                let first = self.acp.load::<u64>(self.at(2)?).await?;
                assert!(first == 0 || first == CONTENT[0], "what the dead has left");
                Ok(())
            }
        }
    }
}

async fn play(fabric: Fabric, when: When, mutant: Option<SlotMutant>) -> ProgramResult<()> {
    let (probe, below) = (
        Probe::of(&fabric),
        match mutant {
            Some(mutant) => mutated(fabric.clone(), Mutated { mutant, area: Cell::new(None) }),
            None => fabric.clone(),
        },
    );
    let (patience, spent) = Default::default();
    let patient = below.layered(Patient {
        below: below.clone(),
        probe: OneThread::new(probe.clone()),
        sleeps: AtomicBool::new(false),
        patience: Arc::clone(&patience),
        spent: Arc::clone(&spent),
    });
    let options = Options::default().starter_bytes(32).heap_bytes(0).regions(1).delegation_slots(1);
    let acp = Acp::init_with(&patient, options).await?;
    let over = fabric.alloc_symmetric(8).await?;
    let member = Member { acp, fabric, probe, over, patience, spent };
    if member.fabric.rank() == SERVER {
        member.acp.write(member.at(0)?, &CONTENT).await?;
    }
    member.probe.set(SET_UP + member.fabric.rank().number(), 1);
    member.run(when).await
}

fn explorer() -> Explorer<'static> {
    mortal(Explorer::new(3).leave_together().set_up(SET_UP), Some(DYING.number()))
}

fn exploration(name: &str, when: When, mutant: Option<SlotMutant>, expected: Expected) -> Exploration {
    Exploration::new(format!("acp: {name}"), expected, explorer, move |fabric| {
        Box::pin(play(fabric, when, mutant)) as Run
    })
}

/// Returns the explorations of slots that are taken over.
pub(super) fn explorations() -> impl Iterator<Item = Exploration> {
    let right = [
        ("the owner of a slot may die before another asks", When::Afterwards, Size::Full, 900_000),
        ("the owner of a slot may die", When::AtOnce, Size::Full, 2_000_000),
    ];
    let right = right.into_iter().map(|(name, when, size, at_least)| {
        exploration(name, when, None, Expected::Exhausted { at_least }).of_size(size)
    });
    let wrong = [
        (SlotMutant::NotTakenOver, "nobody takes over"),
        (SlotMutant::TakenOverArmed, "deadlock"),
        (SlotMutant::FreedFirst, "deadlock"),
    ];
    let wrong = wrong.into_iter().flat_map(|(mutant, saying)| {
        let name = format!("{mutant:?} (the owner of a slot may die before another asks)");
        let of = |expected| exploration(&name, When::Afterwards, Some(mutant), expected);
        // Exploring all orders takes long.
        let random = of(Expected::ViolatedAtRandom { runs: 200_000 });
        [random, of(Expected::Violated { saying, within: 3_000_000 }).of_size(Size::Full)]
    });
    right.chain(wrong)
}
