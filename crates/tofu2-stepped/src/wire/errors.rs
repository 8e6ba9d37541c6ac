//! Errors.

use super::{Reader, Wire, wire_enum};
use rdma_fabric::{
    FabricError, Rank, RegionKey,
    barrier::GateError,
    control_queue::QueueError,
    error::{Mismatch, NoAtomicsCause, OutOfMemory},
};
use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

wire_enum!(QueueError {
    0 = NotOpen { 0: queue },
    1 = InUse { 0: queue },
    2 = NoneFree { 0: number },
    3 = Limit { queue: queue, what: what, value: value, limit: limit },
    4 = NoSuchTag { queue: queue, stadd: stadd },
    5 = TagInUse { queue: queue, tag: tag },
    6 = TooManyTags { queue: queue, limit: limit },
    7 = OutOfBounds { queue: queue, stadd: stadd, len: len, registered: registered },
    8 = Stale { queue: queue, stadd: stadd },
    9 = Misaligned { queue: queue, stadd: stadd, width: width },
    10 = ReadOnly { queue: queue, stadd: stadd },
    11 = CreditOverrun { queue: queue, read: read, scheduled: scheduled, depth: depth },
    12 = CreditIgnored { queue: queue, sps: sps },
    13 = MrqOverflow { queue: queue, depth: depth },
    14 = Interrupted { queue: queue, slot: slot },
    15 = PeerLost { 0: queue },
    16 = Corrupt { queue: queue, what: what },
    17 = Stopped { 0: queue },
} else |_: &QueueError, words: &mut Vec<u64>| words.push(u64::MAX));

wire_enum!(GateError {
    0 = NoGates { rank: rank, wanted: wanted, starts: starts, relays: relays },
    1 = NotOwn { gate: gate, rank: rank },
    2 = NoSuchGate { 0: gate },
    3 = Freed { 0: gate },
    4 = NotStart { 0: gate },
    5 = Outstanding { 0: gate },
    6 = Idle { 0: gate },
    7 = NotSet { 0: gate },
    8 = Dangling { 0: gate },
    9 = NotLocal { gate: gate, other: other },
    10 = PointsElsewhere { gate: gate, by: by },
    11 = Mismatch { 0: gate },
} else |_: &GateError, words: &mut Vec<u64>| words.push(u64::MAX));

/// Errors that libraries distinguish keep their parts, all others their text.
impl Wire for FabricError {
    fn put(&self, words: &mut Vec<u64>) {
        match self {
            FabricError::Queue(error) => (0u64, **error).put(words),
            FabricError::Gate(error) => (1u64, (**error).clone()).put(words),
            FabricError::PeerLost { rank } => (2u64, *rank).put(words),
            FabricError::PeersLeft => 3u64.put(words),
            FabricError::NoSuchRank { rank, ranks } => (4u64, (*rank, *ranks)).put(words),
            FabricError::TooManyRegions { rank, limit } => (5u64, (*rank, *limit)).put(words),
            FabricError::OutOfMemory(error) => {
                (6u64, ((error.rank, error.requested), (error.available, error.segment))).put(words);
            }
            FabricError::StaleRegion { rank, region } => (8u64, (*rank, *region)).put(words),
            FabricError::NoSuchRegion { rank, region } => (9u64, (*rank, *region)).put(words),
            FabricError::Aborted { rank, code } => (10u64, (*rank, *code as u32)).put(words),
            FabricError::Unsupported { feature } => (11u64, **feature).put(words),
            FabricError::NoticeTooWide { data, bits } => (12u64, (*data, *bits)).put(words),
            FabricError::Mismatch(error) => {
                let Mismatch { collective, rank, argument, other, other_argument } = **error;
                (13u64, (collective, ((rank, argument), (other, other_argument)))).put(words);
            }
            FabricError::NoAtomics(error) if error.because == NoAtomicsCause::Network => {
                (14u64, error.addr).put(words);
            }
            other => (7u64, other.to_string()).put(words),
        }
    }

    fn take(words: &mut Reader<'_>) -> Option<Self> {
        type Pair<T> = (T, usize);
        Some(match words.word()? {
            0 => QueueError::take(words)?.into(),
            1 => GateError::take(words)?.into(),
            2 => FabricError::PeerLost { rank: Wire::take(words)? },
            3 => FabricError::PeersLeft,
            4 => <Pair<Rank>>::take(words).map(|(rank, ranks)| FabricError::NoSuchRank { rank, ranks })?,
            5 => <Pair<Rank>>::take(words).map(|(rank, limit)| FabricError::TooManyRegions { rank, limit })?,
            6 => {
                let ((rank, requested), (available, segment)) = <(Pair<Rank>, Pair<usize>)>::take(words)?;
                OutOfMemory { rank, requested, available, segment }.into()
            }
            7 => FabricError::setting("call of a rank in virtual time", String::take(words)?),
            8 => <(Rank, RegionKey)>::take(words).map(|(rank, region)| FabricError::StaleRegion { rank, region })?,
            9 => <(Rank, RegionKey)>::take(words).map(|(rank, region)| FabricError::NoSuchRegion { rank, region })?,
            10 => <(Rank, u32)>::take(words).map(|(rank, code)| FabricError::Aborted { rank, code: code as i32 })?,
            11 => FabricError::Unsupported { feature: kept(Wire::take(words)?) },
            12 => <(u64, u32)>::take(words).map(|(data, bits)| FabricError::NoticeTooWide { data, bits })?,
            13 => {
                type One = (Rank, u64);
                let (collective, ((rank, argument), (other, other_argument))) = <(&str, (One, One))>::take(words)?;
                Mismatch { collective, rank, argument, other, other_argument }.into()
            }
            14 => FabricError::no_atomics_at_all(Wire::take(words)?),
            _ => return None,
        })
    }
}

/// Keeps a text for the life of the process, each once.
fn kept(text: &'static str) -> &'static &'static str {
    static KNOWN: LazyLock<Mutex<HashMap<&'static str, &'static &'static str>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(text).or_insert_with(|| Box::leak(Box::new(text)))
}
