//! Polling of completions and notices.

use crate::{
    failure::{Code, Outcome, of_completion, of_fabric, of_notice},
    ids::stadd_to_bits,
    vcq::Vcq,
};
use rdma_fabric::{
    FabricError,
    control_queue::{MrqKind, MrqNotice, QueueError},
};

/// `struct utofu_mrq_notice`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Notice {
    notice_type: u8,
    padding1: [u8; 7],
    vcq_id: u64,
    edata: u64,
    rmt_value: u64,
    lcl_stadd: u64,
    rmt_stadd: u64,
    reserved: [u64; 2],
}

const _: () = assert!(size_of::<Notice>() == 64, "the record of the interface");

/// A side of a VCQ that programs poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Tcq,
    Mrq,
}

impl Vcq {
    /// Takes the next completion: its callback data, and its failure.
    ///
    /// # Errors
    /// [`Code::NOT_FOUND`]; the code of an error that was reported in no other way.
    #[inline]
    pub(crate) fn poll_tcq(&mut self) -> Outcome<(u64, Option<Code>)> {
        let polled = match self.checks.as_mut().and_then(|checks| checks.kept_completion()) {
            Some(kept) => Ok(Some(kept)),
            None => self.queue.poll_tcq(),
        };
        match polled {
            Ok(Some(completion)) => {
                self.misses = 0;
                self.unread_tcq = self.unread_tcq.saturating_sub(1);
                if self.checks.is_some() {
                    self.check_completion();
                }
                let failed = completion.status.err().map(|error| of_completion(&error).because(error));
                Ok((completion.tag, failed))
            }
            Ok(None) => Err(self.missed(Side::Tcq)),
            Err(error) => Err(self.failed(&error, Side::Tcq)),
        }
    }

    /// Takes the next notice, and its failure.
    ///
    /// # Errors
    /// As [`Vcq::poll_tcq`].
    #[inline]
    pub(crate) fn poll_mrq(&mut self) -> Outcome<(Notice, Option<Code>)> {
        match self.queue.poll_mrq() {
            Ok(Some(notice)) => {
                self.misses = 0;
                let is_own = matches!(notice.kind, MrqKind::LocalPut | MrqKind::LocalGet | MrqKind::LocalAtomic);
                if is_own {
                    self.unread_mrq = self.unread_mrq.saturating_sub(1);
                }
                if self.checks.is_some() {
                    self.check_notice(&notice);
                }
                let failed = notice.status.err().map(|error| of_notice(&error).because(error));
                Ok((self.notice(&notice, is_own), failed))
            }
            Ok(None) => Err(self.missed(Side::Mrq)),
            Err(error) => Err(self.failed(&error, Side::Mrq)),
        }
    }

    /// Converts a notice. The target of an own command is the peer, that of a peer's is this VCQ.
    #[inline]
    fn notice(&mut self, notice: &MrqNotice, is_own: bool) -> Notice {
        let (peer, context) = self.peers.id(notice.peer);
        let target = if is_own { context } else { self.id.context };
        let is_get = notice.kind == MrqKind::LocalGet;
        Notice {
            notice_type: notice.kind as u8,
            vcq_id: peer,
            edata: notice.edata.into(),
            rmt_value: notice.value,
            lcl_stadd: if is_get { stadd_to_bits(notice.local, self.id.context) } else { 0 },
            rmt_stadd: if is_get { 0 } else { stadd_to_bits(notice.remote, target) },
            ..Notice::default()
        }
    }

    /// Handles a poll that found nothing. A loss becomes an error, since the awaited entry may never
    /// arrive.
    #[inline]
    fn missed(&mut self, side: Side) -> Code {
        self.misses = self.misses.saturating_add(1);
        if let Some(rank) = self.job.lost() {
            let code = if side == Side::Tcq { Code::TCQ_OTHER } else { Code::MRQ_PEER };
            return code.because(format_args!("{rank} was lost"));
        }
        self.job.pause(self.misses);
        Code::NOT_FOUND
    }

    /// Returns the code for an error of a command that asked for no report, or of the queue.
    #[cold]
    fn failed(&mut self, error: &FabricError, side: Side) -> Code {
        let FabricError::Queue(error) = error else { return of_fabric(error) };
        let error: &QueueError = error;
        self.strict("poll", format_args!("{error}"));
        let is_local = matches!(
            error,
            QueueError::NoSuchTag { queue, .. }
                | QueueError::Stale { queue, .. }
                | QueueError::OutOfBounds { queue, .. }
                | QueueError::ReadOnly { queue, .. } if *queue == self.queue.id()
        );
        let code = match (side, is_local) {
            (Side::Tcq, true) => of_completion(error),
            (Side::Tcq, false) => Code::TCQ_OTHER,
            (Side::Mrq, true) => match of_notice(error) {
                Code::MRQ_RMT_LENGTH => Code::MRQ_LCL_LENGTH,
                Code::MRQ_RMT_MEMORY => Code::MRQ_LCL_MEMORY,
                _ => Code::MRQ_LCL_STADD,
            },
            (Side::Mrq, false) => of_notice(error),
        };
        code.because(error)
    }
}
