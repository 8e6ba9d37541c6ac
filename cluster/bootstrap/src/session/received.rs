//! The state of a session, derived from the messages received and sent, that calls wait for or
//! depend on.

use super::memory::Memory;
use crate::wire::{Down, Up};
use std::time::Duration;

/// How an exchange ended.
type Gathered = Result<Vec<Vec<u8>>, (Vec<u32>, Vec<(u32, String)>)>;

/// This rank's contribution to an exchange that has not ended.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) within: Duration,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Received {
    pub(super) memory: Memory,
    /// The end of the latest exchange.
    pub(super) gathered: Option<(u64, Gathered)>,
    /// The number of the next exchange.
    pub(super) round: u64,
    pub(super) item: Option<Item>,
    pub(super) all_ended: bool,
    pub(super) aborted: Option<(Option<u32>, i32, String)>,
    /// The abort of the job that this process has requested.
    pub(super) abort: Option<Up>,
    /// There is no longer a coordinator.
    pub(super) gone: bool,
    /// Another coordinator is sought.
    pub(super) seeks: bool,
    /// The message by which this process has left or reported that it is lost.
    pub(super) said_end: Option<Up>,
    /// The session has been dropped.
    pub(super) closed: bool,
}

impl Received {
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

    /// Records that this rank has ended.
    pub(super) fn end(&mut self, up: Up) {
        let rank = self.memory.rank;
        self.memory.note_end(rank, if let Up::Lost { text } = &up { Some(text.clone()) } else { None });
        self.said_end = Some(up);
    }

    /// Returns the messages that the next coordinator has to receive even if this rank has already
    /// sent them to the previous one.
    pub(super) fn unsent(&self) -> Vec<Up> {
        let item = self.item.as_ref().map(|item| Up::Item {
            round: item.number,
            within: item.within,
            bytes: item.bytes.clone(),
        });
        item.into_iter().chain(self.said_end.clone()).chain(self.abort.clone()).collect()
    }

    /// Records a message, given also as its bytes; returns whether it contains anything new.
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
