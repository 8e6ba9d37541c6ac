//! Room in a rank's own transmit queue and in the queue of notices of a target, and the lines of
//! those who wait for it.

use super::{Ranks, Status};
use rdma_fabric::Notice;
use std::{collections::VecDeque, mem};

/// The queue of notices of one rank (its MRQ).
///
/// Its depth is kept by credit: a put with notice reserves a place when it is posted and is refused
/// if there is none, so that none is ever lost or held up in the network. The hardware has no such
/// credit; the model idealises what libraries do above it.
#[derive(Debug, Default)]
pub(super) struct ReceiveQueue {
    notices: VecDeque<Notice>,
    /// Places taken by puts under way.
    reserved: u32,
    /// Those that wait for a place, in order of arrival.
    line: VecDeque<Ticket>,
    /// Places kept for those whose turn it is and who have not posted yet.
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

    /// Whether `rank` could post now.
    fn has_room(&self, rank: u32, depth: u32) -> bool {
        self.granted.iter().any(|t| t.rank == rank) || self.line.is_empty() && self.has_place(depth)
    }

    /// Takes a place for a put that is being posted.
    fn reserve(&mut self, rank: u32, depth: u32) -> bool {
        if let Some(at) = self.granted.iter().position(|t| t.rank == rank) {
            self.granted.swap_remove(at);
        } else if !self.line.is_empty() || !self.has_place(depth) {
            return false;
        }
        self.reserved += 1;
        true
    }

    /// Gives up a place in the line or a grant; whoever gets the place instead.
    fn give_up(&mut self, ticket: Ticket, depth: u32) -> Option<u32> {
        self.line.retain(|t| *t != ticket);
        self.granted.retain(|t| *t != ticket);
        self.grant(depth)
    }

    /// A put has arrived; its place becomes the notice's, or is free if the put failed.
    fn arrive(&mut self, notice: Option<Notice>, depth: u32) -> Option<u32> {
        self.reserved = self.reserved.saturating_sub(1);
        self.notices.extend(notice);
        self.grant(depth)
    }

    /// The oldest notice, and who may post now.
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

    /// Everybody who waits, when the queue's owner has gone.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        self.line.iter().chain(&self.granted).map(|t| t.rank)
    }
}

impl Ranks {
    /// Whether the rank has room in its TOQ, which is so deep. If not, it waits in line; `own` is
    /// its ticket there, and 1.
    pub(crate) fn await_own_room(&mut self, rank: u32, depth: u32, own: &mut u64) -> bool {
        let full = self.is_full(rank, depth);
        let next = self.next_ticket;
        let line = &mut self.at(rank).extra().room_line;
        let first = line.front().copied();
        if !full && (first.is_none() || first == own.checked_sub(1)) {
            if mem::take(own) > 0 {
                line.pop_front();
            }
            // Whoever is next may find room as well.
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

    /// Whether the rank has room in the queue of notices of `target`, which is so deep. If not, it
    /// waits in line; `theirs` is its ticket there, and 1.
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

    /// Gives up what a wait of the rank for room has in lines: `own` and `theirs` are its tickets,
    /// and 1.
    pub(crate) fn leave_lines(&mut self, rank: u32, own: u64, theirs: u64, target: Option<u32>, depth: u32) {
        if let (Some(number), Some(extra)) = (own.checked_sub(1), self.at(rank).existing()) {
            extra.room_line.retain(|n| *n != number);
            self.wake(rank);
        }
        if let (Some(number), Some(target)) = (theirs.checked_sub(1), target) {
            let extra = self.at(target).existing();
            let next = extra.and_then(|extra| extra.receive_queue.give_up(Ticket { rank, number }, depth));
            self.wake_granted(next);
        }
    }

    /// The ticket of one more wait for room.
    pub(crate) fn next_ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    /// Takes a place in the target's queue of notices; false if there is none now.
    pub(crate) fn reserve_notice(&mut self, rank: u32, target: u32, depth: u32) -> bool {
        let state = self.at(target);
        state.status != Status::Running || state.extra().receive_queue.reserve(rank, depth)
    }

    /// A put with notice has come to its target; without one if it failed.
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

    /// The oldest notice of a rank.
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
