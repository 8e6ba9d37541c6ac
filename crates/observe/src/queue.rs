//! Commands of a control queue: counted when they are posted.
//!
//! When a command of a queue is *executed* only the provider knows: in a trace it stands where it was posted.

use crate::{
    event::{Event, EventKind},
    recorder::Recorder,
};
use rdma_fabric::{
    Rank,
    control_queue::{Command, Posting, QueueId},
};

/// Whom a command is for, if anybody.
pub(crate) fn target_of(posting: &Posting) -> Option<Rank> {
    posting.command.target().map(QueueId::rank)
}

/// Returns what a command is called in counters and traces, and how many bytes it moves.
fn described(posting: &Posting) -> (EventKind, u64) {
    let put = if posting.remote_notice { EventKind::PutNotify } else { EventKind::Put };
    match &posting.command {
        Command::Put { len, blocks, .. } => (put, u64::from(*len) * u64::from(blocks.count)),
        Command::PutInline { bytes, .. } => (put, bytes.as_bytes().len() as u64),
        Command::Get { len, blocks, .. } => (EventKind::Get, u64::from(*len) * u64::from(blocks.count)),
        Command::Nop => (EventKind::Nop, 0),
        Command::Atomic { amo, width, .. } => (EventKind::of_atomic(amo), *width as u64),
    }
}

impl Recorder {
    /// A command was posted just `now`.
    pub(crate) fn commanded(&self, now_ps: u64, posting: &Posting) {
        let (kind, bytes) = described(posting);
        let commands = u64::from(posting.command.commands());
        let peer = target_of(posting).map(Rank::number);
        let mut record = self.lock();
        match kind {
            EventKind::Nop => record.counts.nops += commands,
            EventKind::Get => {
                let counts = record.counts.with(peer);
                (counts.gets, counts.get_bytes) = (counts.gets + commands, counts.get_bytes + bytes);
            }
            EventKind::Put | EventKind::PutNotify => {
                let counts = record.counts.with(peer);
                (counts.puts, counts.put_bytes) = (counts.puts + commands, counts.put_bytes + bytes);
            }
            kind => {
                if let Some(count) = record.counts.with(peer).atomics.of_kind(kind) {
                    *count += 1;
                }
            }
        }
        record.happened(Event { bytes, ..Event::new(kind, peer, now_ps) });
    }
}
