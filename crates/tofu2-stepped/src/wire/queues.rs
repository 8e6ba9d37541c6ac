//! Commands and reports of control queues.

use super::{Reader, Wire, wire_enum, wire_struct};
use rdma_fabric::control_queue::{
    Blocks, Command, Completion, MrqKind, MrqNotice, Pointers, Posting, QueueMode, QueueSpec,
};
use tofu2_shm::nic;

wire_enum!(QueueMode { 0 = Normal {}, 1 = Exclusive {}, 2 = Session {} });
wire_struct!(QueueSpec { mode, engine, number, depth, mrq_depth, initial_offset, checked });
wire_struct!(Pointers { read, write, scheduled });
wire_struct!(Completion { tag, status });
wire_struct!(MrqNotice { kind, peer, edata, value, local, remote, status });
wire_enum!(MrqKind {
    0 = LocalPut {},
    1 = RemotePut {},
    2 = LocalGet {},
    3 = RemoteGet {},
    4 = LocalAtomic {},
    5 = RemoteAtomic {},
});
wire_struct!(Blocks { count, stride });

/// As the descriptor of its first block, the number and stride of the blocks, the tag, and the slots to advance.
impl Wire for Posting {
    fn put(&self, words: &mut Vec<u64>) {
        // A descriptor has no room for an advance that is too long, which the queue refuses.
        let mut one = Posting { sps: 0, ..*self };
        let blocks = match &mut one.command {
            Command::Put { blocks, .. } | Command::Get { blocks, .. } => std::mem::replace(blocks, Blocks::ONE),
            _ => Blocks::ONE,
        };
        let (first, second) = nic::encode(&one);
        words.extend(first);
        second.map(Vec::from).put(words);
        (blocks, (self.tag, self.sps)).put(words);
    }

    fn take(words: &mut Reader<'_>) -> Option<Self> {
        let first = [words.word()?, words.word()?, words.word()?, words.word()?];
        let second: Option<Vec<u64>> = Wire::take(words)?;
        let second = match second {
            Some(second) => Some(second.try_into().ok()?),
            None => None,
        };
        let mut posting = nic::decode(first, second)?;
        let (all, (tag, sps)) = Wire::take(words)?;
        if let Command::Put { blocks, .. } | Command::Get { blocks, .. } = &mut posting.command {
            *blocks = all;
        }
        Some(Posting { tag, sps, ..posting })
    }
}
