//! Random sequences of calls, compared with a sequential readers-writer table.
//!
//! Calls are made one at a time; after each, all operations in flight complete in a random order.
//! Then the holds and waits of all ranks must match the table. The lock's preference is part of the
//! table.

mod table;

use checks::lock::{mutants::assert_idle, program::in_time};
use explore::{Event, LiveJob};
use proptest::prelude::*;
use rdma_fabric::{Caps, Fabric, ProgramResult, Rank};
use rma_lock::{
    Guard, RmaLock,
    locks::{FairLock, PackedLock, RpLock, WritersFirstLock},
};
use std::{cell::Cell, future::poll_fn, rc::Rc, task::Poll};
use table::{Hold, Table};

const RANKS: usize = 4;
/// An acquisition that gave up may keep its queue node until the lock is passed on; a rank has 4.
const NODES_TO_SPARE: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockCall {
    Read,
    Write,
    /// With a future that is dropped at the time when the other calls would give up.
    ReadOrDrop,
    WriteOrDrop,
    TryRead,
    TryWrite,
}

/// The connection between the driver and a rank's program.
#[derive(Debug, Default)]
struct Mailbox {
    call: Cell<Option<LockCall>>,
    release: Cell<bool>,
    end: Cell<bool>,
    hold: Cell<Hold>,
}

/// Makes the calls that arrive in the mailbox, until the end.
async fn serve<L: RmaLock>(fabric: Fabric, mailbox: Rc<Mailbox>) -> ProgramResult<()> {
    let lock = L::symmetric(&fabric, Rank::new(0)).await?;
    loop {
        let call = poll_fn(|_| match mailbox.call.take() {
            Some(call) => Poll::Ready(Some(call)),
            None if mailbox.end.get() => Poll::Ready(None),
            None => Poll::Pending,
        });
        let Some(call) = call.await else { return Ok(()) };
        let released = poll_fn(|_| if mailbox.release.take() { Poll::Ready(()) } else { Poll::Pending });
        // All waits have a deadline, which passes only if the driver requests it.
        let deadline = fabric.now().plus_picos(1);
        match call {
            LockCall::Read | LockCall::ReadOrDrop | LockCall::TryRead => {
                mailbox.hold.set(Hold::WaitsShared);
                let guard = match call {
                    LockCall::Read => in_time(lock.read_before(deadline).await)?,
                    LockCall::ReadOrDrop => fabric.before(deadline, lock.read()).await.transpose()?,
                    _ => lock.try_read().await?,
                };
                if let Some(guard) = guard {
                    mailbox.hold.set(Hold::Shared);
                    released.await;
                    guard.release().await?;
                }
            }
            LockCall::Write | LockCall::WriteOrDrop | LockCall::TryWrite => {
                mailbox.hold.set(Hold::WaitsExclusive);
                let guard = match call {
                    LockCall::Write => in_time(lock.write_before(deadline).await)?,
                    LockCall::WriteOrDrop => fabric.before(deadline, lock.write()).await.transpose()?,
                    _ => lock.try_write().await?,
                };
                if let Some(guard) = guard {
                    mailbox.hold.set(Hold::Exclusive);
                    released.await;
                    guard.release().await?;
                }
            }
        }
        mailbox.hold.set(Hold::Nothing);
    }
}

struct Driver {
    job: LiveJob,
    mailboxes: Vec<Rc<Mailbox>>,
    dice: u64,
}

impl Driver {
    fn new<L: RmaLock>(seed: u64) -> Self {
        let mailboxes: Vec<_> = (0..RANKS).map(|_| Rc::<Mailbox>::default()).collect();
        let job = LiveJob::new(RANKS, Caps::weakest(), |fabric| {
            let mailbox = mailboxes[fabric.rank().index()].clone();
            serve::<L>(fabric, mailbox)
        });
        let mut driver = Driver { job, mailboxes, dice: seed };
        driver.settle();
        driver
    }

    /// Lets a rank read its mailbox.
    fn go(&mut self, rank: usize) {
        self.job.go(Rank::new(rank as u32)).expect("no call fails");
    }

    /// Executes all events except deadlines, in a random order, until none is left.
    fn settle(&mut self) {
        let mut events = Vec::new();
        loop {
            self.job.events(&mut events);
            events.retain(|event| !matches!(event, Event::Tick(_)));
            if events.is_empty() {
                return;
            }
            // Knuth's generator, whose high bits are of better quality.
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.job.act(events[(self.dice >> 33) as usize % events.len()]).expect("no call fails");
        }
    }
}

/// A requested action of a rank, interpreted according to the rank's state.
#[derive(Clone, Copy, Debug)]
struct Wish {
    rank: usize,
    call: LockCall,
    /// For a waiting rank: whether its deadline passes.
    gives_up: bool,
}

fn wish() -> impl Strategy<Value = Wish> {
    let call = prop_oneof![
        Just(LockCall::Read),
        Just(LockCall::Write),
        Just(LockCall::ReadOrDrop),
        Just(LockCall::WriteOrDrop),
        Just(LockCall::TryRead),
        Just(LockCall::TryWrite)
    ];
    (0..RANKS, call, prop::bool::weighted(0.3)).prop_map(|(rank, call, gives_up)| Wish { rank, call, gives_up })
}

fn follow<L: RmaLock>(wishes: &[Wish], seed: u64) -> Result<(), TestCaseError> {
    let (mut table, mut driver) = (Table::new(L::FAIRNESS), Driver::new::<L>(seed));
    let end = (0..RANKS).cycle().map(|rank| Wish { rank, call: LockCall::TryRead, gives_up: false });
    for (number, Wish { rank, call, gives_up }) in wishes.iter().copied().chain(end.take(3 * RANKS * RANKS)).enumerate()
    {
        match table.holds[rank] {
            Hold::Nothing if number >= wishes.len() || table.gave_up[rank] >= NODES_TO_SPARE => continue,
            Hold::Nothing => {
                table.call(rank, call);
                driver.mailboxes[rank].call.set(Some(call));
            }
            Hold::Shared | Hold::Exclusive => {
                table.release(rank);
                driver.mailboxes[rank].release.set(true);
            }
            _ if gives_up => {
                table.give_up(rank);
                driver.job.act(Event::Tick(Rank::new(rank as u32))).expect("no call fails");
            }
            _ => continue,
        }
        driver.go(rank);
        driver.settle();
        let held: Vec<_> = driver.mailboxes.iter().map(|mailbox| mailbox.hold.get()).collect();
        prop_assert_eq!(&held[..], &table.holds[..], "after call {} ({:?} of rank {})", number, call, rank);
    }
    for rank in 0..RANKS {
        driver.mailboxes[rank].end.set(true);
        driver.go(rank);
    }
    driver.settle();
    let ended = (0..RANKS as u32).all(|rank| driver.job.has_ended(Rank::new(rank)));
    prop_assert!(ended, "a rank did not end");
    driver.job.look(|view| {
        let lock = view.words().filter(|(addr, _)| addr.region.index == 0);
        assert_idle(lock.map(|(addr, value)| (addr.rank.index(), addr.offset as usize / 8, value)));
    });
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reader_preference(wishes in prop::collection::vec(wish(), 1..40), seed in any::<u64>()) {
        follow::<RpLock>(&wishes, seed)?;
    }

    #[test]
    fn packed_reader_preference(wishes in prop::collection::vec(wish(), 1..40), seed in any::<u64>()) {
        follow::<PackedLock>(&wishes, seed)?;
    }

    #[test]
    fn writer_preference(wishes in prop::collection::vec(wish(), 1..40), seed in any::<u64>()) {
        follow::<WritersFirstLock>(&wishes, seed)?;
    }

    #[test]
    fn fair(wishes in prop::collection::vec(wish(), 1..40), seed in any::<u64>()) {
        follow::<FairLock>(&wishes, seed)?;
    }
}
