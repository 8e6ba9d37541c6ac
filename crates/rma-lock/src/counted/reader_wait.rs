//! Readers that meet a writer: waiting for it (R2–R7), withdrawing, and letting it in when the last
//! one leaves (U2–U4).

use super::{
    Core, Scheme,
    duties::Duties,
    reader::{COUNT_ME, UNCOUNT_ME},
    scheme::{READER, READERS_WAIT},
};
use crate::{
    LockError, Result,
    detach::Cancelled,
    error::Stopped,
    holder_limit,
    queue::{NodeId, Transition},
};
use rdma_fabric::{Handle, Time};
use std::sync::Arc;

/// R2–R7, after R1 met a writer.
pub(super) async fn wait_as_reader<S: Scheme>(core: Arc<Core<S>>, deadline: Time, cancelled: Cancelled) -> Result<()> {
    let waited = if S::WAITS_COUNTED {
        core.wait_counted(deadline, &cancelled).await
    } else {
        core.wait_uncounted(deadline, &cancelled).await
    };
    core.broken.answer(waited)
}

impl<S: Scheme> Core<S> {
    pub(super) async fn uncounted(&self, posted: Handle<u64>) -> Result<(), Stopped> {
        let old = posted.await?;
        self.publish(Transition::READER_IS_GONE)?;
        self.after_uncounting(old).await
    }

    /// Withdraws an announced reader.
    pub(super) async fn withdraw_reader(&self) -> Result<(), Stopped> {
        let old = self.fabric.atomic(&self.count, UNCOUNT_ME).await?; // U1
        self.publish(Transition::READER_GIVES_UP)?;
        self.after_uncounting(old).await
    }

    /// Withdraws an announced reader because R1 found too many readers in `old`. It may by now be
    /// the last one before a writer.
    pub(super) async fn refuse_reader(&self, old: u64) -> Result<(), Stopped> {
        self.withdraw_reader().await?;
        // Another epoch may have room.
        Err(Stopped::GaveUp(if S::is_shut(old) { LockError::KEPT_OUT } else { holder_limit::refusal() }))
    }

    async fn wait_counted(&self, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        let own = match self.take_node(deadline, cancelled).await {
            Ok(own) => own, // R2
            Err(Stopped::GaveUp(error)) => {
                self.withdraw_reader().await?;
                return Err(Stopped::GaveUp(error));
            }
            Err(broken) => return Err(broken),
        };
        let next = self.push(&self.readers()?, "readers", &own).await?; // R3
        // R4: the writer may have left between R1 and R3 without seeing me.
        if self.fabric.get_word(&self.count).await? & S::HOLDS_UP == 0 {
            // R5: those on the stack may enter, perhaps this reader among them.
            let top = self.fabric.swap(&self.readers()?, 0).await?;
            if let Some(top) = self.decode("readers", top)? {
                self.do_duties(Duties { reader: Some(top), ..Duties::default() }).await?;
            }
        }
        // R6. If given up, the node stays on the stack; its waker will make it ready again.
        let woken = self.wait_to_be_woken(&own, deadline, cancelled).await;
        if let Err(Stopped::GaveUp(_)) = woken {
            self.publish(Transition::READER_GIVES_UP)?;
        }
        woken?;
        self.publish(Transition::READER_ENTERS)?;
        self.retire(own.id).await?;
        drop(own);
        // R7
        if next.is_some() {
            self.do_duties(Duties { reader: next, ..Duties::default() }).await?;
        }
        let kept_out = S::RECOVERABLE && S::is_shut(self.fabric.get_word(&self.count).await?);
        if kept_out || cancelled.is_set() {
            let left = self.post(Transition::READER_LEAVES, &self.count, UNCOUNT_ME).await?;
            self.uncounted(left).await?;
            return Err(Stopped::GaveUp(if kept_out { LockError::KEPT_OUT } else { Cancelled::REASON }));
        }
        Ok(())
    }

    /// Waits as a reader that is not counted in the meantime: U1, and R3–R7 until R1 finds no
    /// writer.
    async fn wait_uncounted(&self, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        loop {
            let old = self.fabric.atomic(&self.count, UNCOUNT_ME).await?; // U1
            self.after_uncounting(old).await?;
            if let Err(stopped) = self.wait_for_another_try(deadline, cancelled).await {
                if let Stopped::GaveUp(_) = stopped {
                    self.publish(Transition::READER_GIVES_UP)?;
                }
                return Err(stopped);
            }
            let old = self.fabric.atomic(&self.count, COUNT_ME).await?; // R1
            if old & S::OVER_LIMIT != 0 {
                return self.refuse_reader(old).await;
            }
            if old & S::KEEPS_OUT == 0 {
                break;
            }
        }
        self.publish(Transition::READER_ENTERS)?;
        if cancelled.is_set() {
            let left = self.post(Transition::READER_LEAVES, &self.count, UNCOUNT_ME).await?;
            self.uncounted(left).await?;
            return Err(Stopped::GaveUp(Cancelled::REASON));
        }
        Ok(())
    }

    /// Publishes that a reader's hold is no longer this rank's.
    pub(crate) fn pass_reader_on(&self) {
        if let Err(error) = self.publish(Transition::READER_ENTERED.undone()) {
            self.broken.by_fabric(error);
        }
    }

    /// Takes over a hold that another rank has passed on.
    pub(crate) fn take_reader_over(&self) {
        if let Err(error) = self.publish(Transition::READER_ENTERED) {
            self.broken.by_fabric(error);
        }
    }

    /// R2–R7 of a reader that is not counted.
    async fn wait_for_another_try(&self, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        let own = self.take_node(deadline, cancelled).await?; // R2
        let next = self.push(&self.readers()?, "readers", &own).await?; // R3
        if next.is_none() {
            // R4: the first of the waiting readers notifies the writer of them all; if there is no
            // writer, it does what the writer would have done.
            let old = self.fabric.fetch_or(&self.count, READERS_WAIT).await?;
            if old & S::KEEPS_OUT == 0 {
                let top = self.sweep(READERS_WAIT).await?; // R5
                self.do_duties(Duties { reader: top, ..Duties::default() }).await?;
            }
        }
        // R6. If given up, the node stays on the stack; its waker will make it ready again.
        self.wait_to_be_woken(&own, deadline, cancelled).await?;
        self.retire(own.id).await?;
        drop(own);
        self.do_duties(Duties { reader: next, ..Duties::default() }).await?; // R7
        if cancelled.is_set() { Err(Stopped::GaveUp(Cancelled::REASON)) } else { Ok(()) }
    }

    /// U1 for another reader, U2, U3. Returns the writer to let in, if this was the last reader.
    pub(super) async fn reader_leaves(&self) -> Result<Option<NodeId>, Stopped> {
        match self.fabric.atomic(&self.count, UNCOUNT_ME).await? {
            old if S::is_last(old) => self.let_writer_in(old - READER).await,
            _ => Ok(None),
        }
    }

    /// U2–U4, if the count word was `old` before U1.
    #[inline]
    pub(super) async fn after_uncounting(&self, old: u64) -> Result<(), Stopped> {
        if S::is_last(old)
            && let Some(writer) = self.let_writer_in(old - READER).await?
        {
            self.do_duties(Duties { writer: Some(writer), ..Duties::default() }).await?;
        }
        Ok(())
    }

    /// U2, U3; X7: turns the interest in `word`, in which no reader is counted, into activity.
    /// Fails if a reader came in, which will then do it. A separate head is read *after* the swap:
    /// the interest does not say whose it is, and the swap may have succeeded for a later writer
    /// than the one seen before.
    pub(super) async fn let_writer_in(&self, word: u64) -> Result<Option<NodeId>, Stopped> {
        if !self.activate(word).await? {
            return Ok(None);
        }
        let (name, head) = if S::HEAD_APART {
            let head = self.fabric.get_word(&self.writers()?.head).await?;
            ("head", head)
        } else {
            ("count", S::head(word))
        };
        match self.decode(name, head)? {
            Some(writer) => Ok(Some(writer)),
            None => Err(Stopped::Broken(LockError::corrupt(name, head))),
        }
    }

    /// Turns interest into activity by compare-and-swap, regardless of readers that begin or cease
    /// to wait.
    pub(super) async fn activate(&self, mut word: u64) -> Result<bool, Stopped> {
        loop {
            let old = self.fabric.compare_swap(&self.count, word, S::granted(word)).await?;
            if old == word {
                return Ok(true);
            }
            if S::WAITS_COUNTED || old ^ word != READERS_WAIT {
                return Ok(false);
            }
            word = old;
        }
    }
}
