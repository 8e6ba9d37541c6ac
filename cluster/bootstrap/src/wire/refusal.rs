//! Refusals as bytes.

use super::{Reader, Writer};
use crate::Refusal;

/// Appends `why` to a message.
pub(super) fn write(to: Writer, why: &Refusal) -> Writer {
    match why {
        Refusal::RankOutOfRange { rank, host, ranks } => to.u32(1).u32(*rank).text(host).size(*ranks),
        Refusal::RankTaken { rank, first, second } => to.u32(2).u32(*rank).text(first).text(second),
        Refusal::OtherRanks { rank, host, theirs, ours } => to.u32(3).u32(*rank).text(host).size(*theirs).size(*ours),
        Refusal::OtherBuild { rank, host, build, other, other_host, other_build } => {
            to.u32(4).u32(*rank).text(host).text(build).u32(*other).text(other_host).text(other_build)
        }
        Refusal::OtherProvider { rank, host, provider, other, other_host, other_provider } => {
            to.u32(5).u32(*rank).text(host).text(provider).u32(*other).text(other_host).text(other_provider)
        }
        Refusal::Missing { first, count, ranks, within } => {
            to.u32(6).many(first, |to, rank| to.u32(*rank)).size(*count).size(*ranks).duration(*within)
        }
        Refusal::Died { rank, host, text } => to.u32(7).u32(*rank).text(host).text(text),
        Refusal::Aborted { text } => to.u32(8).text(text),
    }
}

/// Takes a refusal from a message.
pub(super) fn read(from: &mut Reader<'_>) -> Option<Refusal> {
    Some(match from.u32()? {
        1 => Refusal::RankOutOfRange { rank: from.u32()?, host: from.text()?, ranks: from.size()? },
        2 => Refusal::RankTaken { rank: from.u32()?, first: from.text()?, second: from.text()? },
        3 => Refusal::OtherRanks { rank: from.u32()?, host: from.text()?, theirs: from.size()?, ours: from.size()? },
        4 => Refusal::OtherBuild {
            rank: from.u32()?,
            host: from.text()?,
            build: from.text()?,
            other: from.u32()?,
            other_host: from.text()?,
            other_build: from.text()?,
        },
        5 => Refusal::OtherProvider {
            rank: from.u32()?,
            host: from.text()?,
            provider: from.text()?,
            other: from.u32()?,
            other_host: from.text()?,
            other_provider: from.text()?,
        },
        6 => Refusal::Missing {
            first: from.many(Reader::u32)?,
            count: from.size()?,
            ranks: from.size()?,
            within: from.duration()?,
        },
        7 => Refusal::Died { rank: from.u32()?, host: from.text()?, text: from.text()? },
        8 => Refusal::Aborted { text: from.text()? },
        _ => return None,
    })
}
