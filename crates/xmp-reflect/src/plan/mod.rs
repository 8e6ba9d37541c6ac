//! The exchange between nodes when the shadows of an array are updated.
//!
//! A [`Plan`] is the list of pieces that one node receives and sends in a *reflect*. Each node
//! computes it locally, from the mapping and the arguments of the call, and the plans of all nodes
//! match: the k-th piece that `p` sends to `q` is the k-th piece that `q` receives from `p`.
//!
//! Sources are found by ownership, not by assuming that the next node is the source: a shadow may
//! be wider than the neighbour's block, blocks may be empty, and a ring may consist of one or two
//! nodes.
//!
//! The shadow of a dimension is cut into pieces that have one owner each; a node receives products
//! of one piece for each dimension, either of its own cells or of shadow. A piece beyond the bounds
//! of a dimension exists only if the reflect is periodic in that dimension, independent of the
//! other dimensions.

#![deny(clippy::arithmetic_side_effects)]

mod error;
mod pieces;
mod products;
mod split;
#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests;
mod transfer;
mod widths;

pub use error::{PlanError, Side};
pub use split::Split;
pub use transfer::Transfer;
pub use widths::{ALL, Corners, Widths};

use crate::mapping::Mapping;
use pieces::{pieces, pieces_given};
use products::products;
use std::collections::HashMap;
use widths::resolve;

/// The pieces that one node receives and sends to update the shadows of an array (`reflect`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The pieces that arrive in cells of the node's shadow, none of them empty, all of them
    /// disjoint.
    pub receives: Vec<Transfer>,
    /// The pieces that are sent from the node's own cells, none of them empty. A cell may be sent
    /// more than once.
    pub sends: Vec<Transfer>,
}

impl Plan {
    /// Creates the plan of one node for an update of shadows of these widths, one for each
    /// dimension of the array. Nodes that give equal arguments obtain matching plans.
    ///
    /// The cost is proportional to the number of nodes along each dimension and to the length of
    /// the plan, not to the number of all nodes.
    ///
    /// # Errors
    /// [`PlanError::Mapping`] for a node that does not exist, [`PlanError::Widths`],
    /// [`PlanError::AboveShadow`], [`PlanError::PartOfFull`].
    pub fn new(mapping: &Mapping, node: usize, widths: &[Widths], corners: Corners) -> Result<Plan, PlanError> {
        let part = mapping.part(node)?;
        let widths = resolve(mapping, widths)?;
        let dims = || part.dims().zip(&widths);
        let taken: Vec<_> = dims().map(|((dim, at), width)| pieces(dim, at, width, corners)).collect();
        let given: Vec<_> = dims().map(|((dim, at), width)| pieces_given(dim, at, width, corners)).collect();

        let mut receives = Vec::new();
        products(&taken, corners, &mut |of| receives.push(Transfer::receive(&part, of)));
        let mut sends = Vec::new();
        products(&given, corners, &mut |of| sends.push(Transfer::send(&part, of)));
        Ok(Plan { receives: in_order(receives), sends: in_order(sends) })
    }

    /// Returns the plan of the opposite direction: each piece of shadow returns to its source
    /// cells, to be combined with them (`reduce_shadow`). Again, the plans of all nodes match.
    ///
    /// Several pieces may arrive for one cell. Combining them in the order of the list always gives
    /// the same result.
    pub fn reversed(self) -> Plan {
        Plan { receives: self.sends, sends: self.receives }
    }

    /// Returns whether the node neither receives nor sends anything.
    pub fn is_empty(&self) -> bool {
        self.receives.is_empty() && self.sends.is_empty()
    }
}

/// Sorts transfers in the order that both ends know, that of the receiver's cells, and numbers
/// those of each peer.
fn in_order(mut transfers: Vec<(Vec<usize>, Transfer)>) -> Vec<Transfer> {
    let key = |(starts, transfer): &(Vec<usize>, Transfer)| (transfer.direction.clone(), starts.clone(), transfer.peer);
    transfers.sort_by_cached_key(key);
    let mut labels: HashMap<usize, u32> = HashMap::new();
    transfers
        .into_iter()
        .map(|(_, transfer)| {
            let next = labels.entry(transfer.peer).or_default();
            let label = *next;
            // Memory ends long before a node has 2^32 pieces of another.
            *next = next.saturating_add(1);
            Transfer { label, ..transfer }
        })
        .collect()
}
