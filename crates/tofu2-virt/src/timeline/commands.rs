//! Commands posted to control queues, and the puts that released them.

use super::CommandId;
use rdma_fabric::{
    Time,
    control_queue::{Posting, QueueId},
};
use std::collections::HashMap;

/// The reason why a command of a control queue could start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It did not have to wait: the queue has no session offset, or the offset was already beyond
    /// the command.
    AtOnce,
    /// A put advanced the session offset beyond it. Contains the index of that put in
    /// [`super::Timeline::commands`], if it was recorded.
    By(Option<usize>),
}

/// A post to a control queue. If it has several blocks, the times are those of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCommand {
    /// The queue.
    pub queue: QueueId,
    /// Its first slot, counted from the opening of the queue.
    pub slot: u64,
    /// The posting.
    pub posting: Posting,
    /// The time at which the CPU had written the command.
    pub posted: Time,
    /// The time at which the engine took the command; `None` if it never did.
    pub started: Option<Time>,
    /// The time at which the command had passed its target's receive engine; `None` if it has no
    /// target or never arrived there.
    pub arrived: Option<Time>,
    /// The reason why the command could start.
    pub released: Released,
}

impl SeenCommand {
    pub(super) fn posted(queue: QueueId, slot: u64, posting: &Posting, written: u64) -> Self {
        let (started, arrived, released) = (None, None, Released::AtOnce);
        SeenCommand { queue, slot, posting: *posting, posted: Time::from_picos(written), started, arrived, released }
    }
}

/// An advance of a session offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Advance {
    /// The opening of the queue.
    pub(super) opening: u64,
    /// The first slot that it released.
    pub(super) from: u64,
    /// The first slot that it did not release.
    pub(super) to: u64,
    /// Opening and slot of the put that advanced the offset, if known.
    pub(super) by: Option<(u64, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PostedCommand {
    /// The opening of the queue.
    opening: u64,
    id: CommandId,
    command: SeenCommand,
}

/// The postings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Commands {
    list: Vec<PostedCommand>,
    advances: Vec<Advance>,
    /// Indices into the list by opening and first slot. Never iterated.
    by_slot: HashMap<(u64, u64), usize>,
}

impl Commands {
    pub(super) fn posted(&mut self, opening: u64, command: SeenCommand, id: CommandId, limit: usize) {
        if self.list.len() < limit {
            self.by_slot.insert((opening, command.slot), self.list.len());
            self.list.push(PostedCommand { opening, id, command });
        }
    }

    pub(super) fn started(&mut self, at: (u64, u64), now: u64) {
        if let Some(command) = self.at(at) {
            command.started.get_or_insert(Time::from_picos(now));
        }
    }

    pub(super) fn arrived(&mut self, at: (u64, u64), now: u64) {
        if let Some(command) = self.at(at) {
            command.arrived.get_or_insert(Time::from_picos(now));
        }
    }

    pub(super) fn advanced(&mut self, advance: Advance, limit: usize) {
        if self.advances.len() < limit {
            self.advances.push(advance);
        }
    }

    fn at(&mut self, at: (u64, u64)) -> Option<&mut SeenCommand> {
        self.by_slot.get(&at).map(|place| &mut self.list[*place].command)
    }

    /// Iterates over all commands with their identifiers, without the reasons for their release.
    #[cfg(feature = "timeline")]
    pub(super) fn named(&self) -> impl Iterator<Item = (CommandId, &SeenCommand)> {
        self.list.iter().map(|entry| (entry.id, &entry.command))
    }

    /// Returns all commands, each with the reason for its release.
    pub(super) fn seen(&self) -> Vec<SeenCommand> {
        let seen = |PostedCommand { opening, command, .. }: &PostedCommand| {
            let last = command.slot + command.posting.command.slots() - 1;
            let releases =
                |advance: &&Advance| advance.opening == *opening && (advance.from..advance.to).contains(&last);
            let released = match self.advances.iter().find(releases) {
                None => Released::AtOnce,
                Some(advance) => Released::By(advance.by.and_then(|by| self.by_slot.get(&by).copied())),
            };
            SeenCommand { released, ..command.clone() }
        };
        self.list.iter().map(seen).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::{Rank, control_queue::Command};

    fn seen(slot: u64) -> SeenCommand {
        SeenCommand::posted(QueueId::new(Rank::new(0), 0, 0, 0), slot, &Posting::new(Command::Nop), 0)
    }

    #[test]
    fn an_advance_releases_its_slots_of_its_opening_only() {
        let mut commands = Commands::default();
        for (opening, slot) in [(7, 0), (7, 1), (7, 2), (8, 1)] {
            commands.posted(opening, seen(slot), 0, 100);
        }
        // The offset was past slot 0 from the start; the command in slot 0 of opening 7 releases
        // slot 1.
        commands.advanced(Advance { opening: 7, from: 1, to: 2, by: Some((7, 0)) }, 100);
        commands.advanced(Advance { opening: 7, from: 2, to: 3, by: None }, 100);
        let released: Vec<_> = commands.seen().into_iter().map(|command| command.released).collect();
        assert_eq!(released, [Released::AtOnce, Released::By(Some(0)), Released::By(None), Released::AtOnce]);
    }

    #[test]
    fn there_are_no_more_than_the_limit() {
        let mut commands = Commands::default();
        (0..5).for_each(|slot| commands.posted(0, seen(slot), 0, 3));
        assert_eq!(commands.seen().len(), 3);
    }
}
