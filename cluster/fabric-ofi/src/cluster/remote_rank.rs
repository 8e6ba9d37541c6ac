//! The state of communication with a rank of another node.

use super::core::Core;
use rdma_fabric::RegionKey;
use std::collections::VecDeque;

/// Maximum number of notices to one rank that have not entered its notice queue yet.
pub(super) const NOTICES: u64 = 1024;

/// The visibility of the puts to a rank, which are numbered from 0.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// All puts below this number are visible.
    base: u64,
    /// Whether each put from `base` on is visible.
    visible: VecDeque<bool>,
}

impl Window {
    /// Assigns a number to a put.
    pub(super) fn begin(&mut self) -> u64 {
        self.visible.push_back(false);
        self.next() - 1
    }

    /// Returns the number of the next put.
    pub(super) fn next(&self) -> u64 {
        self.base + self.visible.len() as u64
    }

    /// Records that a put is visible, or will never become visible.
    pub(super) fn end(&mut self, put: u64) {
        let at = put.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        if let Some(visible) = at.and_then(|at| self.visible.get_mut(at)) {
            *visible = true;
        }
        while self.visible.front() == Some(&true) {
            self.visible.pop_front();
            self.base += 1;
        }
    }

    /// Returns whether all puts below this number are visible.
    pub(super) fn is_past(&self, next: u64) -> bool {
        self.base >= next
    }
}

/// A message with a notice that waits for the ones before it.
#[derive(Debug)]
pub(super) struct QueuedNotice {
    pub(super) id: u64,
    /// Whether the bytes of its put have arrived, or are in the message.
    pub(super) ready: bool,
    pub(super) head: super::message::Head,
    pub(super) bytes: Vec<u8>,
}

/// A notice of another rank that waits for room in this rank's notice queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldNotice {
    pub(super) data: u64,
    pub(super) region: RegionKey,
    pub(super) end: u64,
}

/// A rank of another node. State that is rarely present is stored elsewhere, because every rank has
/// one of these.
#[derive(Debug, Default)]
pub(super) struct RemoteRank {
    pub(super) puts: Window,
    /// Number of notices to it that have not entered its notice queue.
    pub(super) notices: u64,
}

impl Core {
    /// Assigns a put its number among the puts to `rank`, and its number among all puts.
    pub(super) fn count_put(&mut self, rank: u32) -> (u64, u64) {
        (self.remote(rank).puts.begin(), self.puts.begin())
    }

    /// Records that a put is visible, or will never become visible.
    pub(super) fn end_put(&mut self, rank: u32, (number, among_all): (u64, u64)) {
        self.remote(rank).puts.end(number);
        self.puts.end(among_all);
    }

    /// Returns whether a put is not visible yet, or has failed with an error that is not reported
    /// yet.
    pub(super) fn has_unreported(&self) -> bool {
        !self.errors.is_empty() || !self.puts.is_past(self.puts.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_the_puts_before_it_and_no_others() {
        let mut window = Window::default();
        assert!(window.is_past(window.next()));
        let (a, b) = (window.begin(), window.begin());
        let flush = window.next();
        let c = window.begin();
        window.end(b);
        window.end(c);
        assert!(!window.is_past(flush));
        window.end(a);
        assert!(window.is_past(flush) && window.is_past(window.next()));
        window.end(a);
        assert_eq!(window.next(), 3);
    }
}
