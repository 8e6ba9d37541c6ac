//! Messages to ranks, and the record that they have ended.

use super::{Job, Member, Order, Phase};
use crate::{
    End,
    wire::{Down, Frame},
};

impl Job {
    pub(super) fn end(&mut self, index: usize, end: End) {
        self.members[index].end = Some(end);
        self.changed = true;
        self.disturb();
    }

    pub(super) fn check_all_ended(&mut self) {
        let ended = self.members.iter().all(|member| member.end.is_some());
        if self.phase == Phase::Running && ended && self.epoch.is_none() && !self.all_ended {
            self.all_ended = true;
            self.changed = true;
            self.send_to_all(&Down::AllEnded);
        }
    }

    pub(super) fn send(&mut self, index: usize, frame: Frame) {
        let line = self.members[index].line;
        self.orders.extend(line.map(|token| Order::Send(token, frame)));
    }

    pub(super) fn send_to_all(&mut self, down: &Down) {
        self.send_where(down, |_, _| true);
    }

    pub(super) fn send_to_connected(&mut self, down: &Down) {
        self.send_where(down, |_, member| member.is_here());
    }

    /// Sends a message to all present ranks except `index`.
    pub(super) fn send_to_others(&mut self, index: usize, down: &Down) {
        self.send_where(down, |other, member| other != index && member.is_here());
    }

    pub(super) fn send_where(&mut self, down: &Down, wanted: impl Fn(usize, &Member) -> bool) {
        let frame = down.frame();
        for (index, member) in self.members.iter().enumerate() {
            if let Some(token) = member.line
                && wanted(index, member)
            {
                self.orders.push_back(Order::Send(token, Frame::clone(&frame)));
            }
        }
    }
}
