//! What a program says to the coordinator.

use super::line::Line;
use crate::{
    Error,
    wire::{ITEM_LIMIT, Up},
};
use std::sync::Arc;

/// Speaks to the coordinator for a session: from within an event or from any thread. It holds
/// nothing open once its session is dropped.
#[derive(Debug, Clone)]
pub struct Speaker(Arc<Line>);

impl Speaker {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Self(line)
    }

    pub(super) fn line(&self) -> &Line {
        &self.0
    }

    /// Answers [`Event::Drain`](crate::Event::Drain): nothing of this process is under way any more.
    /// An answer to an earlier epoch is ignored.
    pub fn drained(&self, epoch: u64) -> Result<(), Error> {
        self.0.say(&Up::Drained { epoch })
    }

    /// Answers [`Event::Reopen`](crate::Event::Reopen), with what the others need to communicate
    /// with this process: `card`. An answer to an earlier epoch is ignored.
    pub fn reopened(&self, epoch: u64, card: Vec<u8>) -> Result<(), Error> {
        if card.len() > ITEM_LIMIT {
            return Err(Error::TooLarge { size: card.len(), limit: ITEM_LIMIT });
        }
        self.0.say(&Up::Reopened { epoch, card })
    }

    /// Leaves the job. The session goes on to hear events and owes answers, as long as others may
    /// communicate with this process: until all have ended, or it is dropped.
    pub fn left(&self) -> Result<(), Error> {
        self.0.say_end(&Up::Left)
    }

    /// Tells that this rank's program has failed, after everything of it has drained. It hears of the
    /// end of the job, but of no losses any more.
    pub fn lost(&self, text: &str) -> Result<(), Error> {
        self.0.say_end(&Up::Lost { text: text.into() })
    }

    /// Tells that this rank has waited for others for some time and has nothing under way, with a
    /// `stamp` that changes whenever it has gone on or anything has come to it; or, with none, that
    /// this is so no more. When all ranks that run have told so, they are asked again, and if no stamp
    /// has changed, they hear that they wait for each other ([`Event::Deadlock`](crate::Event)).
    pub fn waits(&self, stamp: Option<u64>) -> Result<(), Error> {
        self.0.say(&Up::Waits { stamp })
    }

    /// Answers [`Event::Confirm`](crate::Event::Confirm) with the stamp that this rank has now, if it
    /// waits for others and has nothing under way.
    pub fn still(&self, wave: u64, stamp: Option<u64>) -> Result<(), Error> {
        self.0.say(&Up::Still { wave, stamp })
    }

    /// Aborts the job. The first abort of a job counts and is told to everyone.
    pub fn abort(&self, code: i32, text: &str) -> Result<(), Error> {
        self.0.say_abort(code, text)
    }
}
