//! Messages of the coordinator to a session.

use super::{Frame, Reader, Writer, bytes, refusal};
use crate::{Refusal, Succession};
use std::{net::SocketAddr, time::Duration};

/// A message of the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Down {
    /// The hello has been received; the session has to wait.
    Noted {
        ranks: usize,
        segment: usize,
    },
    Refused(Refusal),
    Welcome {
        nodes: Vec<u32>,
        hosts: Vec<String>,
        age: Duration,
        job: u64,
        lease: Duration,
        segment: Vec<u8>,
        succession: Succession,
        /// The address at which each rank would listen as a standby.
        standbys: Vec<Option<SocketAddr>>,
    },
    Beat,
    Gathered {
        round: u64,
        items: Vec<Vec<u8>>,
    },
    Incomplete {
        round: u64,
        absent: Vec<u32>,
        ended: Vec<(u32, String)>,
    },
    Drain {
        epoch: u64,
        lost: Vec<u32>,
    },
    Reopen {
        epoch: u64,
    },
    Resume {
        epoch: u64,
        contacts: Vec<Option<Vec<u8>>>,
        lost: Vec<(u32, String)>,
    },
    Left {
        rank: u32,
    },
    Lost {
        rank: u32,
        text: String,
    },
    Aborted {
        rank: Option<u32>,
        code: i32,
        text: String,
    },
    AllEnded,
    /// Requests the current stamp, if the rank still waits.
    Confirm {
        wave: u64,
    },
    Deadlock {
        waiting: usize,
    },
    /// The rank is considered lost.
    Dismissed {
        text: String,
    },
    /// This standby is the rank's coordinator now.
    Elected,
    /// This standby was not elected.
    NotElected {
        text: String,
    },
}

impl Down {
    pub(crate) fn frame(&self) -> Frame {
        match self {
            Self::Noted { ranks, segment } => Writer::new(1).size(*ranks).size(*segment),
            Self::Refused(why) => refusal::write(Writer::new(2), why),
            Self::Welcome { nodes, hosts, age, job, lease, segment, succession, standbys } => Writer::new(3)
                .many(nodes, |to, node| to.u32(*node))
                .many(hosts, |to, host| to.text(host))
                .duration(*age)
                .u64(*job)
                .duration(*lease)
                .bytes(segment)
                .u32(*succession as u32)
                .many(standbys, |to, standby| to.maybe(*standby, bytes::write_address)),
            Self::Beat => Writer::new(4),
            Self::Gathered { round, items } => Writer::new(5).u64(*round).many(items, |to, item| to.bytes(item)),
            Self::Incomplete { round, absent, ended } => {
                write_ends(Writer::new(6).u64(*round).many(absent, |to, rank| to.u32(*rank)), ended)
            }
            Self::Drain { epoch, lost } => Writer::new(7).u64(*epoch).many(lost, |to, rank| to.u32(*rank)),
            Self::Reopen { epoch } => Writer::new(8).u64(*epoch),
            Self::Resume { epoch, contacts, lost } => {
                let contact = |to: Writer, contact: &Option<Vec<u8>>| to.maybe(contact.as_deref(), Writer::bytes);
                write_ends(Writer::new(9).u64(*epoch).many(contacts, contact), lost)
            }
            Self::Left { rank } => Writer::new(10).u32(*rank),
            Self::Lost { rank, text } => Writer::new(11).u32(*rank).text(text),
            Self::Aborted { rank, code, text } => {
                Writer::new(12).maybe(*rank, Writer::u32).u32(code.cast_unsigned()).text(text)
            }
            Self::AllEnded => Writer::new(13),
            Self::Confirm { wave } => Writer::new(14).u64(*wave),
            Self::Deadlock { waiting } => Writer::new(15).size(*waiting),
            Self::Dismissed { text } => Writer::new(16).text(text),
            Self::Elected => Writer::new(17),
            Self::NotElected { text } => Writer::new(18).text(text),
        }
        .frame()
    }

    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (kind, fields) = message.split_first()?;
        let mut from = Reader::new(fields);
        let down = match kind {
            1 => Self::Noted { ranks: from.size()?, segment: from.size()? },
            2 => Self::Refused(refusal::read(&mut from)?),
            3 => Self::Welcome {
                nodes: from.many(Reader::u32)?,
                hosts: from.many(Reader::text)?,
                age: from.duration()?,
                job: from.u64()?,
                lease: from.duration()?,
                segment: from.bytes()?,
                succession: read_succession(&mut from)?,
                standbys: from.many(|from| from.maybe(bytes::read_address))?,
            },
            4 => Self::Beat,
            5 => Self::Gathered { round: from.u64()?, items: from.many(Reader::bytes)? },
            6 => Self::Incomplete { round: from.u64()?, absent: from.many(Reader::u32)?, ended: read_ends(&mut from)? },
            7 => Self::Drain { epoch: from.u64()?, lost: from.many(Reader::u32)? },
            8 => Self::Reopen { epoch: from.u64()? },
            9 => Self::Resume {
                epoch: from.u64()?,
                contacts: from.many(|from| from.maybe(Reader::bytes))?,
                lost: read_ends(&mut from)?,
            },
            10 => Self::Left { rank: from.u32()? },
            11 => Self::Lost { rank: from.u32()?, text: from.text()? },
            12 => Self::Aborted { rank: from.maybe(Reader::u32)?, code: from.u32()?.cast_signed(), text: from.text()? },
            13 => Self::AllEnded,
            14 => Self::Confirm { wave: from.u64()? },
            15 => Self::Deadlock { waiting: from.size()? },
            16 => Self::Dismissed { text: from.text()? },
            17 => Self::Elected,
            18 => Self::NotElected { text: from.text()? },
            _ => return None,
        };
        from.end(down)
    }
}

impl Down {
    /// Returns whether the coordinator of a job of `ranks` ranks may send this.
    pub(crate) fn fits(&self, ranks: usize) -> bool {
        let is_rank = |rank: &u32| (*rank as usize) < ranks;
        let are_ranks = |ends: &[(u32, String)]| ends.iter().all(|(rank, _)| is_rank(rank));
        match self {
            Self::Welcome { nodes, hosts, standbys, .. } => {
                let nodes_fit = nodes.iter().all(|node| (*node as usize) < hosts.len());
                nodes.len() == ranks && standbys.len() == ranks && nodes_fit
            }
            Self::Gathered { items, .. } => items.len() == ranks,
            Self::Incomplete { absent, ended, .. } => absent.iter().all(is_rank) && are_ranks(ended),
            Self::Drain { lost, .. } => lost.iter().all(is_rank),
            Self::Resume { contacts, lost, .. } => contacts.len() == ranks && are_ranks(lost),
            Self::Left { rank } | Self::Lost { rank, .. } => is_rank(rank),
            Self::Aborted { rank, .. } => rank.as_ref().is_none_or(is_rank),
            Self::Noted { .. } | Self::Refused(_) | Self::Beat | Self::Reopen { .. } | Self::AllEnded => true,
            Self::Confirm { .. } | Self::Deadlock { .. } | Self::Dismissed { .. } => true,
            Self::Elected | Self::NotElected { .. } => true,
        }
    }
}

fn write_ends(to: Writer, ends: &[(u32, String)]) -> Writer {
    to.many(ends, |to, (rank, text)| to.u32(*rank).text(text))
}

fn read_ends(from: &mut Reader<'_>) -> Option<Vec<(u32, String)>> {
    from.many(|from| Some((from.u32()?, from.text()?)))
}

fn read_succession(from: &mut Reader<'_>) -> Option<Succession> {
    let all = [Succession::Never, Succession::AfterSilence, Succession::AfterAnyEnd];
    let number = from.u32()?;
    all.into_iter().find(|succession| *succession as u32 == number)
}
