//! Meeting all members of a window: a dissemination barrier of one word per round, which can be dropped and gone on with.

use super::{
    locked,
    words::{Word, Words, rounds},
};
use rdma_fabric::{Fabric, Result, op::Put};
use std::sync::Mutex;

/// How far this rank has come.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Meetings begun.
    number: u64,
    /// Of the last one, if that is not over.
    round: Option<u32>,
    /// Whether the partner of this round was told.
    told: bool,
}

#[derive(Debug, Default)]
pub(super) struct Meeting(Mutex<Place>);

impl Meeting {
    /// Wait until every member has come. If the future is dropped, the next call goes on with it: it is the same meeting.
    pub(super) async fn meet(&self, fabric: &Fabric, words: &Words) -> Result<()> {
        let members = words.memory().members();
        let me = words.memory().number(fabric.rank()).unwrap_or(0);
        let mut at = {
            let mut place = locked(&self.0);
            if place.round.is_none() {
                *place = Place { number: place.number + 1, round: Some(0), told: false };
            }
            *place
        };
        for round in at.round.unwrap_or(0)..rounds(members) {
            if !at.told {
                let next = words.memory().member((me + (1 << round)) % members)?;
                let word = words.theirs(fabric, next, Word::Reached(round))?.as_span();
                // Puts are not ordered among themselves: that of the meeting before must not land on top of this one.
                fabric.flush(next).await?;
                drop(fabric.post(Put { to: &word, from: [at.number], notice: None }).await?);
                locked(&self.0).told = true;
            }
            let mine = words.own(fabric, Word::Reached(round))?;
            fabric.wait_until(&mine, words.memory().deps(), |reached| reached >= at.number).await?;
            at.told = false;
            *locked(&self.0) = Place { round: Some(round + 1), ..at };
        }
        locked(&self.0).round = None;
        Ok(())
    }
}
