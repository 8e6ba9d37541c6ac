//! One piece of an exchange.

use super::pieces::Piece;
use crate::mapping::{Part, Section};
use core::fmt;

/// Cells that one node sends to another, or to itself, from the point of view of one end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The node at the other end; possibly the node itself.
    pub peer: usize,
    /// This end's cells. Those at the other end have equal extents.
    pub section: Section,
    /// Where the cells of the shadow lie at the node whose shadow they are, equal at both ends: −1
    /// if below that node's own cells, 1 if above them, 0 if beside them. In a full shadow, −1 is
    /// below the lowest own cell.
    pub direction: Vec<i8>,
    /// The number of this piece among those that go from one node to the other, equal at both ends,
    /// counted from 0.
    pub label: u32,
}

impl Transfer {
    /// Returns the transfer that a node receives in the product of these of its pieces, and before
    /// it, as the sort key, its starts.
    pub(super) fn receive(part: &Part, of: &[&Piece]) -> (Vec<usize>, Transfer) {
        let transfer = Transfer::new(part, of, |piece| piece.owner, |piece| piece.start);
        (transfer.section.starts.clone(), transfer)
    }

    /// Returns the transfer that a node sends to the product of these pieces of another, and before
    /// it, as the sort key, the receiver's starts.
    pub(super) fn send(part: &Part, of: &[&Piece]) -> (Vec<usize>, Transfer) {
        let starts = of.iter().map(|piece| piece.start).collect();
        (starts, Transfer::new(part, of, |piece| piece.taker, |piece| piece.from))
    }

    fn new(part: &Part, of: &[&Piece], end: impl Fn(&Piece) -> usize, start: impl Fn(&Piece) -> usize) -> Transfer {
        let mut peer = part.coordinates().to_vec();
        for ((dim, _), piece) in part.dims().zip(of) {
            if let Some(along) = dim.along() {
                peer[along] = end(piece);
            }
        }
        Transfer {
            peer: part.mapping().nodes().number_inside(&peer),
            section: Section {
                starts: of.iter().map(|piece| start(piece)).collect(),
                extents: of.iter().map(|piece| piece.len).collect(),
            },
            direction: of.iter().map(|piece| piece.side).collect(),
            label: 0,
        }
    }
}

impl fmt::Display for Transfer {
    /// Writes direction, peer, extents and starts: `(-1, +1) node 4: 2 x 8 at (0, 1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signed = |side: &i8| if *side > 0 { format!("+{side}") } else { side.to_string() };
        let direction: Vec<String> = self.direction.iter().map(signed).collect();
        write!(f, "({}) node {}: {}", direction.join(", "), self.peer, self.section)
    }
}
