//! One answer for all members of a call that any of them can fail.

use super::{Side, TopologyError};
use bytemuck::{Pod, Zeroable};
use rdma_fabric::Group;

/// An error as others are told it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Told {
    /// As [`Told::UNMATCHED`] says; all others are failures.
    kind: u32,
    label: u32,
    destination: u64,
    slot: u64,
    peer: u64,
}

impl Told {
    const UNMATCHED: u32 = 1;
    const NO_SUCH_END: u32 = 2;

    fn new(error: Option<&TopologyError>) -> Told {
        match error {
            Some(TopologyError::Unmatched { side, slot, label, peer, .. }) => Told {
                kind: Told::UNMATCHED,
                label: *label,
                destination: u64::from(*side == Side::Destination),
                slot: *slot as u64,
                peer: *peer as u64,
            },
            Some(TopologyError::NoSuchEnd { named, .. }) => {
                Told { kind: Told::NO_SUCH_END, peer: *named as u64, ..Told::zeroed() }
            }
            _ => Told::zeroed(),
        }
    }

    fn error(self, member: usize, members: usize) -> TopologyError {
        let side = if self.destination == 0 { Side::Source } else { Side::Destination };
        let (slot, peer) = (self.slot as usize, self.peer as usize);
        match self.kind {
            Told::UNMATCHED => TopologyError::Unmatched { member, side, slot, label: self.label, peer },
            Told::NO_SUCH_END => TopologyError::NoSuchEnd { contributor: member, named: peer, members },
            _ => TopologyError::Failed { member },
        }
    }
}

/// Whether all members have come through: what this one has then. Otherwise all are told the error of the least member
/// that has one, but that those with an error that only they can understand keep it. Collective over the group.
pub(super) async fn agreed<T>(group: &mut Group, mine: Result<T, TopologyError>) -> Result<T, TopologyError> {
    let vote = if mine.is_ok() { u64::MAX } else { group.me() as u64 };
    let first = !group.greatest(!vote).await?;
    if first == u64::MAX {
        return mine;
    }
    let first = first as usize;
    let told = group.broadcast(first, Told::new(mine.as_ref().err())).await?;
    let own = Told::new(mine.as_ref().err());
    match mine {
        Err(error) if own.kind == 0 => Err(error),
        _ => Err(told.error(first, group.len())),
    }
}
