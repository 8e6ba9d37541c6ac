//! The commands that send the data of one edge, and report their end.

use super::program::CommandTemplate;
use crate::layout::Piece;
use rdma_fabric::control_queue::{Blocks, Command, Inline, Posting, QueueId, Stadd};

/// The effect of data where they arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnArrival {
    /// Whether a notice is left.
    pub(crate) notice: bool,
    /// The number of slots of the receiver's queue that they release, and with them the commands
    /// that forward the data.
    pub(crate) credit: u8,
    /// The receiver's word for a separate END, on its queue.
    pub(crate) end: Option<Stadd>,
}

/// The data of one edge.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    /// The receiver's queue.
    pub(crate) to: QueueId,
    /// Start of the memory from which the data are sent, on this member's queue.
    pub(crate) from: Stadd,
    /// Start of the memory into which they are received, on the receiver's queue.
    pub(crate) at: Stadd,
    /// The pieces; at least one.
    pub(crate) pieces: Vec<Piece>,
    /// The effect of the last piece on arrival.
    pub(crate) on_arrival: OnArrival,
}

impl Data {
    /// Returns the number of slots of the pieces.
    pub(crate) fn slots(pieces: &[Piece]) -> u64 {
        pieces.iter().map(|piece| u64::from(piece.count)).sum()
    }

    /// Returns the number of slots of the pieces and of END.
    pub(super) fn all_slots(&self) -> u64 {
        Data::slots(&self.pieces) + u64::from(self.on_arrival.end.is_some())
    }

    /// Returns the commands: the pieces, then END if it is separate.
    pub(super) fn commands(&self) -> Vec<CommandTemplate> {
        let OnArrival { notice, credit, end } = self.on_arrival;
        let (mut commands, last) = self.moves();
        let last = last.sps(credit);
        commands.push(CommandTemplate::Fixed(if notice { last.remote(0) } else { last }));
        commands.extend(end.map(|word| CommandTemplate::End(self.end(word))));
        commands
    }

    /// Returns the commands of a partition, which take one slot more than the pieces: the pieces, then
    /// END in the receiver's word `end`, with a notice and a completion.
    pub(super) fn partition(&self, end: Stadd) -> Vec<CommandTemplate> {
        let (mut commands, last) = self.moves();
        commands.push(CommandTemplate::Fixed(last));
        commands.push(CommandTemplate::End(self.end(end).remote(0).tcq(0)));
        commands
    }

    fn end(&self, word: Stadd) -> Posting {
        let command = Command::PutInline { to: self.to, bytes: Inline::word(0), at: word };
        Posting::new(command).strong_order()
    }

    /// Returns the commands of the pieces, the last put separately.
    fn moves(&self) -> (Vec<CommandTemplate>, Posting) {
        let (last, before) = self.pieces.split_last().expect("a transfer has a piece");
        let mut commands: Vec<CommandTemplate> =
            before.iter().map(|piece| CommandTemplate::Fixed(self.put(piece, piece.count, 0))).collect();
        if last.count > 1 {
            commands.push(CommandTemplate::Fixed(self.put(last, last.count - 1, 0)));
        }
        (commands, self.put(last, 1, u64::from(last.count) - 1))
    }

    /// Returns the put of `count` blocks of `piece`, starting at its block `first`.
    fn put(&self, piece: &Piece, count: u32, first: u64) -> Posting {
        let skip = first * piece.stride;
        let command = Command::Put {
            to: self.to,
            from: self.from + (piece.from + skip),
            at: self.at + (piece.at + skip),
            len: piece.len,
            blocks: Blocks { count, stride: if count > 1 { piece.stride } else { 0 } },
        };
        Posting::new(command).strong_order()
    }
}
