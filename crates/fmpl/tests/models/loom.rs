//! Messages under loom: a sender and a receiver, each on a thread, in every interleaving and under
//! all memory-ordering effects that loom models, within a bound on preemptions.
//!
//! The code is that of the library, except for the set-up: the members already know each other and
//! the receive buffers. Receives go into plain memory, of which loom reports every race.

use explore::mutant::{Mutant, mutated};
use fmpl::{Buffer, Fmpl, Options};
use loom_fabric::{
    Access, Config,
    Delivery::{self, AtFlush, AtPost},
    RankHandle, check, check_fails, run_after,
};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::{cell::Cell, rc::Rc, time::Duration};

/// The program of the two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// This number of messages with one index.
    Row(u64),
    /// The same, with a spool for messages without a header; they are too long for their offers.
    Spooled(u64),
    /// The same, with messages that travel in their offers.
    Inline(u64),
    /// This number of barriers.
    Barrier(usize),
}

impl Job {
    /// Returns the words of a message.
    fn words(self) -> usize {
        if let Job::Spooled(_) = self { 3 } else { 1 }
    }
}

#[derive(Debug)]
struct Mutated {
    enabled: bool,
    begun: Rc<Cell<bool>>,
}

impl Mutant for Mutated {
    fn flushes(&self, _: Option<Rank>) -> bool {
        !self.enabled || !self.begun.get()
    }
}

/// One rank after the set-up.
struct Member {
    fmpl: Fmpl,
    buffer: Buffer<u64>,
    begun: Rc<Cell<bool>>,
}

impl Member {
    async fn begin(loom: Fabric, job: Job, enabled: bool) -> ProgramResult<Self> {
        let begun = Rc::new(Cell::new(false));
        let fabric = mutated(loom.clone(), Mutated { enabled, begun: begun.clone() });
        let options = Options::default().indices(1).any_indices(0).peers(2);
        let options =
            if let Job::Spooled(_) | Job::Inline(_) = job { options.spool(64, Duration::ZERO) } else { options };
        let fmpl = Fmpl::init_with(&fabric, options).await?;
        let world = fmpl.world();
        let buffer = RankHandle::of(&loom).watched(|| world.buffer::<u64>(job.words()))?;
        for root in 0..2 {
            world.broadcast(&buffer, root).await?;
        }
        if let Job::Row(_) = job {
            match world.me() {
                0 => world.send(&[0u64], 1, 0).await?,
                _ => drop(world.recv(&buffer, 0, 0).await?),
            }
        }
        world.barrier().await?;
        Ok(Member { fmpl, buffer, begun })
    }

    async fn run(&self, job: Job) -> ProgramResult<()> {
        self.begun.set(true);
        let world = self.fmpl.world();
        match job {
            Job::Barrier(times) => {
                for _ in 0..times {
                    world.barrier().await?;
                }
            }
            Job::Row(messages) | Job::Spooled(messages) | Job::Inline(messages) => {
                for n in 0..messages {
                    if world.me() == 0 {
                        world.send(&vec![n + 7; job.words()], 1, 0).await?;
                    } else {
                        world.recv(&self.buffer, 0, 0).await?;
                        self.came(&vec![n + 7; job.words()])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn came(&self, words: &[u64]) -> ProgramResult<()> {
        let mut found = vec![0; words.len()];
        self.fmpl.world().fabric().read(&self.buffer, &mut found)?;
        assert_eq!(found, words, "what came");
        Ok(())
    }
}

fn model(
    delivery: Delivery,
    job: Job,
    enabled: bool,
    relaxed: fn(Access) -> bool,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let config = Config { cells_per_rank: 1024, relaxed, ..Config::new(2, delivery) };
        let set_up = move |loom| async move { Member::begin(loom, job, enabled).await.expect("the set-up is right") };
        run_after(config, set_up, move |_, member| async move {
            member.run(job).await.expect("no error is possible");
            member
        });
    }
}

fn all(preemptions: usize, delivery: Delivery, job: Job, at_least: usize) {
    print!("{job:?}, {delivery:?}: ");
    check(Some(preemptions), at_least, model(delivery, job, false, |_| false));
}

#[test]
fn messages_of_one_index() {
    for delivery in [AtPost, AtFlush] {
        all(1, delivery, Job::Row(1), 270);
    }
}

#[test]
fn barriers() {
    all(2, AtPost, Job::Barrier(2), 250);
    all(2, AtFlush, Job::Barrier(2), 10);
}

#[test]
#[ignore = "long: weekly"]
fn more_messages() {
    all(1, AtPost, Job::Row(2), 17_000);
    all(1, AtFlush, Job::Row(2), 6_200);
    for delivery in [AtPost, AtFlush] {
        all(1, delivery, Job::Spooled(1), 14);
        all(1, delivery, Job::Inline(1), 10);
    }
}

/// A flag must not arrive before the body. (Later puts arrive in the order posted.)
#[test]
fn a_flag_must_follow_a_flush() {
    check_fails(Some(1), &["Causality violation"], model(AtPost, Job::Row(1), true, |_| false));
}

/// A rank that sees a flag also sees the body.
#[test]
fn a_receiver_must_acquire_the_flag() {
    let relaxed = |access| matches!(access, Access::Wait(at) | Access::Load(at) if at.rank == Rank::new(1));
    check_fails(Some(1), &["Causality violation"], model(AtPost, Job::Row(1), false, relaxed));
}
