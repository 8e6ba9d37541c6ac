//! A human-readable description of a schedule.

use super::Transport;
use crate::plan::Transfer;
use core::fmt;

/// The pieces that a reflect moves at one node, and its transport: see [`crate::NodeSet::explain`].
/// It prints as one line per piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The node.
    pub node: usize,
    /// The transport.
    pub transport: Transport,
    /// The reason for this transport.
    pub why: String,
    /// The pieces that the node sends.
    pub sends: Vec<Line>,
    /// The pieces that the node receives.
    pub receives: Vec<Line>,
}

/// One piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the array in the schedule.
    pub array: usize,
    /// The piece.
    pub transfer: Transfer,
    /// Its bytes.
    pub bytes: u64,
    /// The number of contiguous runs of bytes in memory.
    pub blocks: u64,
    /// Whether the CPU packs or unpacks it.
    pub packed: bool,
    /// The number of threads that pack or unpack it; 1 if it isn't packed.
    pub threads: usize,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { array, transfer, bytes, blocks, packed, threads } = self;
        let way = match (packed, blocks) {
            (true, _) if *threads > 1 => &format!("packed by {threads} threads"),
            (true, _) => "packed",
            (false, 1) => "as it lies",
            (false, _) => "block by block",
        };
        let plural = if *blocks == 1 { "" } else { "s" };
        write!(f, "array {array} {transfer}, {bytes} B in {blocks} block{plural}, {way}")
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { node, transport, why, sends, receives } = self;
        writeln!(f, "node {node}, transport {transport}: {why}")?;
        sends.iter().try_for_each(|line| writeln!(f, "  sends    {line}"))?;
        receives.iter().try_for_each(|line| writeln!(f, "  receives {line}"))
    }
}
