//! Model of the receive queue's ring under loom: a few producers and a consumer over two records.

use super::*;
use crate::notices::ring::model::{Cell, Mutant, Tiny, ring_tests};
use rdma_fabric::Rank;

struct Records {
    ends: [Cell; 3],
    records: [[Cell; RECORD]; 2],
    claims: [Cell; 2],
}

impl Records {
    fn ring(&self) -> Mrq<'_, Cell> {
        let [tail, seen, head] = &self.ends;
        Mrq { tail, seen, head, records: &self.records, claims: &self.claims }
    }
}

impl Tiny for Records {
    const BRANCHES: usize = 2_000;

    fn new(mutant: Mutant) -> Self {
        let cell = |_| Cell::new(mutant);
        Records { ends: [0; 3].map(cell), records: [0; 2].map(|_| [0; RECORD].map(cell)), claims: [0; 2].map(cell) }
    }
    fn send(&self, from: u32, data: u64) -> bool {
        let notice = MrqNotice {
            kind: MrqKind::RemotePut,
            peer: QueueId::new(Rank::new(from), 0, 0, 0),
            edata: data as u8,
            value: data,
            local: Stadd::from_bits(0),
            remote: Stadd::from_bits(data),
            status: Ok(()),
        };
        let (ring, from) = (self.ring(), Rank::new(from));
        let claim = ring::claim_next(&ring, from).or_else(|| ring::claim(&ring, from).unwrap());
        claim.map(|claim| self.ring().publish(claim, &notice)).is_some()
    }
    fn take(&self, has_ended: impl Fn(u32) -> bool + Copy) -> Option<(u32, u64)> {
        let notice = self.ring().consume(|| has_ended(1), has_ended).expect("a torn notice or a damaged ring")?;
        assert_eq!((notice.remote.to_bits(), u64::from(notice.edata)), (notice.value, notice.value), "a torn notice");
        Some((notice.peer.rank().number(), notice.value))
    }
    fn claim(&self, me: Rank) -> Result<Option<Claim>, DamagedRing> {
        ring::claim(&self.ring(), me)
    }
    fn is_empty(&self) -> bool {
        ring::is_empty(&self.ring())
    }
    fn has_room(&self) -> bool {
        ring::has_room(&self.ring())
    }
}

ring_tests!(Records, 10, 500);
