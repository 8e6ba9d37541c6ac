//! The command queue and delegation under loom: a program, the helper that orders its operations,
//! and the helper of another rank that serves them, each a thread, in every interleaving and under
//! all memory-ordering effects that loom models, within a bound on preemptions.
//!
//! The code is that of [`Mode::CommandQueue`] or [`Mode::Split`], except for set-up. Loom observes
//! all accesses through the fabric, and every race on the copied bytes; the ring of commands, which
//! bypasses the fabric, has its own model next to its source.

mod queue;
mod split;

use acp::{Acp, Atomics, ChannelOptions, GlobalAddress, Mode, Options, Order};
use checks::acp::queues::{notice_bytes, queued};
use explore::mutant::{Mutant, mutated};
use loom_fabric::{
    Access, Config,
    Delivery::{self, AtFlush, AtPost},
    RankHandle, check, check_fails, run_after,
};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Rank, Region, RegionKey, RemoteAddr};
use std::{cell::Cell, rc::Rc};

const ASKER: Rank = Rank::new(0);
const SERVER: Rank = Rank::new(1);

/// The operations of rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Copies to rank 1, and completes.
    Copy,
    /// Copies to rank 1 and from there back to itself, in order.
    CopyBack,
    /// Has rank 1 copy within its own memory: a request in a slot that is claimed.
    Delegated,
    /// Has rank 1 change a word, and checks its previous and its new value: a request in rank 0's
    /// slot.
    Atomic,
}

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcpMutant {
    /// An operation is reported as complete before its effect is visible.
    NotFlushed,
    /// The server's reply is lost.
    ReplyLost,
    /// The server replies before it executes the request.
    RepliesFirst,
    /// The program does not wait until the ordering helper has closed its control queue.
    RunningNotAwaited,
    /// The ordering helper does not wait until the delegation helper has closed its control queue.
    ListeningNotAwaited,
}

#[derive(Debug)]
struct Mutated {
    mutant: Option<AcpMutant>,
    begun: Rc<Cell<bool>>,
    rank: Rank,
}

impl Mutated {
    fn is(&self, mutant: AcpMutant) -> bool {
        self.mutant == Some(mutant) && self.begun.get()
    }
}

impl Mutant for Mutated {
    fn flushes(&self, target: Option<Rank>) -> bool {
        !(self.is(AcpMutant::NotFlushed) && target == Some(SERVER))
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        // It frees the slot.
        let taken = self.is(AcpMutant::RepliesFirst) && matches!(amo, Amo::CompareSwap { new: 0, .. });
        taken.then_some((RemoteAddr { rank: ASKER, offset: DELEGATION + REPLY, ..addr }, DONE))
    }

    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        let reply = self.rank == SERVER && addr.offset == DELEGATION + REPLY;
        (!(self.is(AcpMutant::ReplyLost) && reply)).then_some(bits)
    }

    fn waits(&self, addr: RemoteAddr) -> bool {
        !(self.is(AcpMutant::RunningNotAwaited) && addr.offset == Job::Delegated.queue(Mode::Split) + 72
            || self.is(AcpMutant::ListeningNotAwaited) && addr.offset == DELEGATION + LISTENING)
    }

    fn taken_for(&self, _: RemoteAddr, _: u64) -> u64 {
        0
    }
}

/// The layout of a rank's part: starter memory and the table of channels; then requests, which
/// contain the reply places of a helper, and the slots; then the words of the queue, and the
/// directory.
const DELEGATION: u64 = 64 + 128;
const LISTENING: u64 = 16;
const REPLY: u64 = 64 + 256;
const SLOTS: u64 = 64 + 512;
/// The reply to the first request after it has been executed.
const DONE: u64 = 1 << 48;

/// The bytes of the buffers from which an ordering helper sends.
const OUTGOING: u64 = 16 * 64;

impl Job {
    fn atomics(self) -> Atomics {
        if self == Job::Atomic { Atomics::Delegated } else { Atomics::Network }
    }

    /// Returns the offset of the end of the slots.
    fn outgoing(self) -> u64 {
        DELEGATION + SLOTS + if self == Job::Atomic { 4 * 64 } else { 64 }
    }

    /// Returns the offset of the words of the queue.
    fn queue(self, mode: Mode) -> u64 {
        self.outgoing() + if mode == Mode::Split { OUTGOING } else { 0 }
    }

    fn options(self, mode: Mode) -> Options {
        let channels = ChannelOptions { table_entries: 1, ..ChannelOptions::default() };
        let options = Options::default().starter_bytes(32).heap_bytes(0).channel_bytes(128).channels(channels);
        options.regions(1).depth(2).delegation_slots(1).mode(mode).atomics(self.atomics())
    }
}

/// One rank after set-up.
struct Member {
    job: Job,
    acp: Acp,
    fabric: Fabric,
    /// Whether rank 0 has ended.
    over: Region,
    /// The memory for notices of control queues.
    _notices: Option<Region>,
    /// Two words for which loom detects every race.
    data: GlobalAddress,
    begun: Rc<Cell<bool>>,
}

impl Member {
    async fn begin(loom: Fabric, job: Job, mode: Mode, mutant: Option<AcpMutant>) -> ProgramResult<Self> {
        let (begun, rank) = (Rc::new(Cell::new(false)), loom.rank());
        let mut fabric = mutated(loom.clone(), Mutated { mutant, begun: begun.clone(), rank });
        let (mut notices, mut world) = (None, 1);
        if mode == Mode::Split {
            let region = loom.alloc_symmetric(notice_bytes(loom.ranks())).await?;
            fabric = queued(&fabric, region.key());
            (notices, world) = (Some(region), 2);
        }
        let acp = Acp::init_with(&fabric, job.options(mode)).await?;
        let over = loom.alloc_symmetric(8).await?;
        let key = RankHandle::of(&loom).watched(|| acp.allocate(16, 0))?;
        let data = acp.address(key, 0)?;
        // Loom observes the words that have been resolved by now.
        let words = [
            (0, 4),
            (DELEGATION, 1),
            (DELEGATION + REPLY, 2),
            (DELEGATION + SLOTS, 7),
            (DELEGATION + SLOTS + 64, 7),
            (DELEGATION + SLOTS + 128, 1),
            (DELEGATION + SLOTS + 192, 1),
            (job.outgoing(), 6),
            (job.queue(mode), 1),
            (job.queue(mode) + 64, 2),
            (job.queue(mode) + 128, 2),
        ];
        for (offset, words) in words {
            let world = RegionKey { index: world, generation: 1 };
            loom.remote_span::<u64>(RemoteAddr { rank, region: world, offset }, words)?;
        }
        loom.remote_word::<u64>(over.at(rank, 0))?;
        // Resolves the words that the program itself uses.
        acp.write(data, &[1u64, 2]).await?;
        acp.store(acp.starter(rank)?, 9u64).await?;
        Ok(Member { job, acp, fabric: loom, over, _notices: notices, data, begun })
    }

    /// Returns the address of another rank's data.
    fn data_of(&self, rank: Rank) -> ProgramResult<GlobalAddress> {
        let apart = self.acp.starter(rank)?.to_bits().wrapping_sub(self.acp.starter(self.acp.rank())?.to_bits());
        Ok(GlobalAddress::from_bits(self.data.to_bits().wrapping_add(apart)).ok_or("no address")?)
    }

    async fn ask(&self) -> ProgramResult<()> {
        match self.job {
            Job::Copy => {
                self.acp.write(self.data, &[7u64]).await?;
                let copy = self.acp.copy(self.data_of(SERVER)?, self.data, 8, Order::None).await?;
                self.acp.complete(copy).await?;
                // The bytes may be reused.
                self.acp.write(self.data, &[8u64]).await?;
            }
            Job::CopyBack => {
                let there = self.data_of(SERVER)?;
                let copy = self.acp.copy(there, self.data, 8, Order::None).await?;
                let back = self.acp.copy(self.data.offset_by(8)?, there, 8, copy).await?;
                self.acp.complete(back).await?;
                let mut found = [0u64; 2];
                self.acp.read(self.data, &mut found).await?;
                assert_eq!(found, [1, 1], "what came back");
            }
            Job::Delegated => {
                let there = self.data_of(SERVER)?;
                let copy = self.acp.copy(there.offset_by(8)?, there, 8, Order::None).await?;
                self.acp.complete(copy).await?;
            }
            Job::Atomic => {
                let (own, word) = (self.acp.starter(ASKER)?, self.acp.starter(SERVER)?);
                let add = self.acp.atomic(own, word, Amo::Add(5u64), Order::None).await?;
                self.acp.complete(add).await?;
                assert_eq!(self.acp.load::<u64>(own).await?, 9, "what the word was");
                assert_eq!(self.acp.load::<u64>(word).await?, 14, "what the word is");
            }
        }
        Ok(())
    }

    async fn run(&self) -> ProgramResult<()> {
        self.begun.set(true);
        if self.fabric.rank() == ASKER {
            self.ask().await?;
            return Ok(self.fabric.put_word(&self.fabric.remote_word(self.over.at(SERVER, 0))?, 1u64).await?);
        }
        let over = self.over.word::<u64>(&self.fabric, 0)?;
        self.fabric.wait_until(&over, Deps::One(ASKER), |over| over == 1).await?;
        let mut found = [0u64; 2];
        self.acp.read(self.data, &mut found).await?;
        let expected = match self.job {
            Job::Copy => [7, 2],
            Job::Delegated => [1, 1],
            Job::CopyBack | Job::Atomic => [1, 2],
        };
        assert_eq!(found, expected, "what came");
        Ok(())
    }
}

fn model(
    delivery: Delivery,
    (job, mode): (Job, Mode),
    mutant: Option<AcpMutant>,
    relaxed: fn(Access) -> bool,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let mut config = Config { cells_per_rank: 1024, relaxed, idle: idle(mode), ..Config::new(2, delivery) };
        config.caps.helpers = true;
        let set_up =
            move |loom| async move { Member::begin(loom, job, mode, mutant).await.expect("the set-up is right") };
        run_after(config, set_up, |_, member| async move {
            member.run().await.expect("no error is possible");
            member
        });
    }
}

/// Returns the helpers of [`Mode::Split`] that no operation needs: rank 0 issues all of them, and
/// rank 1 executes the delegated ones.
fn idle(mode: Mode) -> fn(Rank, &'static str) -> bool {
    match mode {
        Mode::Split => {
            |rank, helper| matches!((rank, helper), (ASKER, "acp delegation") | (SERVER, "acp communication"))
        }
        _ => |_, _| false,
    }
}
