//! Requests and replies.

use super::{FabricCall, Reader, Wire, wire_enum, wire_struct};
use rdma_fabric::{
    FabricError, Rank, RegionKey,
    barrier::{GateId, Values, Wiring},
    control_queue::{Posting, QueueSpec, Stadd},
};

/// A request of a rank. Queues are numbered in the order in which the rank opens them.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// Replies with the number and id of the queue. `of_library`: without a number, a session queue and an
    /// exclusive one take those of TofuD's system library.
    Open {
        spec: QueueSpec,
        context: Option<u8>,
        of_library: bool,
    },
    /// Replies with the number of commands that were dropped.
    Close {
        queue: usize,
    },
    /// Replies with [`rdma_fabric::control_queue::Pointers`].
    Pointers {
        queue: usize,
    },
    /// Registers memory of the process, which may be a region of its fabric, and replies with its [`Stadd`].
    Register {
        queue: usize,
        start: u64,
        len: usize,
        region: Option<RegionKey>,
        fixed: Option<u8>,
    },
    SetReadOnly {
        queue: usize,
        at: Stadd,
        read_only: bool,
    },
    Deregister {
        queue: usize,
        at: Stadd,
    },
    /// Replies with [`Posted`].
    Post {
        queue: usize,
        postings: Vec<Posting>,
    },
    /// Replies with the next [`rdma_fabric::control_queue::Completion`], if there is one.
    PollTcq {
        queue: usize,
    },
    /// Replies with the next [`rdma_fabric::control_queue::MrqNotice`], if there is one.
    PollMrq {
        queue: usize,
    },
    /// Replies with the numbers of start/end gates and relay gates.
    GateLimits,
    /// Replies with gates.
    TakeGates {
        relays: usize,
    },
    FreeGates {
        gates: Vec<GateId>,
    },
    SetGates {
        wirings: Vec<Wiring>,
    },
    StartGate {
        gate: GateId,
        values: Values,
    },
    /// Replies with [`rdma_fabric::barrier::Progress`].
    TestGate {
        gate: GateId,
    },
    Fabric {
        call: FabricCall,
    },
}

impl Request {
    /// Returns whether there is a reply.
    pub(crate) fn has_reply(&self) -> bool {
        !matches!(self, Request::Fabric { call } if !call.has_reply())
    }
}

wire_enum!(Request {
    0 = Open { spec: spec, context: context, of_library: of_library },
    1 = Close { queue: queue },
    2 = Pointers { queue: queue },
    3 = Register { queue: queue, start: start, len: len, region: region, fixed: fixed },
    4 = SetReadOnly { queue: queue, at: at, read_only: read_only },
    5 = Deregister { queue: queue, at: at },
    6 = Post { queue: queue, postings: postings },
    7 = PollTcq { queue: queue },
    8 = PollMrq { queue: queue },
    9 = GateLimits {},
    10 = TakeGates { relays: relays },
    11 = FreeGates { gates: gates },
    12 = SetGates { wirings: wirings },
    13 = StartGate { gate: gate, values: values },
    14 = TestGate { gate: gate },
    15 = Fabric { call: call },
});

/// The reply to a request, which determines `T`.
#[derive(Clone, Debug)]
pub(crate) struct Reply<T> {
    /// A rank that was lost, if any was.
    pub(crate) lost: Option<Rank>,
    /// The number of regions that have been deregistered, of all ranks.
    pub(crate) deregistered: u64,
    pub(crate) outcome: Result<T, FabricError>,
}

impl<T: Wire> Wire for Reply<T> {
    fn put(&self, words: &mut Vec<u64>) {
        self.lost.put(words);
        self.deregistered.put(words);
        self.outcome.put(words);
    }
    fn take(words: &mut Reader<'_>) -> Option<Self> {
        Some(Reply { lost: Wire::take(words)?, deregistered: Wire::take(words)?, outcome: Wire::take(words)? })
    }
}

/// The outcome of a post.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    /// The number of commands that were posted.
    pub(crate) posted: usize,
    /// Whether there was no room for the next one.
    pub(crate) is_full: bool,
    /// The error of the next one.
    pub(crate) error: Option<FabricError>,
}

wire_struct!(Posted { posted, is_full, error });

#[cfg(test)]
mod tests {
    use super::super::{decode, encode};
    use super::*;
    use rdma_fabric::control_queue::{Blocks, Command, Completion, Inline, QueueError, QueueId, QueueMode};

    fn same(request: &Request) {
        let words = encode(request);
        let back: Request = decode(&words).expect("what was encoded");
        assert_eq!(format!("{back:?}"), format!("{request:?}"));
        for len in 0..words.len() {
            assert!(decode::<Request>(&words[..len]).is_none(), "{len} words of {request:?}");
        }
    }

    #[test]
    fn requests_and_replies_keep_their_parts() {
        let to = QueueId::new(Rank::new(5), 3, 4, 7);
        let (from, at) = (Stadd::new(0x1234, 8), Stadd::fixed(7));
        let blocks = Blocks { count: 7, stride: 4096 };
        let put = Posting::new(Command::Put { to, from, at, len: 99, blocks }).tcq(u64::MAX).remote(3).sps(2);
        let inline = Posting::new(Command::PutInline { to, bytes: Inline::new(&[1; 20]).unwrap(), at }).local(9);
        same(&Request::Post { queue: 1, postings: vec![put, inline, Posting::new(Command::Nop).delayed()] });
        same(&Request::Open { spec: QueueSpec::new(QueueMode::Session).on(2), context: Some(6), of_library: true });
        same(&Request::Register { queue: 0, start: u64::MAX, len: 3, region: None, fixed: None });
        let gate = GateId::new(Rank::new(3), 2, 1);
        let values = Values::new(rdma_fabric::barrier::ReduceOp::BfpSum, &[0.5, -0.0]).unwrap();
        same(&Request::StartGate { gate, values });
        same(&Request::SetGates { wirings: vec![Wiring { source_remote: Some(gate), ..Wiring::none(gate) }] });

        let limit = QueueError::Limit { queue: to, what: "the length of a command", value: 9, limit: 8 };
        let reply = Reply {
            lost: Some(Rank::new(2)),
            deregistered: 3,
            outcome: Ok(Some(Completion { tag: 7, status: Err(limit) })),
        };
        let back: Reply<Option<Completion>> = decode(&encode(&reply)).unwrap();
        assert_eq!((back.lost, back.outcome), (reply.lost, reply.outcome));
        let errors = [FabricError::PeersLeft, limit.into(), FabricError::Unsupported { feature: &"a thing" }];
        for error in errors {
            let back: FabricError = decode(&encode(&error)).unwrap();
            assert!(back.to_string().contains(&error.to_string()), "{back}");
        }
    }
}
