//! What a record of a receive queue holds.

use super::RECORD;
use crate::control_queue::status::Status;
use rdma_fabric::control_queue::{MrqKind, MrqNotice, QueueId, Stadd};

/// A record's words after its state: kind and edata, peer, value, own address, target's address, status. Of a failed command
/// the value's and the own address's words belong to the status.
#[inline]
pub(super) fn encode(notice: &MrqNotice) -> [u64; RECORD - 1] {
    let status = Status::encode(notice.status);
    let (value, local) = match notice.status {
        Ok(()) => (notice.value, notice.local.to_bits()),
        Err(_) => (status.numbers, status.stadd),
    };
    let first = notice.kind as u64 | u64::from(notice.edata) << 8;
    [first, notice.peer.to_bits(), value, local, notice.remote.to_bits(), status.head, 0]
}

#[inline]
pub(super) fn decode([first, peer, value, local, remote, head, zero]: [u64; RECORD - 1]) -> Option<MrqNotice> {
    use MrqKind::{LocalAtomic, LocalGet, LocalPut, RemoteAtomic, RemoteGet, RemotePut};
    let kinds = [LocalPut, RemotePut, LocalGet, RemoteGet, LocalAtomic, RemoteAtomic];
    let kind = *kinds.get((first & 0xff) as usize)?;
    let (peer, edata) = (QueueId::from_bits(peer)?, (first >> 8) as u8);
    if first >> 16 != 0 || zero != 0 {
        return None;
    }
    let remote = Stadd::from_bits(remote);
    if head == 0 {
        return Some(MrqNotice { kind, peer, edata, value, local: Stadd::from_bits(local), remote, status: Ok(()) });
    }
    let status = Status { head, stadd: local, numbers: value }.decode()?;
    Some(MrqNotice { kind, peer, edata, value: 0, local: Stadd::from_bits(0), remote, status })
}
