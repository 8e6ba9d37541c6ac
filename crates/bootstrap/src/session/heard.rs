//! What a session has heard and said, as far as calls wait for it or depend on it.

use super::memory::Memory;
use crate::wire::{Down, Up};
use std::time::Duration;

/// How an exchange ended.
type Gathered = Result<Vec<Vec<u8>>, (Vec<u32>, Vec<(u32, String)>)>;

/// What this rank has brought to an exchange that has not ended.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) within: Duration,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Heard {
    pub(super) memory: Memory,
    /// The latest exchange's end.
    pub(super) gathered: Option<(u64, Gathered)>,
    /// The number of the next exchange.
    pub(super) round: u64,
    pub(super) item: Option<Item>,
    pub(super) all_ended: bool,
    pub(super) aborted: Option<(Option<u32>, i32, String)>,
    /// This process wants the job to be aborted.
    pub(super) abort: Option<Up>,
    /// There is no coordinator any more.
    pub(super) gone: bool,
    /// Another coordinator is sought.
    pub(super) seeks: bool,
    /// This process has left or told that it is lost, by this.
    pub(super) said_end: Option<Up>,
    /// The session has been dropped.
    pub(super) closed: bool,
}

impl Heard {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            memory,
            gathered: None,
            round: 0,
            item: None,
            all_ended: false,
            aborted: None,
            abort: None,
            gone: false,
            seeks: false,
            said_end: None,
            closed: false,
        }
    }

    /// Notes that this rank has ended.
    pub(super) fn end(&mut self, up: Up) {
        let rank = self.memory.rank;
        self.memory.note_end(rank, if let Up::Lost { text } = &up { Some(text.clone()) } else { None });
        self.said_end = Some(up);
    }

    /// Returns what the next coordinator has to hear that this rank may have said to the last.
    pub(super) fn say_again(&self) -> Vec<Up> {
        let item = self.item.as_ref().map(|item| Up::Item {
            round: item.number,
            within: item.within,
            bytes: item.bytes.clone(),
        });
        item.into_iter().chain(self.said_end.clone()).chain(self.abort.clone()).collect()
    }

    /// Notes a message, given also as its bytes; tells whether it says anything new.
    pub(super) fn note(&mut self, down: &Down, message: &[u8]) -> bool {
        match down {
            Down::Gathered { round, items } => self.gathered = Some((*round, Ok(items.clone()))),
            Down::Incomplete { round, absent, ended } => {
                self.gathered = Some((*round, Err((absent.clone(), ended.clone()))));
            }
            Down::Aborted { rank, code, text } => self.aborted = Some((*rank, *code, text.clone())),
            Down::AllEnded => self.all_ended = true,
            _ => {}
        }
        self.memory.note(down, message)
    }
}
