//! The queue of notices of one rank (its MRQ).
//!
//! Its depth is kept by credit: a put with notice reserves a place when it is posted and is refused if there is none, so that
//! none is ever lost or held up in the network. The hardware has no such credit; the model idealises what libraries do above it.

use rdma_fabric::Notice;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct ReceiveQueue {
    notices: VecDeque<Notice>,
    /// Places taken by puts under way.
    reserved: u32,
    /// Who waits for a place, in order of coming.
    line: VecDeque<Ticket>,
    /// Places kept for those whose turn it is and who have not posted yet.
    granted: Vec<Ticket>,
}

/// A place in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) rank: u32,
    pub(super) number: u64,
}

impl ReceiveQueue {
    fn has_place(&self, depth: u32) -> bool {
        self.notices.len() + self.reserved as usize + self.granted.len() < depth as usize
    }

    /// Whether `rank` could post now.
    pub(super) fn has_room(&self, rank: u32, depth: u32) -> bool {
        self.granted.iter().any(|t| t.rank == rank) || self.line.is_empty() && self.has_place(depth)
    }

    /// Takes a place for a put that is being posted.
    pub(super) fn reserve(&mut self, rank: u32, depth: u32) -> bool {
        if let Some(at) = self.granted.iter().position(|t| t.rank == rank) {
            self.granted.swap_remove(at);
        } else if !self.line.is_empty() || !self.has_place(depth) {
            return false;
        }
        self.reserved += 1;
        true
    }

    pub(super) fn queue_up(&mut self, ticket: Ticket) {
        self.line.push_back(ticket);
    }

    pub(super) fn is_granted(&self, ticket: Ticket) -> bool {
        self.granted.contains(&ticket)
    }

    /// Gives up a place in the line or a grant; whoever gets the place instead.
    pub(super) fn give_up(&mut self, ticket: Ticket, depth: u32) -> Option<u32> {
        self.line.retain(|t| *t != ticket);
        self.granted.retain(|t| *t != ticket);
        self.grant(depth)
    }

    /// A put has arrived; its place becomes the notice's, or is free if the put failed.
    pub(super) fn arrive(&mut self, notice: Option<Notice>, depth: u32) -> Option<u32> {
        self.reserved = self.reserved.saturating_sub(1);
        self.notices.extend(notice);
        self.grant(depth)
    }

    /// The oldest notice, and who may post now.
    pub(super) fn take(&mut self, depth: u32) -> Option<(Notice, Option<u32>)> {
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
