//! Commands of control queues between nodes.
//!
//! A command is a message to the target's rank, which carries it out in its own memory
//! ([`Part::obey`](tofu2_sim::shm::part::Part::obey)), and answers. More bytes than a message holds
//! stay in the poster's heap: the target's rank, which has looked up where they belong, moves them
//! by `fi_read`, or by `fi_write` for a get, and announces the command when they are there.
//!
//! What is carried out may execute other commands, which go to other nodes in turn. So nothing of
//! this is done while the lock of the rank's share is held: messages and ends are noted as
//! [`Arrival`]s, and worked on, in their order and by one thread at a time, when it was given back.

use super::{
    core::Core,
    flight::{Flight, Job, Moved},
    link::PAYLOAD,
    message::{Answer, Head, Kind, LONG},
    mistake::Mistake,
    net::Net,
    outbox::answer_tag,
};
use rdma_fabric::{Rank, RegionKey};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, MutexGuard, PoisonError, TryLockError},
};
use tofu2_sim::shm::part::{Cargo, FarCommand, FarReply, Obeyed};

/// The most bytes that go with a command.
const INLINE: usize = PAYLOAD - FarCommand::BYTES;
const _: () = assert!(FarReply::BYTES <= FarCommand::BYTES, "a reply holds as many");

/// Something to do for control queues.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A message with a command.
    Command { head: Head, bytes: Vec<u8> },
    /// The bytes of a command were moved, or never will be.
    Moved { moved: Box<Moved>, arrived: bool },
    /// A command of this rank is over: what its target replied, if it did.
    Replied { command: Box<FarCommand>, reply: Option<FarReply> },
}

/// Commands of other nodes that have begun here, or wait.
#[derive(Debug, Default)]
pub(super) struct Bench {
    posters: BTreeMap<u32, Poster>,
}

/// The commands of one rank.
#[derive(Debug, Default)]
struct Poster {
    /// Commands whose bytes are being moved.
    moving: usize,
    /// Commands that wait for those, in order.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    command: FarCommand,
    head: Head,
    bytes: Vec<u8>,
}

/// Takes commands from the rank's queues.
pub(super) fn connect(net: &Arc<Net>) {
    let (carries, works) = (Arc::downgrade(net), Arc::downgrade(net));
    let carry = move |command, cargo| {
        if let Some(net) = carries.upgrade() {
            net.carry(&command, cargo);
        }
    };
    let work = move || {
        if let Some(net) = works.upgrade() {
            net.look();
        }
    };
    net.part.on_command(INLINE, carry, work);
}

impl Core {
    /// Sends a command of this rank.
    fn carry(&mut self, command: &FarCommand, cargo: Cargo) {
        let mut head = Head::ask(Kind::Command, self.me, RegionKey::from_bits(0));
        let mut bytes = command.to_bytes();
        let mut flight = Flight::new(command.target().number(), Job::Command(Box::new(*command)));
        match cargo {
            Cargo::Nothing => {}
            Cargo::Bytes(more) => bytes.extend(more),
            Cargo::Memory(region, at) => {
                // Again, under the lock: another thread of the program may have dropped it.
                if self.is_kept(region).is_err() {
                    let reply = Some(FarReply::stale(command, Rank::new(self.me)));
                    return self.arrivals.push_back(Arrival::Replied { command: Box::new(*command), reply });
                }
                (head.detail, head.offset) = (LONG, at);
                self.directory.enter_own(region);
                flight.own = Some(region);
            }
        }
        self.dispatch(flight, head, bytes);
    }

    /// Notes what there is to do now that a flight has ended.
    pub(super) fn ended(&mut self, flight: Flight) {
        let good = matches!(flight.outcome, Some(Ok(_)));
        match flight.job {
            Job::Command(command) => {
                let reply = FarReply::from_bytes(&flight.bytes).filter(|_| good);
                self.arrivals.push_back(Arrival::Replied { command, reply });
            }
            Job::Move(moved) => self.arrivals.push_back(Arrival::Moved { moved, arrived: good }),
            _ => {}
        }
    }

    /// Drops commands of lost ranks that have arrived and were not begun.
    pub(super) fn drop_commands(&mut self, lost: &BTreeSet<u32>) {
        let is_lost = |arrival: &Arrival| matches!(arrival, Arrival::Command { head, .. } if lost.contains(&head.from));
        self.arrivals.retain(|arrival| !is_lost(arrival));
    }
}

impl Net {
    fn carry(&self, command: &FarCommand, cargo: Cargo) {
        self.with(|state| {
            state.core.carry(command, cargo);
            state.flush_outbox();
        });
    }

    fn bench(&self) -> Option<MutexGuard<'_, Bench>> {
        match self.bench.try_lock() {
            Ok(bench) => Some(bench),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Works on all arrivals, unless a thread does. That one looks again after it has given the
    /// bench back, so none is forgotten.
    pub(super) fn work_on_commands(&self) {
        while let Some(mut bench) = self.bench() {
            let arrivals = core::mem::take(&mut self.lock().core.arrivals);
            arrivals.into_iter().for_each(|arrival| bench.work_on(self, arrival));
            drop(bench);
            if self.lock().core.arrivals.is_empty() {
                return;
            }
        }
    }

    /// Sees to it that no command of ranks that are lost takes effect any more.
    pub(super) fn forget_commands(&self, lost: &[Rank]) {
        let lost: BTreeSet<u32> = lost.iter().map(|rank| rank.number()).collect();
        // Waits for a command that is being carried out at this moment.
        let mut bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().core.drop_commands(&lost);
        bench.posters.iter_mut().filter(|(rank, _)| lost.contains(rank)).for_each(|(_, from)| from.waiting.clear());
    }

    fn reply(&self, head: &Head, reply: Option<&FarReply>) {
        self.with(|state| {
            let answer = if reply.is_some() { Answer::Good } else { Answer::Unsupported };
            let (core, bytes) = (&mut state.core, reply.map(FarReply::to_bytes).unwrap_or_default());
            core.send_soon(head.from, answer_tag(head.from), head.answer(core.me, answer, 0, 0), bytes);
            state.flush_outbox();
        });
    }

    /// Begins to move the bytes of a command, which are from `at` on in this rank's heap. Returns
    /// whether that is possible.
    fn begin_move(&self, moved: Moved, at: u64) -> bool {
        let Moved { command, head, region } = moved;
        let (len, there) = (command.len(), head.offset);
        let room = self.heap.len() as u64;
        let fits = |at: u64| at.checked_add(len as u64).is_some_and(|end| end <= room);
        self.with(|state| {
            let core = &state.core;
            // Again, under the lock: another thread of the program may have dropped the region.
            if core.is_kept(region).is_err() || core.lost.contains(&head.from) || !fits(at) || !fits(there) {
                return false;
            }
            let flight = Flight { own: Some(region), ..Flight::new(head.from, Job::Move(Box::new(moved))) };
            let here = at as usize..at as usize + len;
            state.move_bytes(flight, here, there, command.is_put());
            true
        })
    }
}

impl Bench {
    fn work_on(&mut self, net: &Net, arrival: Arrival) {
        match arrival {
            Arrival::Command { head, bytes } => match FarCommand::from_bytes(Rank::new(head.from), &bytes) {
                Some((command, rest)) if command.target() == net.me => {
                    let from = self.posters.entry(head.from).or_default();
                    from.waiting.push_back(Waiting { command, head, bytes: rest.to_vec() });
                    from.begin(net);
                }
                _ => net.reply(&head, None),
            },
            Arrival::Moved { moved, arrived } => {
                let reply = net.part.moved(&moved.command, moved.region, arrived);
                net.reply(&moved.head, Some(&reply));
                let from = self.posters.entry(moved.head.from).or_default();
                from.moving -= 1;
                from.begin(net);
            }
            Arrival::Replied { command, reply } => {
                let reply = reply.unwrap_or_else(|| FarReply::lost(&command));
                net.part.replied(&command, &reply);
            }
        }
    }
}

impl Poster {
    /// Carries out commands that wait for nothing.
    fn begin(&mut self, net: &Net) {
        let errs = net.lock().core.errs(Mistake::OvertakesMoves);
        let waits = |next: &Waiting, moving| next.command.keeps_order() && moving > 0 && !errs;
        while let Some(Waiting { command, head, bytes }) = {
            let may_begin = self.waiting.front().is_some_and(|next| !waits(next, self.moving));
            if may_begin { self.waiting.pop_front() } else { None }
        } {
            let (region, at) = match net.part.obey(&command, &bytes, head.detail == LONG) {
                Obeyed::Over(reply) => {
                    net.reply(&head, Some(&reply));
                    continue;
                }
                Obeyed::Move(region, at) => (region, at),
            };
            if net.begin_move(Moved { command, head, region }, at) {
                self.moving += 1;
            } else {
                net.part.moved(&command, region, false);
                net.reply(&head, Some(&FarReply::stale(&command, net.me)));
            }
        }
    }
}
