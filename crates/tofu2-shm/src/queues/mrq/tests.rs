use super::*;
use core::sync::atomic::AtomicU64;
use proptest::prelude::*;
use rdma_fabric::{Rank, control_queue::QueueError};

/// A receive queue that owns its words.
struct Whole {
    ends: [AtomicU64; 3],
    records: Vec<[AtomicU64; RECORD]>,
    claims: Vec<AtomicU64>,
}

impl Whole {
    fn new(depth: usize) -> Self {
        Whole {
            ends: Default::default(),
            records: (0..depth).map(|_| Default::default()).collect(),
            claims: (0..depth).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Returns the queue in its state after `notices` notices.
    fn after(depth: usize, notices: u64) -> Self {
        let whole = Self::new(depth);
        let positions = ring::positions(&whole.ring());
        let position = notices % positions;
        whole.ends[0].store(position << ring::RANK_BITS, Relaxed);
        whole.ends[1..].iter().for_each(|end| end.store(position, Relaxed));
        for index in (0..depth as u64).filter(|_| notices != 0) {
            // The last position that this record served.
            let last = notices - 1 - (notices - 1 - index) % depth as u64;
            let said = ring::pack(&whole.ring(), last % positions, 1, ring::READY);
            whole.records[index as usize][0].store(said, Relaxed);
        }
        whole
    }

    fn ring(&self) -> Mrq<'_, AtomicU64> {
        let [tail, seen, head] = &self.ends;
        Mrq { tail, seen, head, records: &self.records, claims: &self.claims }
    }
}

fn notice(number: u64) -> MrqNotice {
    MrqNotice {
        kind: MrqKind::RemotePut,
        peer: QueueId::new(Rank::new(3), 1, 2, 0),
        edata: number as u8,
        value: number,
        local: Stadd::from_bits(number + 1),
        remote: Stadd::from_bits(number + 2),
        status: Ok(()),
    }
}

fn send(ring: &Mrq<'_, AtomicU64>, from: u32, number: u64) -> bool {
    let claim = ring::claim(ring, Rank::new(from)).unwrap();
    claim.map(|claim| ring.publish(claim, &notice(number))).is_some()
}

fn take(ring: &Mrq<'_, AtomicU64>) -> Option<MrqNotice> {
    ring.consume(|| false, |_| false).unwrap()
}

#[test]
fn rings_of_every_depth_go_round_in_order() {
    for depth in [1, 2, 8, 64] {
        // Also where positions wrap.
        let positions = ring::positions(&Whole::new(depth).ring());
        for start in [0, positions - depth as u64] {
            let whole = Whole::after(depth, start);
            let ring = whole.ring();
            let (mut sent, mut got) = (0, 0);
            for round in 0..4 * depth as u64 {
                while sent - got < depth as u64 {
                    assert!(send(&ring, 1, sent), "depth {depth} from {start}: {sent} of {got}");
                    sent += 1;
                }
                assert!(!send(&ring, 1, sent), "depth {depth}: there was no room");
                for _ in 0..=round % depth as u64 {
                    assert_eq!(take(&ring), Some(notice(got)));
                    got += 1;
                }
            }
        }
    }
}

#[test]
fn only_the_expected_notice_is_taken() {
    let whole = Whole::new(4);
    let ring = whole.ring();
    assert!(!ring.take_put(0), "there is none");
    let publish = |notice: &MrqNotice| ring.publish(ring::claim(&ring, Rank::new(1)).unwrap().unwrap(), notice);
    let good = MrqNotice { value: 0, local: Stadd::from_bits(0), ..notice(7) };
    let failed = MrqNotice { status: Err(QueueError::NotOpen(good.peer)), ..good };
    publish(&good);
    assert!(!ring.take_put(8) && ring.take_put(7) && !ring.take_put(7));
    for other in [MrqNotice { kind: MrqKind::LocalPut, ..good }, failed] {
        publish(&other);
        publish(&good);
        assert!(!ring.take_put(7), "{other:?}");
        assert_eq!(take(&ring), Some(other));
        assert!(ring.take_put(7));
    }
}

#[test]
fn a_record_carries_every_field() {
    let queue = QueueId::new(Rank::new(9), 3, 1, 4);
    let stadd = Stadd::new(5, 6);
    let kinds = [
        MrqKind::LocalPut,
        MrqKind::RemotePut,
        MrqKind::LocalGet,
        MrqKind::RemoteGet,
        MrqKind::LocalAtomic,
        MrqKind::RemoteAtomic,
    ];
    for kind in kinds {
        let good = MrqNotice { kind, ..notice(255) };
        assert_eq!(decode(encode(&good)), Some(good));
        let error = QueueError::OutOfBounds { queue, stadd, len: 8, registered: 4 };
        let bad = MrqNotice { value: 0, local: Stadd::from_bits(0), status: Err(error), ..good };
        assert_eq!(decode(encode(&bad)), Some(bad));
    }
}

#[test]
fn the_claim_of_an_ended_rank_is_skipped() {
    for behind in [1, 2] {
        let whole = Whole::new(4);
        let ring = whole.ring();
        let take = |ended: Option<u32>| ring.consume(|| ended.is_some(), |rank| ended == Some(rank)).unwrap();
        assert!(send(&ring, 2, 0));
        assert!(ring::claim(&ring, Rank::new(2)).unwrap().is_some());
        assert_eq!(take(None), Some(notice(0)));
        assert_eq!([take(None), take(Some(3))], [None, None]);
        assert!(send(&ring, behind, 1));
        assert_eq!(take(None), None);
        assert_eq!(take(Some(2)), Some(notice(1)));
        assert!(ring::claim(&ring, Rank::new(2)).unwrap().is_some());
        assert_eq!(take(Some(2)), None);
        assert!(send(&ring, 1, 2));
        assert_eq!(take(None), Some(notice(2)));
    }
}

#[test]
fn many_producers_lose_nothing() {
    const EACH: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let whole = Whole::new(64);
    std::thread::scope(|scope| {
        for from in 1..=3u32 {
            let whole = &whole;
            scope.spawn(move || {
                for number in 0..EACH {
                    while !send(&whole.ring(), from, u64::from(from) << 32 | number) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut next = [0; 4];
        while next.iter().sum::<u64>() < 3 * EACH {
            match take(&whole.ring()) {
                Some(got) => {
                    let from = (got.value >> 32) as usize;
                    assert_eq!(got, notice((from as u64) << 32 | next[from]));
                    next[from] += 1;
                }
                None => std::thread::yield_now(),
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 10 } else { 2000 }))]

    /// For arbitrary values of the words, each call returns, with an error at worst.
    #[test]
    fn garbage_ends_in_an_error_at_worst(drawn in prop::collection::vec(any::<u64>(), 3 + 2 * 9), small in any::<bool>()) {
        let whole = Whole::new(2);
        let words = whole.ends.iter().chain(whole.records.iter().flatten()).chain(&whole.claims);
        words.zip(drawn).for_each(|(word, value)| word.store(if small { value % 64 } else { value }, Relaxed));
        let ring = whole.ring();
        for _ in 0..8 {
            if let Ok(Some(claim)) = ring::claim(&ring, Rank::new(1)) {
                ring.publish(claim, &notice(7));
            }
            let _ = ring.consume(|| true, |rank| rank % 2 == 0);
        }
    }
}
