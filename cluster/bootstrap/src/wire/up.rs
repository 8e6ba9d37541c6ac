//! Messages of a session to the coordinator.

use super::{Frame, Reader, Vote, Writer, bytes, vote};
use crate::Hello;
use std::{net::SocketAddr, time::Duration};

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Up {
    /// The session's identity, and the address at which it would listen as a standby.
    Hello(Hello, Option<SocketAddr>),
    Beat,
    Item {
        round: u64,
        within: Duration,
        bytes: Vec<u8>,
    },
    Drained {
        epoch: u64,
    },
    Reopened {
        epoch: u64,
        contact: Vec<u8>,
    },
    Left,
    Lost {
        text: String,
    },
    Abort {
        code: i32,
        text: String,
    },
    /// The rank waits for other ranks, with this stamp; or, with `None`, it no longer waits.
    Waits {
        stamp: Option<u64>,
    },
    /// The rank's current stamp.
    Still {
        wave: u64,
        stamp: Option<u64>,
    },
    /// The rank has lost its coordinator and votes for this standby.
    Vote(Vote),
    /// The rank receives nothing from its coordinator, or has given up waiting for this standby,
    /// and changes to another one.
    Deserts,
}

impl Up {
    pub(crate) fn frame(&self) -> Frame {
        match self {
            Self::Hello(hello, standby) => Writer::new(1)
                .u32(hello.rank)
                .size(hello.ranks)
                .text(&hello.build)
                .text(&hello.provider)
                .text(&hello.host)
                .text(&hello.node)
                .maybe(*standby, bytes::write_address),
            Self::Beat => Writer::new(2),
            Self::Item { round, within, bytes } => Writer::new(3).u64(*round).duration(*within).bytes(bytes),
            Self::Drained { epoch } => Writer::new(4).u64(*epoch),
            Self::Reopened { epoch, contact } => Writer::new(5).u64(*epoch).bytes(contact),
            Self::Left => Writer::new(6),
            Self::Lost { text } => Writer::new(7).text(text),
            Self::Abort { code, text } => Writer::new(8).u32(code.cast_unsigned()).text(text),
            Self::Waits { stamp } => Writer::new(9).maybe(*stamp, Writer::u64),
            Self::Still { wave, stamp } => Writer::new(10).u64(*wave).maybe(*stamp, Writer::u64),
            Self::Vote(vote) => vote::write(Writer::new(11), vote),
            Self::Deserts => Writer::new(12),
        }
        .frame()
    }

    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (kind, fields) = message.split_first()?;
        let mut from = Reader::new(fields);
        let up = match kind {
            1 => {
                let hello = Hello {
                    rank: from.u32()?,
                    ranks: from.size()?,
                    build: from.text()?,
                    provider: from.text()?,
                    host: from.text()?,
                    node: from.text()?,
                };
                Self::Hello(hello, from.maybe(bytes::read_address)?)
            }
            2 => Self::Beat,
            3 => Self::Item { round: from.u64()?, within: from.duration()?, bytes: from.bytes()? },
            4 => Self::Drained { epoch: from.u64()? },
            5 => Self::Reopened { epoch: from.u64()?, contact: from.bytes()? },
            6 => Self::Left,
            7 => Self::Lost { text: from.text()? },
            8 => Self::Abort { code: from.u32()?.cast_signed(), text: from.text()? },
            9 => Self::Waits { stamp: from.maybe(Reader::u64)? },
            10 => Self::Still { wave: from.u64()?, stamp: from.maybe(Reader::u64)? },
            11 => Self::Vote(vote::read(&mut from)?),
            12 => Self::Deserts,
            _ => return None,
        };
        from.end(up)
    }
}
