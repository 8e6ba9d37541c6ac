//! Random sequences of calls against a sequential readers-writer table.
//!
//! Calls are made one at a time; after each, the network comes to rest, in a random order. What every rank then
//! holds or waits for must be what the table says. Reader preference is part of the table.

use crate::{
    fabric::NetFabric,
    mutant::assert_idle,
    net::{Action, Net, mix},
    rp::in_time,
};
use proptest::prelude::*;
use rdma_fabric::{Fabric, Rank};
use rma_lock::{LockError, RpLock};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

const RANKS: usize = 4;
/// An acquisition that gave up may keep its queue node until the lock is passed on; a rank has 4.
const NODES_TO_SPARE: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    /// With a future that is dropped where the others give up.
    ReadOrDrop,
    WriteOrDrop,
    TryRead,
    TryWrite,
}

/// What a rank holds or waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hold {
    #[default]
    Nothing,
    Shared,
    Exclusive,
    WaitsShared,
    WaitsExclusive,
}

/// The oracle: one table, no concurrency.
#[derive(Debug, Default)]
struct Table {
    holds: [Hold; RANKS],
    writers: VecDeque<usize>,
    gave_up: [u32; RANKS],
}

impl Table {
    fn any(&self, hold: Hold) -> bool {
        self.holds.contains(&hold)
    }

    fn call(&mut self, rank: usize, call: Call) {
        let written = self.any(Hold::Exclusive);
        let free = !written && !self.any(Hold::Shared) && self.writers.is_empty();
        self.holds[rank] = match call {
            Call::Read | Call::ReadOrDrop | Call::TryRead if !written => Hold::Shared,
            Call::Read | Call::ReadOrDrop => Hold::WaitsShared,
            Call::Write | Call::WriteOrDrop | Call::TryWrite if free => Hold::Exclusive,
            Call::Write | Call::WriteOrDrop => {
                self.writers.push_back(rank);
                Hold::WaitsExclusive
            }
            Call::TryRead | Call::TryWrite => Hold::Nothing,
        };
    }

    fn release(&mut self, rank: usize) {
        self.holds[rank] = Hold::Nothing;
        self.pass_on();
    }

    fn give_up(&mut self, rank: usize) {
        self.holds[rank] = Hold::Nothing;
        self.writers.retain(|writer| *writer != rank);
        self.gave_up[rank] += 1;
    }

    /// Readers first, all of them; a writer if there is none.
    fn pass_on(&mut self) {
        if self.any(Hold::Exclusive) {
            return;
        }
        for hold in &mut self.holds {
            if *hold == Hold::WaitsShared {
                *hold = Hold::Shared;
            }
        }
        if !self.any(Hold::Shared) {
            if let Some(writer) = self.writers.pop_front() {
                self.holds[writer] = Hold::Exclusive;
            } else {
                self.gave_up = [0; RANKS];
            }
        }
    }
}

/// Between the driver and a rank's program.
#[derive(Debug, Default)]
struct Desk {
    call: Cell<Option<Call>>,
    release: Cell<bool>,
    end: Cell<bool>,
    hold: Cell<Hold>,
}

/// Make the calls that are put on the desk, until the end.
async fn serve(fabric: NetFabric, desk: Rc<Desk>) -> Result<(), LockError> {
    let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
    loop {
        let call = poll_fn(|_| match desk.call.take() {
            Some(call) => Poll::Ready(Some(call)),
            None if desk.end.get() => Poll::Ready(None),
            None => Poll::Pending,
        });
        let Some(call) = call.await else { return Ok(()) };
        let released = poll_fn(|_| if desk.release.take() { Poll::Ready(()) } else { Poll::Pending });
        // All waits have a deadline, which comes only if the driver says so.
        let deadline = fabric.now().plus_picos(1);
        match call {
            Call::Read | Call::ReadOrDrop | Call::TryRead => {
                desk.hold.set(Hold::WaitsShared);
                let guard = match call {
                    Call::Read => in_time(lock.read_before(deadline).await)?,
                    Call::ReadOrDrop => fabric.before(deadline, lock.read()).await.transpose()?,
                    _ => lock.try_read().await?,
                };
                if let Some(guard) = guard {
                    desk.hold.set(Hold::Shared);
                    released.await;
                    guard.release().await?;
                }
            }
            Call::Write | Call::WriteOrDrop | Call::TryWrite => {
                desk.hold.set(Hold::WaitsExclusive);
                let guard = match call {
                    Call::Write => in_time(lock.write_before(deadline).await)?,
                    Call::WriteOrDrop => fabric.before(deadline, lock.write()).await.transpose()?,
                    _ => lock.try_write().await?,
                };
                if let Some(guard) = guard {
                    desk.hold.set(Hold::Exclusive);
                    released.await;
                    guard.release().await?;
                }
            }
        }
        desk.hold.set(Hold::Nothing);
    }
}

type Program = Pin<Box<dyn Future<Output = Result<(), LockError>>>>;

struct Driver {
    net: Rc<RefCell<Net>>,
    desks: Vec<Rc<Desk>>,
    programs: Vec<Option<Program>>,
    dice: u64,
}

impl Driver {
    fn new(seed: u64) -> Self {
        let net = Rc::new(RefCell::new(Net::new(RANKS, 32)));
        let desks: Vec<_> = (0..RANKS).map(|_| Rc::<Desk>::default()).collect();
        let programs = desks.iter().enumerate().map(|(rank, desk)| -> Option<Program> {
            let fabric = NetFabric::new(net.clone(), Rank::new(rank as u32));
            Some(Box::pin(serve(fabric, desk.clone())))
        });
        let programs = programs.collect();
        let mut driver = Driver { net, desks, programs, dice: seed };
        driver.settle();
        driver
    }

    fn step(&mut self, rank: usize) {
        let mut cx = Context::from_waker(Waker::noop());
        if let Some(program) = &mut self.programs[rank]
            && let Poll::Ready(outcome) = program.as_mut().poll(&mut cx)
        {
            outcome.expect("no call fails");
            self.programs[rank] = None;
        }
        let detached = self.net.borrow().detached.clone();
        detached.poll(Rank::new(rank as u32), &mut cx);
    }

    fn act(&mut self, action: Action) {
        self.net.borrow_mut().act(action);
        if let Action::Step(rank) = action {
            self.step(rank);
        }
    }

    /// Everything but deadlines, in a random order, until nothing is left to happen.
    fn settle(&mut self) {
        let mut actions = Vec::new();
        loop {
            self.net.borrow().actions(&mut actions);
            actions.retain(|action| !matches!(action, Action::Expire(_)));
            if actions.is_empty() {
                return;
            }
            self.dice = mix(self.dice, 1);
            self.act(actions[(self.dice % actions.len() as u64) as usize]);
        }
    }
}

/// A wish for a rank, read according to what it holds.
#[derive(Clone, Copy, Debug)]
struct Wish {
    rank: usize,
    call: Call,
    /// Of a waiting rank: whether its deadline comes.
    gives_up: bool,
}

fn wish() -> impl Strategy<Value = Wish> {
    let call = prop_oneof![
        Just(Call::Read),
        Just(Call::Write),
        Just(Call::ReadOrDrop),
        Just(Call::WriteOrDrop),
        Just(Call::TryRead),
        Just(Call::TryWrite)
    ];
    (0..RANKS, call, prop::bool::weighted(0.3)).prop_map(|(rank, call, gives_up)| Wish { rank, call, gives_up })
}

fn follow(wishes: &[Wish], seed: u64) -> Result<(), TestCaseError> {
    let (mut table, mut driver) = (Table::default(), Driver::new(seed));
    let end = (0..RANKS).cycle().map(|rank| Wish { rank, call: Call::TryRead, gives_up: false });
    for (number, Wish { rank, call, gives_up }) in wishes.iter().copied().chain(end.take(3 * RANKS * RANKS)).enumerate()
    {
        match table.holds[rank] {
            Hold::Nothing if number >= wishes.len() || table.gave_up[rank] >= NODES_TO_SPARE => continue,
            Hold::Nothing => {
                table.call(rank, call);
                driver.desks[rank].call.set(Some(call));
            }
            Hold::Shared | Hold::Exclusive => {
                table.release(rank);
                driver.desks[rank].release.set(true);
            }
            _ if gives_up => {
                table.give_up(rank);
                driver.act(Action::Expire(rank));
            }
            _ => continue,
        }
        driver.step(rank);
        driver.settle();
        let held: Vec<_> = driver.desks.iter().map(|desk| desk.hold.get()).collect();
        prop_assert_eq!(&held[..], &table.holds[..], "after call {} ({:?} of rank {})", number, call, rank);
    }
    for rank in 0..RANKS {
        driver.desks[rank].end.set(true);
        driver.step(rank);
    }
    driver.settle();
    prop_assert!(driver.programs.iter().all(Option::is_none), "a rank did not end");
    assert_idle(driver.net.borrow().residue());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_answer_as_a_table_would(wishes in prop::collection::vec(wish(), 1..40), seed in any::<u64>()) {
        follow(&wishes, seed)?;
    }
}
