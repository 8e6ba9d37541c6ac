//! Posting of commands, and the reports of a queue: completions in its TCQ, notices in its MRQ.

use super::{Command, QueueError, QueueId, Stadd};

/// A command with its posting options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The command.
    pub command: Command,
    /// Returned with the completion in the TCQ (uTofu's callback pointer).
    pub tag: u64,
    /// Carried by the notices in both MRQs.
    pub edata: u8,
    /// The number of *slots* by which a put advances the session offset of the target's queue: 0 to 15.
    pub sps: u8,
    /// Whether to report the completion in this queue's TCQ: the local buffer may be reused.
    pub tcq_notice: bool,
    /// Whether to report the target's acknowledgement in this queue's MRQ, with the result of a get
    /// or atomic. A nop never reports.
    pub local_notice: bool,
    /// Whether to leave a notice in the target queue's MRQ.
    pub remote_notice: bool,
    /// Whether no memory effect of this command may be seen before those of earlier commands of
    /// this queue to the same target. Within one put, the last 8 bytes are seen last.
    pub strong_order: bool,
    /// Whether to queue the command without ringing the engine's doorbell; the next posting without
    /// this flag starts both.
    pub delay_start: bool,
    /// The path that the packets take, in the provider's numbering; `None` means the default path.
    /// Affects timing only.
    pub path: Option<u8>,
    /// Largest packet, in bytes of payload; 0 means the network's. Affects timing only.
    pub mtu: u16,
    /// Idle time between packets, in the provider's units; 0 means none. Affects timing only.
    pub gap: u8,
}

impl Posting {
    /// Posts `command` with no notice, no advance and no order.
    pub const fn new(command: Command) -> Self {
        Posting {
            command,
            tag: 0,
            edata: 0,
            sps: 0,
            tcq_notice: false,
            local_notice: false,
            remote_notice: false,
            strong_order: false,
            delay_start: false,
            path: None,
            mtu: 0,
            gap: 0,
        }
    }

    /// Reports the completion in this queue's TCQ, with `tag`.
    pub const fn tcq(mut self, tag: u64) -> Self {
        self.tcq_notice = true;
        self.tag = tag;
        self
    }

    /// Reports acknowledgement and result in this queue's MRQ, with `edata`.
    pub const fn local(mut self, edata: u8) -> Self {
        self.local_notice = true;
        self.edata = edata;
        self
    }

    /// Leaves a notice with `edata` in the target queue's MRQ.
    pub const fn remote(mut self, edata: u8) -> Self {
        self.remote_notice = true;
        self.edata = edata;
        self
    }

    /// Advances the session offset of the target's queue by `slots`.
    pub const fn sps(mut self, slots: u8) -> Self {
        self.sps = slots;
        self
    }

    /// Keeps the order of memory effects.
    pub const fn strong_order(mut self) -> Self {
        self.strong_order = true;
        self
    }

    /// Only queues the command; see [`Posting::delay_start`].
    pub const fn delayed(mut self) -> Self {
        self.delay_start = true;
        self
    }
}

impl From<Command> for Posting {
    fn from(command: Command) -> Self {
        Posting::new(command)
    }
}

/// An entry of the transmit complete queue: a command's local buffer may be reused, or the command
/// failed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The command's [`Posting::tag`].
    pub tag: u64,
    /// The error that occurred before anything was sent, if any.
    pub status: Result<(), QueueError>,
}

/// The command and side to which a notice refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MrqKind {
    /// This queue's put was acknowledged. `remote` is the byte after the last one written.
    LocalPut = 0,
    /// A peer's put arrived. `remote` is the byte after the last one written.
    RemotePut = 1,
    /// This queue's get is complete. `local` is the byte after the last one written.
    LocalGet = 2,
    /// A peer's get was served. `remote` is the byte after the last one read.
    RemoteGet = 3,
    /// This queue's atomic is complete. `value` is the previous value of the word, `remote` its
    /// address.
    LocalAtomic = 4,
    /// A peer's atomic was served. `remote` is the word's address.
    RemoteAtomic = 5,
}

/// A notice: an entry of the message receive queue. Fields that [`MrqKind`] doesn't mention are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrqNotice {
    /// The command and side to which the notice refers.
    pub kind: MrqKind,
    /// The other side's queue: the target of this queue's command, or the poster of a peer's
    /// command.
    pub peer: QueueId,
    /// The command's [`Posting::edata`].
    pub edata: u8,
    /// The word's value before an atomic.
    pub value: u64,
    /// The poster's local address.
    pub local: Stadd,
    /// The target's address.
    pub remote: Stadd,
    /// The error at the target, if any; the command had no effect there in that case.
    pub status: Result<(), QueueError>,
}
