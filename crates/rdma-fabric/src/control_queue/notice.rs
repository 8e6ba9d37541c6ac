//! What a control queue reports: completions in its TCQ, notices in its MRQ.

use super::{QueueError, QueueId, Stadd};

/// An entry of the transmit complete queue: a command's local buffer may be reused, or the command failed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What [`super::Posting::tag`] was.
    pub tag: u64,
    /// What went wrong before anything was sent, if anything did.
    pub status: Result<(), QueueError>,
}

/// Of which command and side a notice tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MrqKind {
    /// An own put was acknowledged. `remote` is the byte after the last one written.
    LocalPut = 0,
    /// A peer's put arrived. `remote` is the byte after the last one written.
    RemotePut = 1,
    /// An own get is complete. `local` is the byte after the last one written.
    LocalGet = 2,
    /// A peer's get was served. `remote` is the byte after the last one read.
    RemoteGet = 3,
    /// An own atomic is complete. `value` is what the word held before, `remote` its address.
    LocalArmw = 4,
    /// A peer's atomic was served. `remote` is the word's address.
    RemoteArmw = 5,
}

/// A notice: an entry of the message receive queue. Fields that [`MrqKind`] doesn't name are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrqNotice {
    /// Of what.
    pub kind: MrqKind,
    /// The other side's queue: the target of an own command, the poster of a peer's.
    pub peer: QueueId,
    /// What [`super::Posting::edata`] was.
    pub edata: u8,
    /// The value before an atomic.
    pub value: u64,
    /// Own address.
    pub local: Stadd,
    /// The target's address.
    pub remote: Stadd,
    /// What went wrong at the target, if anything did: then nothing was done there.
    pub status: Result<(), QueueError>,
}
