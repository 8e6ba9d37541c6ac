//! Commands of control queues between nodes: long ones, their order, and their outcome when regions
//! are dropped and ranks are lost.

use super::{drain::reopened, *};
use crate::cluster::mutant::Mutant;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, MrqNotice, Posting, QueueError, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Deps, Fabric};

const NORMAL: QueueSpec = QueueSpec::new(QueueMode::Normal);
const LEN: usize = 256 << 10;

/// A rank's region, and a queue on which it is registered.
struct Desk {
    queue: ControlQueue,
    region: Region,
    at: Stadd,
    fabric: Fabric,
}

impl Desk {
    fn at(ranks: &Ranks, rank: usize, spec: QueueSpec) -> Self {
        let fabric = ranks.members[rank].fabric();
        let (region, queue) = (fabric.alloc(LEN + 64).unwrap(), ControlQueue::open(&fabric, spec).unwrap());
        let at = queue.register_fixed(&region, 7).unwrap();
        Desk { queue, region, at, fabric }
    }

    fn fill(&self, byte: u8) {
        self.fabric.write(&self.region.span::<u8>(&self.fabric, 0, LEN).unwrap(), &[byte; LEN]).unwrap();
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; LEN];
        self.fabric.read(&self.region.span::<u8>(&self.fabric, 0, LEN).unwrap(), &mut bytes).unwrap();
        bytes
    }

    fn post(&self, posting: impl Into<Posting>) {
        block_on(self.queue.post(posting.into(), Deps::All)).unwrap();
    }

    fn notice(&self) -> MrqNotice {
        block_on(self.queue.next_notice(Deps::Ranks(&[Rank::new(0), Rank::new(1)]))).unwrap()
    }
}

/// Returns the number of flags under strong order that arrived before the long puts posted before
/// them.
fn early_flags(mutant: Option<Mutant>) -> usize {
    let ranks = Ranks::over(2, || domain().limited(4096));
    let (from, to) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    ranks.with(1, |state| state.core.mutant = mutant);
    let mut early = 0;
    for round in 1..=10u8 {
        from.fill(round);
        from.post(Posting::new(Command::put(to.queue.id(), from.at, to.at, LEN as u32)).local(1));
        let flag = Inline::word(round.into());
        let put = Command::PutInline { to: to.queue.id(), bytes: flag, at: to.at + LEN as u64 };
        from.post(Posting::new(put).strong_order().remote(round));
        assert_eq!(to.notice().edata, round);
        early += usize::from(to.bytes().iter().any(|byte| *byte != round));
        assert_eq!(from.notice().status, Ok(()));
    }
    early
}

#[test]
fn strong_order_holds_behind_a_long_put() {
    assert_eq!(early_flags(None), 0);
}

#[test]
fn a_command_that_overtakes_a_long_put_is_found() {
    assert!(early_flags(Some(Mutant::OvertakesMoves)) > 0);
}

#[test]
fn completions_of_long_and_short_ones_come_in_posting_order() {
    let ranks = Ranks::new(2);
    let (here, there) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    let to = there.queue.id();
    there.fill(9);
    for round in 0..100u64 {
        let len = if round % 3 == 1 { LEN as u32 } else { 24 };
        let command = match round % 4 {
            0 => Command::PutInline { to, bytes: Inline::word(round), at: there.at + LEN as u64 },
            1 => Command::Nop,
            2 => Command::put(to, here.at, there.at, len),
            _ => Command::get(to, there.at, here.at, len),
        };
        here.post(Posting::new(command).tcq(round));
    }
    for round in 0..100 {
        let completion = block_on(here.queue.next_completion(Deps::Ranks(&[]))).unwrap();
        assert_eq!((completion.tag, completion.status), (round, Ok(())));
    }
    assert_eq!(here.queue.close(), Ok(0));
}

#[test]
fn a_session_queue_is_filled_with_more_than_may_be_under_way() {
    let ranks = Ranks::new(2);
    let (here, there) = (Desk::at(&ranks, 0, QueueSpec::new(QueueMode::Session).ahead(0)), Desk::at(&ranks, 1, NORMAL));
    for round in 0..500u64 {
        let bytes = Inline::word(round);
        here.post(Command::PutInline { to: there.queue.id(), bytes, at: there.at + 8 * round });
    }
    // Rank 1 releases them all while rank 0 computes.
    for _ in 0..50 {
        there.post(Posting::new(Command::put(here.queue.id(), there.at, here.at, 0)).sps(10));
    }
    assert!(becomes(|| {
        let words = there.bytes();
        let last = u64::from_ne_bytes(words[8 * 499..8 * 500].try_into().unwrap());
        last == 499
    }));
    let words = there.bytes();
    let (words, _) = words.as_chunks::<8>();
    assert!(words[..500].iter().zip(0..).all(|(word, round)| u64::from_ne_bytes(*word) == round));
}

#[test]
fn a_region_stays_while_its_bytes_are_moved() {
    let ranks = Ranks::over(2, || domain().limited(4096));
    let there = Desk::at(&ranks, 1, NORMAL);
    for round in 1..=20u8 {
        let here = Desk::at(&ranks, 0, NORMAL);
        here.fill(round);
        here.post(Posting::new(Command::put(there.queue.id(), here.at, there.at, LEN as u32)).remote(round));
        let Desk { queue, region, fabric, .. } = here;
        drop(region);
        // The new region may have the same address.
        let next = fabric.alloc(LEN + 64).unwrap();
        fabric.write(&next.span::<u8>(&fabric, 0, LEN).unwrap(), &[0xee; LEN]).unwrap();
        assert_eq!(there.notice().edata, round);
        assert!(there.bytes().iter().all(|byte| *byte == round), "round {round}");
        assert_eq!(queue.close(), Ok(0));
    }
}

#[test]
fn a_tag_that_is_given_back_is_used_no_more() {
    let ranks = Ranks::over(2, || domain().limited(4096));
    let (here, there) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    for round in 1..=20u8 {
        here.fill(round);
        let at = here.queue.register_fixed(&here.region, 8).unwrap();
        here.post(Posting::new(Command::put(there.queue.id(), at, there.at, LEN as u32)).remote(round));
        here.queue.deregister(at).unwrap();
        here.fill(0xee);
        assert_eq!(there.notice().edata, round);
        assert!(there.bytes().iter().all(|byte| *byte == round), "round {round}");
    }
}

#[test]
fn errors_at_the_target_come_home() {
    let ranks = Ranks::new(2);
    let (here, there) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    let (to, nowhere) = (there.queue.id(), Stadd::fixed(9));
    let unknown = QueueError::NoSuchTag { queue: to, stadd: nowhere };
    for len in [8, 1000, LEN as u32] {
        for command in [Command::put(to, here.at, nowhere, len), Command::get(to, nowhere, here.at, len)] {
            here.post(Posting::new(command).local(3));
            let notice = here.notice();
            assert_eq!((notice.edata, notice.status), (3, Err(unknown)));
            here.post(command);
            assert!(becomes(|| here.queue.poll_tcq() == Err(unknown.into())), "kept for the next poll");
        }
    }
    // Detected locally, before anything is sent.
    here.post(Posting::new(Command::put(to, nowhere, there.at, LEN as u32)).tcq(1));
    let completion = block_on(here.queue.next_completion(Deps::All)).unwrap();
    assert_eq!(completion.status, Err(QueueError::NoSuchTag { queue: here.queue.id(), stadd: nowhere }));
    here.post(Command::put(to, here.at, nowhere, 8));
    assert_eq!(here.queue.close(), Err(unknown.into()), "the last call can tell it");
    drop(there.queue);
    let late = Desk::at(&ranks, 0, NORMAL);
    late.post(Posting::new(Command::put(to, late.at, there.at, 8)).local(1));
    assert_eq!(late.notice().status, Err(QueueError::NotOpen(to)));
}

#[test]
fn commands_for_a_lost_rank_end() {
    let ranks = Ranks::new(3);
    let (here, there) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    let to = there.queue.id();
    // Rank 1 no longer serves requests.
    let _kept = ranks.members[1].net.hold_progress();
    for len in [8, LEN as u32] {
        here.post(Posting::new(Command::put(to, here.at, there.at, len)).local(1).tcq(1));
    }
    let contacts = reopened(&ranks, 1, &[1]);
    for rank in [0, 2] {
        ranks.members[rank].connect(&contacts).unwrap();
        ranks.members[rank].resume(&[Rank::new(1)]);
    }
    for _ in 0..2 {
        assert_eq!(here.notice().status, Err(QueueError::PeerLost(to)));
        assert_eq!(block_on(here.queue.next_completion(Deps::Ranks(&[]))).unwrap().status, Ok(()));
    }
    // Later commands fail as well.
    here.post(Posting::new(Command::put(to, here.at, there.at, 8)).local(2));
    assert_eq!(here.notice().status, Err(QueueError::PeerLost(to)));
    ranks.kill(1);
}

#[test]
fn commands_go_on_after_an_epoch() {
    let ranks = Ranks::over(3, || domain().limited(4096));
    let (here, there) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    here.fill(5);
    let put = Posting::new(Command::put(there.queue.id(), here.at, there.at, LEN as u32)).local(1).remote(2);
    here.post(put);
    ranks.members[0].drain(1, &[Rank::new(2)]);
    // Starts only after all ranks have the new contact data.
    here.post(put);
    let contacts = reopened(&ranks, 2, &[2]);
    for rank in [0, 1] {
        ranks.members[rank].connect(&contacts).unwrap();
        ranks.members[rank].resume(&[Rank::new(2)]);
    }
    for _ in 0..2 {
        assert_eq!((there.notice().edata, here.notice().status), (2, Ok(())));
    }
    assert!(there.bytes().iter().all(|byte| *byte == 5));
    ranks.kill(2);
}

#[test]
fn a_lost_ranks_command_that_was_not_begun_has_no_effect() {
    let ranks = Ranks::new(2);
    let (here, there) = (Desk::at(&ranks, 0, NORMAL), Desk::at(&ranks, 1, NORMAL));
    let net = &ranks.members[1].net;
    {
        let _bench = net.bench.lock().unwrap();
        here.post(Command::PutInline { to: there.queue.id(), bytes: Inline::word(1), at: there.at });
        assert!(becomes(|| ranks.with(1, |state| state.core.arrivals.len() == 1)));
        ranks.members[1].drain(1, &[Rank::new(0)]);
    }
    ranks.members[1].reopen().unwrap();
    ranks.members[1].resume(&[Rank::new(0)]);
    assert_eq!(there.bytes()[0], 0);
    ranks.kill(0);
}
