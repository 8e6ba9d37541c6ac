//! Commands of control queues between nodes.
//!
//! A command is a message to the target's rank, which executes it in its own memory
//! ([`Part::execute_remote`](tofu2_shm::part::Part::execute_remote)) and answers. Bytes that
//! do not fit into a message stay in the poster's heap: the target's rank, which has resolved their
//! destination, moves them by `fi_read`, or by `fi_write` for a get, and announces the command when
//! they have arrived.
//!
//! All of this is deferred work: see [`super::arrivals`].

use super::{
    arrivals::Arrival,
    core::Core,
    flight::{Flight, Job, Moved},
    keys::RankKeys,
    link::PAYLOAD,
    message::{Answer, Head, Kind, LONG},
    mutant::Mutant,
    net::Net,
};
use rdma_fabric::{Rank, RegionKey};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};
use tofu2_shm::part::{Executed, Payload, RemoteCommand, RemoteReply};

/// Maximum number of bytes in the message of a command.
const INLINE: usize = PAYLOAD - RemoteCommand::BYTES;
const _: () = assert!(RemoteReply::BYTES <= RemoteCommand::BYTES, "a reply holds as many");

/// Commands from other nodes that are in progress or waiting here.
#[derive(Debug, Default)]
pub(super) struct Bench {
    posters: BTreeMap<u32, Poster>,
}

/// The commands of one rank.
#[derive(Debug, Default)]
struct Poster {
    /// Number of commands whose bytes are being moved.
    moving: usize,
    /// Commands that wait for these transfers, in order.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    command: RemoteCommand,
    head: Head,
    bytes: Vec<u8>,
}

/// Connects the rank's control queues to the network.
pub(super) fn connect(net: &Arc<Net>) {
    let (carries, works) = (Arc::downgrade(net), Arc::downgrade(net));
    let carry = move |command, payload| {
        if let Some(net) = carries.upgrade() {
            net.carry(&command, payload);
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
    fn carry(&mut self, command: &RemoteCommand, payload: Payload) {
        let mut head = Head::request(Kind::Command, self.me, RegionKey::from_bits(0));
        let mut bytes = command.to_bytes();
        let mut flight = Flight::new(command.target().number(), Job::Command(Box::new(*command)));
        match payload {
            Payload::Nothing => {}
            Payload::Bytes(more) => bytes.extend(more),
            Payload::Memory(region, at) => {
                // Checked again under the lock: another thread of the program may have dropped the
                // region.
                if self.is_kept(region).is_err() {
                    let reply = Some(RemoteReply::stale(command, Rank::new(self.me)));
                    return self.arrivals.push_back(Arrival::Replied { command: Box::new(*command), reply });
                }
                (head.detail, head.offset) = (LONG, at);
                let (start, end) = (at as usize, (at as usize).saturating_add(command.len()));
                bytes.extend(self.heap.keys(self.door, start..end).to_bytes());
                self.directory.enter_own(region);
                flight.own = Some(region);
            }
        }
        self.dispatch(flight, head, bytes);
    }
}

impl Net {
    fn carry(&self, command: &RemoteCommand, payload: Payload) {
        self.with(|state| {
            state.core.carry(command, payload);
            state.flush_outbox();
        });
    }

    /// Starts moving the bytes of a command, which are at `at` in this rank's heap. Returns whether
    /// that is possible.
    fn begin_move(&self, moved: Moved, at: u64) -> bool {
        let Moved { command, head, region } = moved;
        let (len, there) = (command.len(), head.offset);
        let room = self.heap.len() as u64;
        let fits = |at: u64| at.checked_add(len as u64).is_some_and(|end| end <= room);
        self.with(|state| {
            let core = &state.core;
            // Checked again under the lock: another thread of the program may have dropped the
            // region.
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
    /// Starts the command in this message, or queues it.
    pub(super) fn command(&mut self, net: &Net, head: Head, bytes: &[u8]) {
        match RemoteCommand::from_bytes(Rank::new(head.from), bytes) {
            Some((command, rest)) if command.target() == net.me => {
                let keys = if head.detail == LONG { RankKeys::from_bytes(rest) } else { None };
                keys.into_iter().for_each(|keys| net.with(|state| state.core.keys.learn(head.from, keys)));
                let from = self.posters.entry(head.from).or_default();
                from.waiting.push_back(Waiting { command, head, bytes: rest.to_vec() });
                from.begin(net);
            }
            _ => net.reply(&head, Answer::Unsupported, Vec::new()),
        }
    }

    /// Completes a command whose bytes have been moved, or can no longer be moved.
    pub(super) fn moved(&mut self, net: &Net, moved: &Moved, arrived: bool) {
        let reply = net.part.moved(&moved.command, moved.region, arrived);
        net.reply(&moved.head, Answer::Good, reply.to_bytes());
        let from = self.posters.entry(moved.head.from).or_default();
        from.moving -= 1;
        from.begin(net);
    }

    /// Drops the waiting commands of lost ranks.
    pub(super) fn forget(&mut self, lost: &BTreeSet<u32>) {
        let gone = self.posters.iter_mut().filter(|(rank, _)| lost.contains(rank));
        gone.for_each(|(_, from)| from.waiting.clear());
    }
}

impl Poster {
    /// Executes the commands that need not wait.
    fn begin(&mut self, net: &Net) {
        let has_mutant = net.lock().core.has_mutant(Mutant::OvertakesMoves);
        let waits = |next: &Waiting, moving| next.command.keeps_order() && moving > 0 && !has_mutant;
        while let Some(Waiting { command, head, bytes }) = {
            let may_begin = self.waiting.front().is_some_and(|next| !waits(next, self.moving));
            if may_begin { self.waiting.pop_front() } else { None }
        } {
            let (region, at) = match net.part.execute_remote(&command, &bytes, head.detail == LONG) {
                Executed::Complete(reply) => {
                    net.reply(&head, Answer::Good, reply.to_bytes());
                    continue;
                }
                Executed::Move(region, at) => (region, at),
            };
            if net.begin_move(Moved { command, head, region }, at) {
                self.moving += 1;
            } else {
                net.part.moved(&command, region, false);
                net.reply(&head, Answer::Good, RemoteReply::stale(&command, net.me).to_bytes());
            }
        }
    }
}
