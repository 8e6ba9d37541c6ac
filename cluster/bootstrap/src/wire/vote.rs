//! The vote of a rank that has lost its coordinator, sent to a standby.

use super::{Down, Reader, Writer};

/// A rank's knowledge of its job when it has lost the coordinator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) rank: u32,
    /// The ranks that have ended, as far as it knows, including itself: left (`None`), or lost for
    /// a reason.
    pub(crate) ended: Vec<(u32, Option<String>)>,
    /// The last epoch that it resumed; 0 if none.
    pub(crate) epoch: u64,
    /// The message that resumed that epoch, without its length field.
    pub(crate) resume: Vec<u8>,
    /// Later epochs whose drain it has received, with the ranks lost in them. The coordinator that
    /// began such an epoch may have completed it.
    pub(crate) pending: Vec<(u64, Vec<u32>)>,
    /// Ranks whose processes have certainly ended.
    pub(crate) dead: Vec<u32>,
    /// The number of the exchange that it joins next, or waits for.
    pub(crate) round: u64,
}

/// The maximum number of an epoch or exchange: the next one can be computed.
const LAST: u64 = u64::MAX >> 1;

impl Vote {
    /// Returns whether a rank of a job of `ranks` ranks may send this.
    pub(crate) fn fits(&self, ranks: usize) -> bool {
        let is_rank = |rank: &u32| (*rank as usize) < ranks;
        let resumed = match (self.epoch, Down::read(&self.resume)) {
            (0, None) => self.resume.is_empty(),
            (epoch, Some(down @ Down::Resume { epoch: of, .. })) => epoch == of && down.fits(ranks),
            _ => false,
        };
        let numbers = self.pending.iter().map(|(epoch, _)| *epoch).chain([self.epoch, self.round]);
        is_rank(&self.rank)
            && resumed
            && numbers.fold(0, u64::max) <= LAST
            && self.ended.iter().map(|(rank, _)| rank).chain(&self.dead).all(is_rank)
            && self.pending.iter().flat_map(|(_, lost)| lost).all(is_rank)
    }
}

pub(super) fn write(to: Writer, vote: &Vote) -> Writer {
    to.u32(vote.rank)
        .many(&vote.ended, |to, (rank, lost)| to.u32(*rank).maybe(lost.as_deref(), Writer::text))
        .u64(vote.epoch)
        .bytes(&vote.resume)
        .many(&vote.pending, |to, (epoch, lost)| to.u64(*epoch).many(lost, |to, rank| to.u32(*rank)))
        .many(&vote.dead, |to, rank| to.u32(*rank))
        .u64(vote.round)
}

pub(super) fn read(from: &mut Reader<'_>) -> Option<Vote> {
    Some(Vote {
        rank: from.u32()?,
        ended: from.many(|from| Some((from.u32()?, from.maybe(Reader::text)?)))?,
        epoch: from.u64()?,
        resume: from.bytes()?,
        pending: from.many(|from| Some((from.u64()?, from.many(Reader::u32)?)))?,
        dead: from.many(Reader::u32)?,
        round: from.u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Up;

    #[test]
    fn a_vote_comes_back() {
        let vote = Vote {
            rank: 3,
            ended: vec![(1, None), (2, Some("killed".into()))],
            epoch: 4,
            resume: vec![9, 1],
            pending: vec![(5, vec![0]), (6, vec![0, 4])],
            dead: vec![7],
            round: 8,
        };
        let frame = Up::Vote(vote.clone()).frame();
        assert_eq!(Up::read(&frame[4..]), Some(Up::Vote(vote)));
        assert_eq!(Up::read(&frame[4..frame.len() - 1]), None);
    }
}
