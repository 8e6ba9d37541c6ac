//! The command queue and delegation under loom: a program, the helper that orders its operations,
//! and the helper of another rank that serves them, each a thread, in every interleaving and under
//! all memory-ordering effects that loom models, within a bound on preemptions.
//!
//! The code is that of [`Mode::CommandQueue`], except for set-up. Loom observes all accesses
//! through the fabric, and every race on the copied bytes; the ring of commands, which bypasses the
//! fabric, has its own model next to its source.

use acp::{Acp, Atomics, ChannelOptions, GlobalAddress, Mode, Options, Order};
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
}

/// The layout of a rank's part: starter memory and the table of channels; then requests, which
/// contain the reply places of a helper, and the slots; then the words of the queue, and the
/// directory.
const DELEGATION: u64 = 64 + 128;
const REPLY: u64 = 64 + 256;
const SLOTS: u64 = 64 + 512;
/// The reply to the first request after it has been executed.
const DONE: u64 = 1 << 48;

/// The offset of the words of the queue if there is one slot.
const QUEUE: u64 = DELEGATION + SLOTS + 64;

impl Job {
    fn atomics(self) -> Atomics {
        if self == Job::Atomic { Atomics::Delegated } else { Atomics::Network }
    }

    /// Returns the offset of the words of the queue.
    fn queue(self) -> u64 {
        if self == Job::Atomic { DELEGATION + SLOTS + 4 * 64 } else { QUEUE }
    }
}

/// One rank after set-up.
struct Member {
    job: Job,
    acp: Acp,
    fabric: Fabric,
    /// Whether rank 0 has ended.
    over: Region,
    /// Two words for which loom detects every race.
    data: GlobalAddress,
    begun: Rc<Cell<bool>>,
}

impl Member {
    async fn begin(loom: Fabric, job: Job, mutant: Option<AcpMutant>) -> ProgramResult<Self> {
        let (begun, rank) = (Rc::new(Cell::new(false)), loom.rank());
        let fabric = mutated(loom.clone(), Mutated { mutant, begun: begun.clone(), rank });
        let channels = ChannelOptions { table_entries: 1, ..ChannelOptions::default() };
        let options = Options::default().starter_bytes(32).heap_bytes(0).channel_bytes(128).channels(channels);
        let options = options.regions(1).depth(2).delegation_slots(1).mode(Mode::CommandQueue).atomics(job.atomics());
        let acp = Acp::init_with(&fabric, options).await?;
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
            (job.queue(), 1),
            (job.queue() + 64, 1),
            (job.queue() + 128, 2),
        ];
        for (offset, words) in words {
            let world = RegionKey { index: 1, generation: 1 };
            loom.remote_span::<u64>(RemoteAddr { rank, region: world, offset }, words)?;
        }
        loom.remote_word::<u64>(over.at(rank, 0))?;
        // Resolves the words that the program itself uses.
        acp.write(data, &[1u64, 2]).await?;
        acp.store(acp.starter(rank)?, 9u64).await?;
        Ok(Member { job, acp, fabric: loom, over, data, begun })
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
    job: Job,
    mutant: Option<AcpMutant>,
    relaxed: fn(Access) -> bool,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let mut config = Config { cells_per_rank: 1024, relaxed, ..Config::new(2, delivery) };
        config.caps.helpers = true;
        let set_up = move |loom| async move { Member::begin(loom, job, mutant).await.expect("the set-up is right") };
        run_after(config, set_up, |_, member| async move {
            member.run().await.expect("no error is possible");
            member
        });
    }
}

fn all(preemptions: usize, delivery: Delivery, job: Job, at_least: usize) {
    print!("{job:?}, {delivery:?}: ");
    check(Some(preemptions), at_least, model(delivery, job, None, |_| false));
}

#[test]
fn copies_by_a_helper() {
    all(3, AtPost, Job::Copy, 2_600);
    all(2, AtPost, Job::CopyBack, 2_900);
}

#[test]
fn copies_by_a_helper_at_the_flush() {
    all(3, AtFlush, Job::Copy, 2_600);
    all(2, AtFlush, Job::CopyBack, 2_900);
}

#[test]
fn copies_served_by_a_helper() {
    all(3, AtPost, Job::Delegated, 6_700);
    all(2, AtFlush, Job::Delegated, 1_100);
}

#[test]
fn atomics_served_by_a_helper() {
    all(3, AtPost, Job::Atomic, 6_700);
    all(2, AtFlush, Job::Atomic, 1_000);
}

#[test]
#[ignore = "a minute"]
fn with_more_preemptions() {
    for (delivery, bound, at_least) in [(AtPost, 4, 26_000), (AtFlush, 3, 5_000)] {
        all(4, delivery, Job::Copy, 6_300);
        all(3, delivery, Job::CopyBack, 16_000);
        all(bound, delivery, Job::Delegated, at_least);
        all(bound, delivery, Job::Atomic, at_least);
    }
}

fn found(job: Job, mutant: AcpMutant, saying: &str) {
    for delivery in [AtPost, AtFlush] {
        check_fails(Some(2), &[saying], model(delivery, job, Some(mutant), |_| false));
    }
}

/// A completed operation is visible: a rank that observes the completion sees the bytes.
#[test]
fn completion_must_follow_a_flush() {
    found(Job::Copy, AcpMutant::NotFlushed, "Causality violation");
    found(Job::CopyBack, AcpMutant::NotFlushed, "Causality violation");
}

#[test]
fn a_lost_reply_is_found() {
    found(Job::Delegated, AcpMutant::ReplyLost, "deadlock");
    found(Job::Atomic, AcpMutant::ReplyLost, "deadlock");
}

#[test]
fn a_reply_must_follow_the_work() {
    // Later, the request has already been executed.
    check_fails(
        Some(2),
        &["Causality violation"],
        model(AtPost, Job::Delegated, Some(AcpMutant::RepliesFirst), |_| false),
    );
}

/// The bytes that a command copies are written before the command is issued.
#[test]
fn a_helper_must_acquire_what_is_issued() {
    let relaxed =
        |access| matches!(access, Access::Wait(at) | Access::Load(at) if at.rank == ASKER && at.offset == QUEUE);
    check_fails(Some(2), &["Causality violation"], model(AtPost, Job::Copy, None, relaxed));
}

/// When the program has observed the completion, the helper has read the bytes.
#[test]
fn a_program_must_acquire_what_is_complete() {
    let relaxed =
        |access| matches!(access, Access::Wait(at) | Access::Load(at) if at.rank == ASKER && at.offset == QUEUE + 64);
    check_fails(Some(2), &["Causality violation"], model(AtPost, Job::Copy, None, relaxed));
}
