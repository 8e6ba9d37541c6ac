//! The messages between a launcher and the agent of a host, over ssh: frames of a byte for the
//! kind, the length as 4 bytes, little-endian, and that number of bytes.
//!
//! The agent's first frame follows the line [`BEGIN`]; a shell may have written other lines before
//! it.

use super::end::RankEnd;
use std::io::{self, Read, Write};

/// The line before an agent's first frame.
pub(super) const BEGIN: &str = "onesided agent v1";

/// The longest frame in bytes: a rank's trace.
const LIMIT: u32 = 1 << 30;

/// A request of a launcher to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The job's secret: starts the ranks.
    Secret(String),
    /// Standard input for rank 0. The next piece is sent after [`Report::InputTaken`].
    Input(Vec<u8>),
    /// The standard input has ended.
    InputEnd,
    /// Ends the ranks by SIGTERM.
    Terminate,
    /// Ends the ranks by SIGKILL.
    Kill,
    /// A heartbeat of the launcher.
    Beat,
}

/// A report of an agent to its launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// Standard output of ranks.
    Out(Vec<u8>),
    /// Standard error of ranks: whole lines, prefixed with the rank.
    Err(Vec<u8>),
    /// A rank's process has ended.
    Ended(u32, RankEnd),
    /// Rank 0 has taken the last piece of input.
    InputTaken,
    /// The record of a rank.
    Record(u32, Vec<u8>),
    /// The ranks could not be started.
    Failed(String),
    /// All reports have been sent.
    Done,
}

impl Order {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Order::Secret(text) => write_frame(to, b'S', &[text.as_bytes()]),
            Order::Input(bytes) => write_frame(to, b'I', &[bytes]),
            Order::InputEnd => write_frame(to, b'E', &[]),
            Order::Terminate => write_frame(to, b'T', &[]),
            Order::Kill => write_frame(to, b'K', &[]),
            Order::Beat => write_frame(to, b'B', &[]),
        }
    }

    /// Reads the next order; `None` at the end.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some((kind, bytes)) = read_frame(from)? else { return Ok(None) };
        Ok(Some(match kind {
            b'S' => Order::Secret(text(bytes)?),
            b'I' => Order::Input(bytes),
            b'E' if bytes.is_empty() => Order::InputEnd,
            b'T' if bytes.is_empty() => Order::Terminate,
            b'K' if bytes.is_empty() => Order::Kill,
            b'B' if bytes.is_empty() => Order::Beat,
            _ => return Err(malformed()),
        }))
    }
}

impl Report {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Report::Out(bytes) => write_frame(to, b'o', &[bytes]),
            Report::Err(bytes) => write_frame(to, b'e', &[bytes]),
            Report::Ended(rank, end) => {
                let (kind, code, why) = match end {
                    RankEnd::Exited(code) => (0, *code, ""),
                    RankEnd::Killed(signal) => (1, *signal, ""),
                    RankEnd::Unheard(why) => (2, 0, &**why),
                };
                write_frame(to, b'x', &[&rank.to_le_bytes(), &[kind], &code.to_le_bytes(), why.as_bytes()])
            }
            Report::InputTaken => write_frame(to, b'i', &[]),
            Report::Record(rank, bytes) => write_frame(to, b'r', &[&rank.to_le_bytes(), bytes]),
            Report::Failed(text) => write_frame(to, b'f', &[text.as_bytes()]),
            Report::Done => write_frame(to, b'd', &[]),
        }
    }

    /// Reads the next report; `None` at the end.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some((kind, mut bytes)) = read_frame(from)? else { return Ok(None) };
        Ok(Some(match kind {
            b'o' => Report::Out(bytes),
            b'e' => Report::Err(bytes),
            b'x' => {
                let (rank, rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
                let ([kind], rest) = rest.split_first_chunk().ok_or_else(malformed)?;
                let (code, why) = rest.split_first_chunk().ok_or_else(malformed)?;
                let code = i32::from_le_bytes(*code);
                let end = match kind {
                    0 => RankEnd::Exited(code),
                    1 => RankEnd::Killed(code),
                    2 => RankEnd::Unheard(text(why.to_vec())?),
                    _ => return Err(malformed()),
                };
                Report::Ended(u32::from_le_bytes(*rank), end)
            }
            b'i' if bytes.is_empty() => Report::InputTaken,
            b'r' => {
                let rank = u32::from_le_bytes(*bytes.first_chunk().ok_or_else(malformed)?);
                bytes.drain(..4);
                Report::Record(rank, bytes)
            }
            b'f' => Report::Failed(text(bytes)?),
            b'd' if bytes.is_empty() => Report::Done,
            _ => return Err(malformed()),
        }))
    }
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| malformed())
}

fn write_frame(to: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).ok().filter(|length| *length <= LIMIT).ok_or_else(malformed)?;
    let mut frame = Vec::with_capacity(5 + length as usize);
    frame.push(kind);
    frame.extend_from_slice(&length.to_le_bytes());
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    to.write_all(&frame)?;
    to.flush()
}

fn read_frame(from: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut kind = Vec::new();
    from.by_ref().take(1).read_to_end(&mut kind)?;
    let Some(&kind) = kind.first() else { return Ok(None) };
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LIMIT {
        return Err(malformed());
    }
    // The buffer grows as bytes arrive, so a wrong length takes no memory.
    let mut bytes = Vec::new();
    from.by_ref().take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((kind, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reports() -> impl Strategy<Value = Report> {
        let bytes = prop::collection::vec(any::<u8>(), 0..40);
        let end = prop_oneof![
            any::<i32>().prop_map(RankEnd::Exited),
            any::<i32>().prop_map(RankEnd::Killed),
            ".{0,9}".prop_map(RankEnd::Unheard),
        ];
        prop_oneof![
            bytes.clone().prop_map(Report::Out),
            bytes.clone().prop_map(Report::Err),
            (any::<u32>(), end).prop_map(|(rank, end)| Report::Ended(rank, end)),
            Just(Report::InputTaken),
            (any::<u32>(), bytes).prop_map(|(rank, bytes)| Report::Record(rank, bytes)),
            ".{0,9}".prop_map(Report::Failed),
            Just(Report::Done),
        ]
    }

    proptest! {
        #[test]
        fn reports_come_back(reports in prop::collection::vec(reports(), 0..8), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            reports.iter().for_each(|report| report.write(&mut bytes).unwrap());
            let mut rest = &bytes[..];
            for report in &reports {
                let read = Report::read(&mut rest).unwrap();
                prop_assert_eq!(read.as_ref(), Some(report));
            }
            prop_assert!(Report::read(&mut rest).unwrap().is_none());
            // A frame that is cut off is an error, not an end.
            let mut part = &bytes[..cut.index(bytes.len() + 1)];
            while let Ok(Some(_)) = Report::read(&mut part) {}
        }

        #[test]
        fn any_bytes_are_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let (mut one, mut other) = (&bytes[..], &bytes[..]);
            while let Ok(Some(_)) = Report::read(&mut one) {}
            while let Ok(Some(_)) = Order::read(&mut other) {}
        }
    }

    #[test]
    fn orders_come_back_and_a_cut_is_an_error() {
        let all = [
            Order::Secret("00ff".into()),
            Order::Input(vec![1, 2, 3]),
            Order::InputEnd,
            Order::Terminate,
            Order::Kill,
            Order::Beat,
        ];
        let mut bytes = Vec::new();
        all.iter().for_each(|order| order.write(&mut bytes).unwrap());
        let mut rest = &bytes[..];
        for order in all {
            assert_eq!(Order::read(&mut rest).unwrap(), Some(order));
        }
        assert!(Order::read(&mut rest).unwrap().is_none());
        assert!(Order::read(&mut &bytes[..7]).is_err());
    }
}
