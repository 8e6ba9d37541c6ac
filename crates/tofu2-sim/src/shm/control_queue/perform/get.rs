//! A get, with its notice.

use super::{
    Failure, LAST, Stage,
    ends::{Ends, Range, gone},
};
use crate::shm::control_queue::{
    claim::Phase,
    death::{self, Label},
    executor::Executor,
    telling::Told,
};
use rdma_fabric::control_queue::{MrqKind, Posting, QueueError, QueueId, Stadd};

impl<'a> Executor<'a> {
    pub(super) fn get(
        &self,
        stage: &Stage<'_>,
        posting: &Posting,
        to: QueueId,
        from: Stadd,
        at: Stadd,
        len: u64,
    ) -> Result<(Told, Result<(), QueueError>), Failure> {
        let theirs = Range { at: from, len, writes: false };
        let own = Range { at, ..theirs };
        let Ends { own: sink, theirs: source, target, _inside } = self.ends(&stage.queue, own, to, theirs)?;
        let len = len as usize;
        let claim = self.claim_notice(&target, posting)?;
        let last = len.min(LAST);
        let copy = |start: usize, len: usize| sink.part(start, len)?.copy_from(&source.part(start, len)?);
        stage.enter(Phase::Data);
        death::reach(Label::Data);
        let copied = if len == last { Some(()) } else { copy(0, len - last) };
        death::reach(Label::Written);
        stage.enter(Phase::Past);
        let copied = copied.and_then(|()| copy(len - last, last));
        death::reach(Label::Past);
        if copied.is_none() {
            self.withdraw_notice(&target, claim);
            let own = sink.is_lost() || sink.is_stale();
            return Err(if own {
                Failure::Here(gone(stage.queue.id, at, &sink))
            } else {
                gone(to, from, &source).into()
            });
        }
        sink.ring();
        let end = from + len as u64;
        let told =
            Told { local: MrqKind::LocalGet, remote: MrqKind::RemoteGet, own: at + len as u64, at: end, value: 0 };
        self.tell_target(&target, claim, stage.queue.id, posting, told);
        death::reach(Label::Noticed);
        Ok((told, Ok(())))
    }
}
