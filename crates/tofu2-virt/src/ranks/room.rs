//! Room in a rank's own transmit queue and in a target's notice queue, and the lines of waiters for
//! it.

use super::{Ranks, Status};
use rdma_fabric::Notice;
use std::{collections::VecDeque, mem};

/// The notice queue of one rank (its MRQ).
///
/// Its depth is enforced by credit: a put with notice reserves a place when it is posted and is
/// refused if there is none, so that no notice is ever lost or held up in the network. The hardware
/// has no such credit; this is an idealised model of the flow control of libraries above it.
#[derive(Debug, Default)]
pub(super) struct ReceiveQueue {
    notices: VecDeque<Notice>,
    /// Places taken by puts in flight.
    reserved: u32,
    /// Waiters for a place, in order of arrival.
    line: VecDeque<Ticket>,
    /// Places held for waiters whose turn has come and that have not posted yet.
    granted: Vec<Ticket>,
}

/// A place in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    rank: u32,
    number: u64,
}

impl ReceiveQueue {
    fn has_place(&self, depth: u32) -> bool {
        self.notices.len() + self.reserved as usize + self.granted.len() < depth as usize
    }

    /// Returns whether `rank` could post now.
    fn has_room(&self, rank: u32, depth: u32) -> bool {
        self.granted.iter().any(|t| t.rank == rank) || self.line.is_empty() && self.has_place(depth)
    }

    /// Takes a place for a put that is being posted. Returns false if there is none.
    fn reserve(&mut self, rank: u32, depth: u32) -> bool {
        if let Some(at) = self.granted.iter().position(|t| t.rank == rank) {
            self.granted.swap_remove(at);
        } else if !self.line.is_empty() || !self.has_place(depth) {
            return false;
        }
        self.reserved += 1;
        true
    }

    /// Gives up a place in the line or a grant. Returns the rank that is granted a place instead.
    fn give_up(&mut self, ticket: Ticket, depth: u32) -> Option<u32> {
        self.line.retain(|t| *t != ticket);
        self.granted.retain(|t| *t != ticket);
        self.grant(depth)
    }

    /// Records a put's arrival: its place is taken by the notice, or becomes free if the put
    /// failed. Returns the rank that is granted a place.
    fn arrive(&mut self, notice: Option<Notice>, depth: u32) -> Option<u32> {
        self.reserved = self.reserved.saturating_sub(1);
        self.notices.extend(notice);
        self.grant(depth)
    }

    /// Takes the oldest notice. Also returns the rank that is granted the place.
    fn take(&mut self, depth: u32) -> Option<(Notice, Option<u32>)> {
        let notice = self.notices.pop_front()?;
        Some((notice, self.grant(depth)))
    }

    fn grant(&mut self, depth: u32) -> Option<u32> {
        if !self.has_place(depth) {
            return None;
        }
        let ticket = self.line.pop_front()?;
        self.granted.push(ticket);
        Some(ticket.rank)
    }

    /// Returns all waiting ranks, to be woken when the queue's owner has ended.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.line.iter().chain(&self.granted).map(|t| t.rank)
    }
}

impl Ranks {
    /// Returns whether the rank has room in its TOQ, which has `depth` slots. If not, the rank
    /// waits in line; `own` is its ticket there plus 1.
    pub(crate) fn await_own_room(&mut self, rank: u32, depth: u32, own: &mut u64) -> bool {
        let full = self.is_full(rank, depth);
        let next = self.next_ticket;
        let line = &mut self.at(rank).extra().room_line;
        let first = line.front().copied();
        if !full && (first.is_none() || first == own.checked_sub(1)) {
            if mem::take(own) > 0 {
                line.pop_front();
            }
            // The next in line may find room as well.
            if !line.is_empty() {
                self.wake(rank);
            }
            return true;
        }
        if *own == 0 {
            *own = next + 1;
            line.push_back(next);
            self.next_ticket += 1;
        }
        false
    }

    /// Returns whether the rank has room in the notice queue of `target`, which has `depth` places.
    /// If not, the rank waits in line; `theirs` is its ticket there plus 1.
    pub(crate) fn await_notice_room(&mut self, rank: u32, target: u32, depth: u32, theirs: &mut u64) -> bool {
        let next = self.next_ticket;
        let queue = &mut self.at(target).extra().receive_queue;
        match theirs.checked_sub(1) {
            None if queue.has_room(rank, depth) => true,
            None => {
                queue.line.push_back(Ticket { rank, number: next });
                *theirs = next + 1;
                self.next_ticket += 1;
                false
            }
            Some(number) if queue.granted.contains(&Ticket { rank, number }) => {
                // The place is kept until this rank posts.
                *theirs = 0;
                true
            }
            Some(_) => false,
        }
    }

    /// Takes a rank's wait for room out of the lines. `own` and `theirs` are its tickets plus 1.
    pub(crate) fn leave_lines(&mut self, rank: u32, own: u64, theirs: u64, target: Option<u32>, depth: u32) {
        if let (Some(number), Some(extra)) = (own.checked_sub(1), self.at(rank).existing()) {
            extra.room_line.retain(|n| *n != number);
            self.wake(rank);
        }
        let target = target.filter(|target| self.status_of(*target).is_some());
        if let (Some(number), Some(target)) = (theirs.checked_sub(1), target) {
            let extra = self.at(target).existing();
            let next = extra.and_then(|extra| extra.receive_queue.give_up(Ticket { rank, number }, depth));
            self.wake_granted(next);
        }
    }

    /// Returns the ticket of one more wait for room.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    /// Takes a place in the target's notice queue. Returns false if there is none now.
    pub(crate) fn reserve_notice(&mut self, rank: u32, target: u32, depth: u32) -> bool {
        let state = self.at(target);
        state.status != Status::Running || state.extra().receive_queue.reserve(rank, depth)
    }

    /// Delivers the notice of a put to its target; `None` if the put failed.
    pub(crate) fn leave_notice(&mut self, target: u32, notice: Option<Notice>, depth: u32) {
        let state = self.at(target);
        if state.status != Status::Running {
            return;
        }
        let extra = state.extra();
        let next = extra.receive_queue.arrive(notice, depth);
        if extra.watches.iter().any(|watch| watch.what == super::Watched::Notice) {
            self.wake(target);
        }
        self.wake_granted(next);
    }

    /// Takes the oldest notice of a rank.
    pub(crate) fn take_notice(&mut self, rank: u32, depth: u32) -> Option<Notice> {
        let (notice, next) = self.at(rank).existing()?.receive_queue.take(depth)?;
        self.wake_granted(next);
        Some(notice)
    }

    fn wake_granted(&mut self, rank: Option<u32>) {
        if let Some(rank) = rank {
            self.wake(rank);
        }
    }
}
