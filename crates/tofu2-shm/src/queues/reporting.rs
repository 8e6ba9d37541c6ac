//! Notices of a command: room at the target is claimed before the command, and each side is
//! notified afterwards.

use super::{config::Stop, executor::Executor, mrq, view::View};
use crate::notices::ring;
use rdma_fabric::control_queue::{Command, MrqKind, MrqNotice, Posting, QueueError, QueueId, Stadd};

/// The contents of a command's notices to both sides.
#[derive(Clone, Copy)]
pub(crate) struct CommandNotices {
    pub(crate) local: MrqKind,
    pub(crate) remote: MrqKind,
    /// For gets, the poster's local address after the command.
    pub(crate) own: Stadd,
    /// The target's address as contained in both notices.
    pub(crate) at: Stadd,
    /// The value before an atomic.
    pub(crate) value: u64,
}

impl CommandNotices {
    /// Creates the notices of a put that ended at `at`.
    pub(crate) fn of_put(at: Stadd) -> Self {
        let own = Stadd::from_bits(0);
        CommandNotices { local: MrqKind::LocalPut, remote: MrqKind::RemotePut, own, at, value: 0 }
    }

    /// Creates the notices of a get that ended at `own` at the poster and at `at` at the target.
    pub(crate) fn of_get(own: Stadd, at: Stadd) -> Self {
        CommandNotices { local: MrqKind::LocalGet, remote: MrqKind::RemoteGet, own, at, value: 0 }
    }

    /// Creates the notices of an atomic that found `value` at `at`.
    pub(crate) fn of_atomic(at: Stadd, value: u64) -> Self {
        let own = Stadd::from_bits(0);
        CommandNotices { local: MrqKind::LocalAtomic, remote: MrqKind::RemoteAtomic, own, at, value }
    }

    /// Creates the notices of a command that failed at its target.
    #[cold]
    pub(crate) fn of_failed(command: &Command) -> Self {
        let none = Stadd::from_bits(0);
        match *command {
            Command::Get { from, len, .. } => Self::of_get(none, from + u64::from(len)),
            Command::Put { at, len, .. } => Self::of_put(at + u64::from(len)),
            Command::PutInline { at, bytes, .. } => Self::of_put(at + bytes.as_bytes().len() as u64),
            Command::Atomic { at, .. } => Self::of_atomic(at, 0),
            Command::Nop => Self::of_put(none),
        }
    }
}

impl Executor<'_> {
    /// Returns whether the target of `posting` has room for its notice, besides those of all ranks
    /// that may find room at the same time. True if there is no such target: executing the command
    /// reports the reason.
    pub(crate) fn admits_notice(&self, posting: &Posting) -> bool {
        let target = posting.command.target().map(|to| self.target(to));
        let margin = (self.job.plan.ranks as u64).saturating_add(8);
        target.and_then(Result::ok).is_none_or(|target| {
            let margin = (margin + u64::from(posting.command.commands())).min(u64::from(target.geometry.mrq_depth) / 2);
            ring::has_room_beyond(&target.mrq(), margin)
        })
    }

    /// Claims room for the remote notice, if one was requested.
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
            // Other ranks' notices may be ready behind it.
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
        notices: CommandNotices,
    ) {
        let Some(claim) = claim else { return };
        target.mrq().publish_good(claim, notices.remote, posting.edata, from, notices.at);
        target.segment.ring_for_notice();
    }

    /// Adds the local notice to the poster's own MRQ.
    pub(crate) fn notify_poster(
        &self,
        queue: &View<'_>,
        posting: &Posting,
        notices: CommandNotices,
        status: Result<(), QueueError>,
    ) {
        let Some(peer) = posting.command.target() else { return };
        match ring::claim(&queue.mrq(), self.me) {
            Ok(Some(claim)) => {
                let CommandNotices { local: kind, value, own: local, .. } = notices;
                let remote = if kind == MrqKind::LocalGet { Stadd::from_bits(0) } else { notices.at };
                let notice = MrqNotice { kind, peer, edata: posting.edata, value, local, remote, status };
                queue.mrq().publish(claim, &notice);
                queue.segment.ring_for_notice();
            }
            Ok(None) => queue.stop(Stop::MrqOverflow),
            Err(mrq::DamagedRing) => queue.stop(Stop::Corrupt("the message receive queue")),
        }
    }
}
