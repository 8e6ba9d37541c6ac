//! Strict mode: reports uses that the real machine leaves undefined, on standard error.
//!
//! * A command with memory that is not registered, here or at its target.
//! * A buffer that changed between the command and its notice: a put's until its completion, a get's
//!   until its local notice. The command has read or written it already here, so the change did no
//!   harm; on the machine it may. Buffers of session queues are exempt: their commands run later.
//! * A fixed tag that is in use (`memory`), and a VCQ used by another thread (`vcq`).
//!
//! Without strict mode a VCQ has no [`VcqChecks`], and none of this costs anything.
//!
//! # Safety
//! A buffer is read only while it is registered, which is the program's promise that it is mapped.

#![allow(unsafe_code)]

use crate::{job::report, vcq::Vcq};
use core::{fmt, hash::Hasher, ops::Range};
use rdma_fabric::control_queue::{Command, Completion, MrqKind, MrqNotice, Posting, Stadd};
use std::{collections::VecDeque, hash::DefaultHasher};

/// The bytes of a buffer of the program, by their hash.
#[derive(Debug)]
struct Watched {
    call: &'static str,
    bytes: Range<usize>,
    hash: u64,
}

/// What strict mode knows of a VCQ.
#[derive(Debug, Default)]
pub(crate) struct VcqChecks {
    /// The buffers of commands whose completion was not polled, in order; `None` for commands without
    /// one.
    until_completion: VecDeque<Option<Watched>>,
    /// The buffers of gets whose local notice was not polled, in order.
    until_notice: VecDeque<Option<Watched>>,
    /// Completions that were taken to look for errors behind them.
    kept: VecDeque<Completion>,
}

impl VcqChecks {
    pub(crate) fn kept_completion(&mut self) -> Option<Completion> {
        self.kept.pop_front()
    }
}

/// Hashes bytes of the program.
fn hash(bytes: &Range<usize>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let start = core::ptr::with_exposed_provenance::<u8>(bytes.start);
    for at in 0..bytes.len() {
        // SAFETY: inside a registered buffer. Volatile: other ranks may write it.
        hasher.write_u8(unsafe { start.add(at).read_volatile() });
    }
    hasher.finish()
}

impl Vcq {
    /// Reports something, if strict mode is on.
    #[cold]
    pub(crate) fn strict(&self, call: &str, text: fmt::Arguments<'_>) {
        if self.checks.is_some() {
            let rank = self.job.machine.rank();
            report(&format!("utofu strict: {rank}: {call}: {text}\n"));
        }
    }

    /// Checks the local memory of a command, before it is posted.
    #[cold]
    pub(crate) fn check_before(&mut self, call: &'static str, posting: &Posting) {
        let (Command::Put { from: at, len, blocks, .. } | Command::Get { at, len, blocks, .. }) = posting.command
        else {
            return;
        };
        let extent = (u64::from(blocks.count).saturating_sub(1)).saturating_mul(blocks.stride) + u64::from(len);
        if self.registrations.bytes(at, extent as usize).is_none() {
            self.strict(call, format_args!("{extent} bytes of local memory at {at} are not registered"));
        }
    }

    /// Starts to watch the buffer of a command that was posted, and reports errors for which
    /// no notice was requested.
    #[cold]
    pub(crate) fn check_after(&mut self, call: &'static str, posting: &Posting) {
        let can_watch = !self.is_session && !posting.delay_start;
        let blocks = u64::from(posting.command.commands());
        let watched = |vcq: &Vcq, at: Stadd, len: u32, block: u64, stride: u64| {
            let bytes = vcq.registrations.bytes(at + block.saturating_mul(stride), len as usize)?;
            Some(Watched { call, hash: hash(&bytes), bytes })
        };
        for block in 0..blocks {
            let buffer = match posting.command {
                Command::Put { from, len, blocks, .. } if can_watch => watched(self, from, len, block, blocks.stride),
                Command::Get { at, len, blocks, .. } if can_watch => watched(self, at, len, block, blocks.stride),
                _ => None,
            };
            let is_get = matches!(posting.command, Command::Get { .. });
            let Some(checks) = &mut self.checks else { return };
            let (put, get) = if is_get { (None, buffer) } else { (buffer, None) };
            if posting.tcq_notice {
                checks.until_completion.push_back(put);
            }
            if is_get && posting.local_notice {
                checks.until_notice.push_back(get);
            }
        }
        // The queue returns an error without a requested notice after its completions.
        loop {
            match self.queue.poll_tcq() {
                Ok(Some(completion)) => {
                    if let Some(checks) = &mut self.checks {
                        checks.kept.push_back(completion);
                    }
                }
                Ok(None) => return,
                Err(error) => return self.strict(call, format_args!("{error}")),
            }
        }
    }

    #[cold]
    pub(crate) fn check_completion(&mut self) {
        let watched = self.checks.as_mut().and_then(|checks| checks.until_completion.pop_front());
        self.check_unchanged(watched.flatten(), "its completion was polled");
    }

    #[cold]
    pub(crate) fn check_notice(&mut self, notice: &MrqNotice) {
        if let Err(error) = &notice.status {
            self.strict("utofu_poll_mrq", format_args!("{error}"));
        }
        if notice.kind == MrqKind::LocalGet {
            let watched = self.checks.as_mut().and_then(|checks| checks.until_notice.pop_front());
            self.check_unchanged(watched.flatten(), "its local notice was polled");
        }
    }

    fn check_unchanged(&self, watched: Option<Watched>, until: &str) {
        let Some(Watched { call, bytes, hash: before }) = watched else { return };
        if hash(&bytes) != before {
            let (start, len) = (bytes.start, bytes.len());
            self.strict(call, format_args!("the buffer of {len} bytes at {start:#x} was changed before {until}"));
        }
    }
}
