//! Session mode, row by row: the questions that measurements on the public simulator answered.

use super::script::{AT, OWN, Reports, Seen, Step, credit, nop, run, sender, session, word};
use crate::start::{NETWORKS, fx100};
use rdma_fabric::{
    Amo, FabricError,
    control_queue::{
        Blocks, Command, Inline, MrqKind, Pointers, Posting, QueueError, QueueId, QueueMode, QueueSpec, Width,
    },
};
use tofu2_virt::Job;

fn last(seen: Vec<Seen>) -> Seen {
    seen.into_iter().last().unwrap()
}

/// Returns jobs over both networks, with the sender on the same node and on another.
fn jobs<'a>() -> impl Iterator<Item = (u32, Job<'a>)> {
    [1, 2].into_iter().flat_map(|ranks| NETWORKS.map(|network| (ranks, fx100(ranks as usize).network(network))))
}

fn scheduled(steps: &[Step]) -> u64 {
    let mut all: Vec<u64> = jobs().map(|(_, job)| last(run(&job, session(2048), steps)).pointers.scheduled).collect();
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

#[test]
fn initial_state_nothing_runs_even_if_posted() {
    let seen = last(run(&fx100(1), session(16), &[Step::Own(nop(0)), Step::Own(nop(1))]));
    assert_eq!(seen.pointers, Pointers { read: 0, write: 2, scheduled: 0 });
    assert_eq!(seen.own, Reports::default());
}

#[test]
fn unit_of_sps_is_slots() {
    let (at, eight, four) = (AT + 512, Width::Eight, Width::Four);
    let inline = |len: usize| Command::PutInline { to: OWN, bytes: Inline::new(&vec![1; len]).unwrap(), at };
    let swap = |width| Command::Atomic { to: OWN, at, width, amo: Amo::CompareSwap { expected: 0, new: 1 } };
    let armw = |width| Command::Atomic { to: OWN, at, width, amo: Amo::Add(1) };
    let one = [Command::put(OWN, AT, at, 64), Command::get(OWN, AT, at, 64), armw(four), armw(eight), swap(four)];
    let one = one.into_iter().chain([Command::Nop, inline(8)]).map(|command| (command, 1));
    for (command, slots) in one.chain([(inline(9), 2), (inline(32), 2), (swap(eight), 2)]) {
        let seen = run(&fx100(1), session(16), &[Step::Own(command.into()), credit(1), credit(1)]);
        assert_eq!(seen[0].pointers.write, slots, "{command:?}");
        let read = [&seen[1], &seen[2]].map(|seen| seen.pointers.read);
        assert_eq!(read, if slots == 1 { [1, 1] } else { [0, 2] }, "{command:?}");
    }
}

#[test]
fn a_two_slot_command_with_one_credit_does_not_start() {
    let bytes = Inline::new(&[7; 16]).unwrap();
    let command = Posting::new(Command::PutInline { to: OWN, bytes, at: AT }).tcq(5);
    let seen = run(&fx100(1), session(16), &[Step::Own(command), Step::Own(nop(6)), credit(1), credit(1), credit(1)]);
    let done = seen.iter().map(|seen| seen.own.completions.iter().map(|c| c.tag).collect::<Vec<_>>());
    assert_eq!(done.collect::<Vec<_>>(), [vec![], vec![], vec![], vec![5], vec![6]]);
}

#[test]
fn sps_width_is_four_bits_and_zero_advances_nothing() {
    for slots in [0, 1, 15] {
        assert_eq!(scheduled(&[credit(slots)]), u64::from(slots));
    }
    let seen = last(run(&fx100(1), session(16), &[credit(16)]));
    let limit = QueueError::Limit { queue: sender(1), what: "the SPS", value: 16, limit: 15 };
    assert_eq!(seen.refused, Some(Some(limit.into())));
}

/// A table of commands with an SPS, and the number of slots by which each of them advances the
/// queue.
#[test]
fn only_puts_advance_and_each_of_their_blocks_once() {
    let at = AT + 512;
    let blocks = Blocks { count: 5, stride: 4096 };
    for (command, sps, slots) in [
        (Command::put(OWN, AT, at, 8), 3, 3),
        (word(OWN, 5, at), 3, 3),
        (Command::PutInline { to: OWN, bytes: Inline::new(&[1; 32]).unwrap(), at }, 3, 3),
        (Command::get(OWN, AT, at, 8), 3, 0),
        (Command::Atomic { to: OWN, at, width: Width::Eight, amo: Amo::Add(1) }, 3, 0),
        (Command::Atomic { to: OWN, at, width: Width::Four, amo: Amo::CompareSwap { expected: 0, new: 1 } }, 3, 0),
        (Command::Nop, 3, 0),
        // Puts of several packets, of no bytes, and of several blocks.
        (Command::put(OWN, AT, AT + 4096, 1 << 20), 2, 2),
        (Command::put(OWN, AT, AT, 0), 4, 4),
        (Command::Put { to: OWN, from: AT, at: AT + 8192, len: 3000, blocks }, 2, 10),
    ] {
        assert_eq!(scheduled(&[Step::Send(Posting::new(command).sps(sps))]), slots, "{command:?}");
    }
}

#[test]
fn arrival_before_posting_is_kept() {
    let seen = run(&fx100(2), session(16), &[credit(2), Step::Own(nop(0)), Step::Own(nop(1)), Step::Own(nop(2))]);
    assert_eq!(seen[3].pointers, Pointers { read: 2, write: 3, scheduled: 2 });
}

#[test]
fn credit_larger_than_the_ring_wraps() {
    let steps = vec![credit(15); 400];
    let seen = last(run(&fx100(1), session(2048), &steps));
    assert_eq!(seen.pointers.scheduled, 1904);
    // In checking mode this is an error, and the queue stops.
    let seen = run(&fx100(1), session(16).checked(true), &[credit(15), credit(1), credit(1)]);
    assert_eq!((seen[0].pointers.scheduled, &seen[0].own.errors[..]), (15, &[][..]));
    let overrun = QueueError::CreditOverrun { queue: OWN, read: 0, scheduled: 16, depth: 16 };
    let stopped = FabricError::from(QueueError::Stopped(OWN));
    assert_eq!(seen[1].own.errors, [overrun.into(), stopped.clone(), stopped.clone()]);
    assert_eq!(seen[2].sent.errors, [stopped]);
}

#[test]
fn a_put_to_yourself_with_sps_works() {
    let own = Posting::new(word(OWN, 1, AT)).sps(4);
    let mut steps = vec![Step::Own(own)];
    steps.extend((0..8).map(|tag| Step::Own(nop(tag))));
    steps.push(credit(2));
    // Two credits, one used, four more: five nops.
    assert_eq!(last(run(&fx100(1), session(64), &steps)).pointers, Pointers { read: 6, write: 9, scheduled: 6 });
}

#[test]
fn sps_to_a_normal_queue_is_ignored() {
    for checked in [false, true] {
        let normal = QueueSpec::new(QueueMode::Normal).checked(checked);
        let put = Posting::new(word(OWN, 9, AT + 8)).sps(3).local(1);
        let unasked = Posting::new(word(OWN, 10, AT + 16)).sps(3);
        let seen = run(&fx100(2), normal, &[Step::Send(put), Step::Send(unasked)]);
        assert_eq!((seen[1].words[1], seen[1].words[2]), (9, 10));
        assert_eq!(seen[1].pointers, Pointers { read: 0, write: 0, scheduled: 0 });
        let ignored = QueueError::CreditIgnored { queue: sender(2), sps: 3 };
        let notice = &seen[0].sent.notices[0];
        assert_eq!((notice.kind, notice.status), (MrqKind::LocalPut, if checked { Err(ignored) } else { Ok(()) }));
        let told: Vec<_> = checked.then(|| FabricError::from(ignored)).into_iter().collect();
        assert_eq!(seen[1].sent.errors, told);
    }
}

#[test]
fn any_queue_may_send_credit() {
    let steps = [Step::Send(Posting::new(Command::put(OWN, AT, AT, 0)).sps(3))];
    for mode in [QueueMode::Normal, QueueMode::Exclusive, QueueMode::Session] {
        let sender = QueueSpec::new(mode);
        let sender = if mode == QueueMode::Session { sender.ahead(1) } else { sender };
        for (_, job) in jobs() {
            let run = job
                .run(&async |fabric| super::script::script(fabric, session(16), sender, steps.to_vec()).await)
                .unwrap();
            assert_eq!(run.outs[0][0].pointers.scheduled, 3, "{mode:?}");
        }
    }
}

/// A released command forwards the bytes that have just arrived, and the notice precedes the
/// released command.
#[test]
fn order_at_the_receiver_is_data_notice_advance() {
    for (ranks, job) in jobs() {
        let to: QueueId = sender(ranks);
        let forward = Posting::new(Command::put(OWN, AT + 8, AT + 16, 8)).remote(2);
        let arrival = Posting::new(word(OWN, 77, AT + 8)).sps(1).remote(1);
        let seen = run(&job, session(16), &[Step::Own(forward), Step::Send(arrival)]);
        assert_eq!(seen[1].words[2], 77);
        let edata: Vec<u8> = seen[1].own.notices.iter().map(|notice| notice.edata).collect();
        assert_eq!(edata, [1, 2]);
        assert_eq!(seen[1].own.notices[0].peer, to);
    }
}

#[test]
fn a_full_session_ring_is_busy_like_a_normal_one() {
    let steps: Vec<Step> = (0..16).map(|tag| Step::Own(nop(tag))).chain([credit(1), Step::Own(nop(16))]).collect();
    let seen = run(&fx100(1), session(16), &steps);
    assert!(seen[..15].iter().all(|seen| seen.refused.is_none()));
    assert_eq!(seen[15].refused, Some(None));
    assert_eq!((seen[17].refused.clone(), seen[17].pointers.write), (None, 16));
}
