//! Notices of a command: room at the target before it, then a notice to either side.

use super::{config::Stop, executor::Executor, mrq, view::View};
use crate::shm::notices::ring;
use rdma_fabric::control_queue::{Command, MrqKind, MrqNotice, Posting, QueueError, QueueId, Stadd};

/// What a command's notices say to both sides.
#[derive(Clone, Copy)]
pub(crate) struct CommandNotices {
    pub(crate) local: MrqKind,
    pub(crate) remote: MrqKind,
    /// Own address after the command, for gets.
    pub(crate) own: Stadd,
    /// The target's address as both notices give it.
    pub(crate) at: Stadd,
    /// Before an atomic.
    pub(crate) value: u64,
}

impl Executor<'_> {
    /// Claims room for the remote notice, if there is to be one.
    #[inline]
    pub(crate) fn claim_notice(&self, target: &View<'_>, posting: &Posting) -> Result<Option<mrq::Claim>, QueueError> {
        if !posting.remote_notice {
            return Ok(None);
        }
        if let Some(claim) = ring::claim_next(&target.mrq(), self.me) {
            return Ok(Some(claim));
        }
        match ring::claim(&target.mrq(), self.me) {
            Ok(Some(claim)) => Ok(Some(claim)),
            Ok(None) => {
                target.stop(Stop::MrqOverflow);
                Err(QueueError::MrqOverflow { queue: target.id, depth: target.geometry.mrq_depth })
            }
            Err(mrq::DamagedRing) => Err(target.corrupt("the message receive queue")),
        }
    }

    #[cold]
    pub(crate) fn withdraw_notice(&self, target: &View<'_>, claim: Option<mrq::Claim>) {
        if let Some(claim) = claim {
            ring::withdraw(&target.mrq(), claim);
            // Notices of others may be ready behind it.
            target.segment.ring_for_notice();
        }
    }

    #[inline]
    pub(crate) fn notify_target(
        &self,
        target: &View<'_>,
        claim: Option<mrq::Claim>,
        from: QueueId,
        posting: &Posting,
        told: CommandNotices,
    ) {
        let Some(claim) = claim else { return };
        target.mrq().publish_good(claim, told.remote, posting.edata, from, told.at);
        target.segment.ring_for_notice();
    }

    /// Leaves the local notice in the poster's own MRQ.
    pub(crate) fn notify_poster(
        &self,
        queue: &View<'_>,
        posting: &Posting,
        told: CommandNotices,
        status: Result<(), QueueError>,
    ) {
        let Some(peer) = posting.command.target() else { return };
        match ring::claim(&queue.mrq(), self.me) {
            Ok(Some(claim)) => {
                let CommandNotices { local: kind, value, own: local, .. } = told;
                let remote = if kind == MrqKind::LocalGet { Stadd::from_bits(0) } else { told.at };
                let notice = MrqNotice { kind, peer, edata: posting.edata, value, local, remote, status };
                queue.mrq().publish(claim, &notice);
                queue.segment.ring_for_notice();
            }
            Ok(None) => queue.stop(Stop::MrqOverflow),
            Err(mrq::DamagedRing) => queue.stop(Stop::Corrupt("the message receive queue")),
        }
    }
}

/// Returns the notices of a command that failed at its target.
#[cold]
pub(crate) fn failed(command: &Command) -> CommandNotices {
    let none = Stadd::from_bits(0);
    let (local, remote, at) = match *command {
        Command::Get { from, len, .. } => (MrqKind::LocalGet, MrqKind::RemoteGet, from + u64::from(len)),
        Command::Put { at, len, .. } => (MrqKind::LocalPut, MrqKind::RemotePut, at + u64::from(len)),
        Command::PutInline { at, bytes, .. } => {
            (MrqKind::LocalPut, MrqKind::RemotePut, at + bytes.as_bytes().len() as u64)
        }
        Command::Armw { at, .. } | Command::CompareSwap { at, .. } => (MrqKind::LocalArmw, MrqKind::RemoteArmw, at),
        Command::Nop => (MrqKind::LocalPut, MrqKind::RemotePut, none),
    };
    CommandNotices { local, remote, own: none, at, value: 0 }
}
