//! Programs of a session queue: commands whose descriptors are encoded once.

use super::Poster;
use crate::queues::{
    format::{
        descriptor::{self, SLOT},
        ring,
    },
    view::View,
};
use rdma_fabric::control_queue::{Command, ProgramCommand};

/// A slot of a program.
#[derive(Clone, Copy, Debug)]
struct PreparedSlot {
    words: [u64; SLOT],
    /// Whether its edata, and the word that it carries, are the number of the repetition.
    edata: bool,
    word: bool,
    /// The tag of the completion that its command requests.
    tag: Option<u64>,
}

/// The commands of a program, encoded.
#[derive(Debug)]
pub(super) struct PreparedProgram(Box<[PreparedSlot]>);

impl PreparedProgram {
    /// Encodes commands whose numbers have been checked; `None` if they need more than the encoding.
    fn new(commands: &[ProgramCommand]) -> Option<Self> {
        let mut slots = Vec::with_capacity(commands.len());
        for ProgramCommand { posting, number } in commands {
            let is_word = matches!(posting.command, Command::PutInline { bytes, .. } if bytes.as_bytes().len() == 8 && !bytes.is_long());
            if posting.delay_start || posting.command.commands() != 1 || number.word() && !is_word {
                return None;
            }
            let encoded = descriptor::encode(posting);
            let tag = posting.tcq_notice.then_some(posting.tag);
            slots.push(PreparedSlot { words: encoded.first, edata: number.edata(), word: number.word(), tag });
            let second = encoded.second.map(|words| PreparedSlot { words, edata: false, word: false, tag: None });
            slots.extend(second);
        }
        (!slots.is_empty()).then_some(PreparedProgram(slots.into()))
    }
}

impl Poster {
    /// Prepares commands whose numbers have been checked; returns the program's number.
    pub(crate) fn prepare(&mut self, queue: &View<'_>, commands: &[ProgramCommand]) -> Option<usize> {
        let program = PreparedProgram::new(commands)?;
        if program.0.len() as u64 > ring::usable(queue.geometry.depth) {
            return None;
        }
        self.programs.push(program);
        self.programs.len().checked_sub(1)
    }

    /// Posts repetition `number` of a program if there is room for all of it and no other post waits for
    /// room. Returns whether the poster has to take a turn; `None` if it has posted nothing.
    #[inline]
    pub(crate) fn queue_up_program(&mut self, queue: &View<'_>, program: usize, number: u64) -> Option<bool> {
        let PreparedProgram(slots) = self.programs.get(program)?;
        let (depth, len) = (queue.geometry.depth, slots.len() as u64);
        if !self.line.is_empty() || !queue.is_going() {
            return None;
        }
        if ring::has_room(self.read, self.write, len, depth) != Some(true) {
            self.read = queue.turns().read();
            if ring::has_room(self.read, self.write, len, depth) != Some(true) {
                return None;
            }
        }
        // As for single commands, all entries that have not been fetched must fit.
        if self.write + len - self.fetched_at > u64::from(depth) {
            return None;
        }
        for slot in slots {
            let (edata, word) = (slot.edata.then_some(number as u8), slot.word.then_some(number));
            queue.write_slot(self.write, descriptor::renewed(slot.words, edata, word));
            if let Some(tag) = slot.tag {
                self.tags.push_back((self.write, tag));
            }
            self.write += 1;
        }
        self.startable = self.write;
        Some(self.must_turn(queue))
    }
}
