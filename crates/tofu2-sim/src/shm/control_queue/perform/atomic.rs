//! An atomic, with its notice.

use super::{Failure, Stage, ends::gone};
use crate::shm::control_queue::{
    claim::Phase,
    death::{self, Label},
    executor::Executor,
    tags::resolve,
    telling::Told,
};
use rdma_fabric::{
    Amo,
    control_queue::{MrqKind, Posting, QueueError, QueueId, Stadd, Width},
};

impl<'a> Executor<'a> {
    pub(super) fn atomic(
        &self,
        stage: &Stage<'_>,
        posting: &Posting,
        to: QueueId,
        at: Stadd,
        width: Width,
        amo: Amo<u64>,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let target = self.target(to)?;
        let (piece, _) = resolve(&target, at, width as u64, width as u8, true)?;
        let claim = self.claim_notice(&target, posting)?;
        stage.enter(Phase::Data);
        death::reach(Label::Data);
        stage.enter(Phase::Past);
        let old = piece.modify(width as usize, amo);
        if old.is_some() {
            piece.ring();
        }
        death::reach(Label::Past);
        let Some(value) = old else {
            self.withdraw_notice(&target, claim);
            return Err(gone(to, at, &piece).into());
        };
        let told =
            Told { local: MrqKind::LocalAtomic, remote: MrqKind::RemoteAtomic, own: Stadd::from_bits(0), at, value };
        self.tell_target(&target, claim, stage.queue.id, posting, told);
        death::reach(Label::Noticed);
        Ok((told, Ok(())))
    }
}
