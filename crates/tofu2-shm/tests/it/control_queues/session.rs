//! Session mode: one test for each row of the table in the contract's source, named after the row.

use super::fixture::{alone, alone_with, completed_tags, session_of};
use fabric_offload::{
    ControlQueue,
    control_queue::{Blocks, Command, Inline, MrqKind, Posting, QueueError, QueueMode, QueueSpec, Width},
};
use rdma_fabric::{Amo, FabricError, Refused};

fn is_full(posted: Result<(), Refused<()>>) -> bool {
    matches!(posted, Err(Refused::Full(())))
}

#[test]
fn initially_nothing_runs_even_if_posted() {
    alone(|fixture| {
        fixture.queue(fixture.store(0, 7));
        let pointers = fixture.session.pointers();
        assert_eq!((pointers.read, pointers.write, pointers.scheduled), (0, 1, 0));
        assert_eq!(fixture.word(0), 0);
        fixture.advance(1);
        assert_eq!((fixture.word(0), fixture.read()), (7, 1));
    });
}

#[test]
fn the_unit_is_the_slot() {
    alone(|fixture| {
        let to = fixture.session.id();
        let (one, two) = (fixture.there, fixture.there + 512);
        let swap = |width| Command::Atomic { to, at: one, width, amo: Amo::CompareSwap { expected: 0, new: 0 } };
        let commands = [
            (Command::put(to, one, two, 64), 1),
            (Command::get(to, one, two, 64), 1),
            (Command::Atomic { to, at: one, width: Width::Four, amo: Amo::Add(0) }, 1),
            (Command::Atomic { to, at: one, width: Width::Eight, amo: Amo::Or(0) }, 1),
            (swap(Width::Four), 1),
            (swap(Width::Eight), 2),
            (Command::Nop, 1),
            (fixture.store(3, 1), 1),
            (fixture.store_long(3, 1), 2),
        ];
        commands.iter().for_each(|&(command, _)| fixture.queue(command));
        let mut read = 0;
        for (command, slots) in commands {
            for slot in 1..=slots {
                fixture.advance(1);
                let done = if slot == slots { slots } else { 0 };
                assert_eq!(fixture.read(), read + done, "{command:?} after {slot} slots");
            }
            read += slots;
        }
    });
}

#[test]
fn a_command_of_two_slots_does_not_start_with_one_credit() {
    alone(|fixture| {
        fixture.queue(fixture.store_long(0, 5));
        fixture.advance(1);
        assert_eq!((fixture.read(), fixture.word(0)), (0, 0));
        fixture.advance(1);
        assert_eq!((fixture.read(), fixture.word(0), fixture.word(1)), (2, 5, 6));
    });
}

#[test]
fn sps_is_0_to_15_and_0_advances_nothing() {
    alone(|fixture| {
        (0..16).for_each(|index| fixture.queue(fixture.store(index, 1)));
        fixture.advance(0);
        assert_eq!(fixture.read(), 0);
        fixture.advance(15);
        assert_eq!(fixture.read(), 15);
        let command = fixture.store(0, 0);
        let refused = fixture.normal.try_post(Posting::new(command).sps(16));
        let Err(Refused::Failed(FabricError::Queue(error), ())) = refused else { panic!("{refused:?}") };
        assert!(matches!(*error, QueueError::Limit { value: 16, limit: 15, .. }), "{error:?}");
    });
}

#[test]
fn puts_advance_and_gets_atomics_and_nops_do_not() {
    alone(|fixture| {
        (0..9).for_each(|_| fixture.queue(Command::Nop));
        let (to, at) = (fixture.session.id(), fixture.there);
        let others = [
            Command::get(to, at, fixture.at, 8),
            Command::Atomic { to, at, width: Width::Eight, amo: Amo::Add(1) },
            Command::Atomic { to, at, width: Width::Eight, amo: Amo::CompareSwap { expected: 0, new: 1 } },
            Command::Nop,
        ];
        for command in others {
            fixture.normal.try_post(Posting::new(command).sps(1)).unwrap();
            assert_eq!(fixture.read(), 0, "{command:?}");
        }
        let puts = [Command::put(to, fixture.at, at, 8), fixture.store(0, 1), fixture.store_long(0, 1)];
        for (done, command) in puts.into_iter().enumerate() {
            fixture.normal.try_post(Posting::new(command).sps(1)).unwrap();
            assert_eq!(fixture.read(), done as u64 + 1, "{command:?}");
        }
    });
}

#[test]
fn a_large_put_advances_once() {
    alone(|fixture| {
        (0..4).for_each(|_| fixture.queue(Command::Nop));
        let large = Command::put(fixture.session.id(), fixture.at, fixture.there, 8000);
        fixture.normal.try_post(Posting { mtu: 256, ..Posting::new(large).sps(1) }).unwrap();
        assert_eq!(fixture.read(), 1);
    });
}

#[test]
fn a_put_of_no_bytes_advances() {
    alone(|fixture| {
        fixture.queue(fixture.store(0, 3));
        fixture.advance(1);
        assert_eq!((fixture.read(), fixture.word(0)), (1, 3));
    });
}

#[test]
fn a_put_of_n_blocks_advances_n_times() {
    alone(|fixture| {
        (0..8).for_each(|index| fixture.queue(fixture.store(100 + index, 1)));
        (0..5).for_each(|index| fixture.set(2 * index, 10 + index as u64));
        let blocks = Blocks { count: 5, stride: 16 };
        let (from, at) = (fixture.at, fixture.there + 1024);
        let command = Command::Put { to: fixture.session.id(), from, at, len: 8, blocks };
        fixture.normal.try_post(Posting::new(command).sps(1).tcq(9)).unwrap();
        assert_eq!(fixture.read(), 5);
        let tags = completed_tags(&fixture.normal);
        assert_eq!(tags, [9; 5]);
        (0..5).for_each(|index| assert_eq!(fixture.word(128 + 2 * index), 10 + index as u64));
    });
}

#[test]
fn credit_that_arrives_before_posting_is_kept() {
    alone(|fixture| {
        fixture.advance(3);
        assert_eq!(fixture.session.pointers().scheduled, 3);
        for index in 0..4 {
            fixture.queue(fixture.store(index, 1));
            assert_eq!(fixture.read(), (index + 1).min(3));
        }
    });
}

#[test]
fn credit_larger_than_the_ring_wraps() {
    alone(|fixture| {
        (0..400).for_each(|_| fixture.advance(15));
        assert_eq!(fixture.session.pointers().scheduled, 6000 % 2048);
        let mut posted = 0;
        while fixture.session.try_post(Command::Nop.into()).is_ok() {
            posted += 1;
        }
        // Executed commands made room; the other commands fill the ring.
        assert_eq!((fixture.read(), posted), (1904, 1904 + 2047));
    });
}

#[test]
fn credit_a_whole_ring_ahead_is_an_error_where_that_is_checked() {
    alone_with(session_of(16).checked(true), |fixture| {
        fixture.advance(15);
        assert_eq!(fixture.session.poll_tcq(), Ok(None));
        fixture.advance(1);
        let overrun = QueueError::CreditOverrun { queue: fixture.session.id(), read: 0, scheduled: 16, depth: 16 };
        assert_eq!(fixture.session.poll_tcq(), Err(overrun.into()));
        let stopped = QueueError::Stopped(fixture.session.id());
        assert_eq!(fixture.session.poll_mrq(), Err(stopped.into()));
        let refused = fixture.session.try_post(Command::Nop.into());
        let Err(Refused::Failed(FabricError::Queue(error), ())) = refused else { panic!("{refused:?}") };
        assert!(matches!(*error, QueueError::CreditOverrun { .. }), "{error:?}");
    });
}

#[test]
fn a_put_to_oneself_gives_credit() {
    alone(|fixture| {
        fixture.advance(2);
        fixture.queue(Posting::new(fixture.store(0, 1)).sps(4));
        (0..6).for_each(|_| fixture.queue(Command::Nop));
        // 2 credits, 1 used, 4 more: 5 for the nops.
        assert_eq!(fixture.read(), 6);
    });
}

#[test]
fn a_normal_queue_ignores_advances() {
    alone(|fixture| {
        let command = Command::put(fixture.normal.id(), fixture.at, fixture.at + 800, 8);
        fixture.set(0, 5);
        fixture.normal.try_post(Posting::new(command).sps(3).local(1)).unwrap();
        assert_eq!(fixture.word(100), 5);
        let notice = fixture.normal.poll_mrq().unwrap().unwrap();
        assert_eq!((notice.kind, notice.status), (MrqKind::LocalPut, Ok(())));
    });
}

#[test]
fn a_checked_poster_learns_of_advances_that_move_nothing() {
    alone(|fixture| {
        let spec = QueueSpec::new(QueueMode::Exclusive).checked(true);
        let checked = ControlQueue::open(&fixture.fabric, spec).unwrap();
        let ignored = QueueError::CreditIgnored { queue: checked.id(), sps: 3 };
        let nop = checked.try_post(Posting::new(Command::Nop).sps(3));
        assert!(matches!(nop, Err(Refused::Failed(FabricError::Queue(error), ())) if *error == ignored));
        let bytes = Inline::word(4);
        let command = Command::PutInline { to: fixture.normal.id(), bytes, at: fixture.at };
        checked.try_post(Posting::new(command).sps(3).local(8)).unwrap();
        assert_eq!(checked.poll_mrq().unwrap().map(|notice| (notice.edata, notice.status)), Some((8, Err(ignored))));
        assert_eq!(fixture.word(0), 4, "everything else was done");
        // No notice was requested: the next call reports the error, once.
        checked.try_post(Posting::new(command).sps(3)).unwrap();
        assert_eq!(checked.poll_tcq(), Err(ignored.into()));
        assert_eq!(checked.poll_tcq(), Ok(None));
    });
}

#[test]
fn any_queue_may_send_credit() {
    alone(|fixture| {
        let other = ControlQueue::open(&fixture.fabric, session_of(8).ahead(4)).unwrap();
        fixture.queue(fixture.store(0, 1));
        other.try_post(Posting::new(fixture.store(9, 9)).sps(1)).unwrap();
        assert_eq!((fixture.word(9), fixture.word(0)), (9, 1));
    });
}

#[test]
fn the_data_come_before_the_advance() {
    alone(|fixture| {
        // The released command forwards the data that has just arrived.
        let forward = Command::put(fixture.session.id(), fixture.there, fixture.there + 800, 8);
        fixture.queue(forward);
        fixture.normal.try_post(Posting::new(fixture.store(0, 42)).sps(1)).unwrap();
        assert_eq!(fixture.word(100), 42);
    });
}

#[test]
fn a_full_session_ring_is_busy() {
    alone_with(session_of(8), |fixture| {
        (0..7).for_each(|_| fixture.queue(Command::Nop));
        assert!(is_full(fixture.session.try_post(Command::Nop.into())));
        fixture.advance(1);
        fixture.queue(Command::Nop);
        assert!(is_full(fixture.session.try_post(Command::Nop.into())));
        // A command of two slots does not fit into one.
        fixture.advance(1);
        assert!(is_full(fixture.session.try_post(fixture.store_long(0, 1).into())));
    });
}

#[test]
fn the_offset_may_stand_ahead_at_first() {
    alone_with(session_of(8).ahead(2), |fixture| {
        (0..4).for_each(|index| fixture.queue(fixture.store(index, 1)));
        assert_eq!((fixture.read(), fixture.word(1), fixture.word(2)), (2, 1, 0));
    });
}

#[test]
fn a_counting_trigger_counts() {
    alone(|fixture| {
        (0..3).for_each(|_| fixture.queue(Command::Nop));
        fixture.queue(fixture.store(0, 1));
        for arrivals in 1..=4 {
            fixture.advance(1);
            assert_eq!(fixture.word(0), u64::from(arrivals == 4));
        }
    });
}

#[test]
fn a_delayed_start_waits_for_the_next_posting() {
    alone(|fixture| {
        fixture.advance(2);
        fixture.queue(Posting::new(fixture.store(0, 1)).delayed());
        assert_eq!(fixture.read(), 0);
        fixture.queue(fixture.store(1, 2));
        assert_eq!((fixture.read(), fixture.word(0), fixture.word(1)), (2, 1, 2));
    });
}

/// Two queues that release each other endlessly do not keep any caller busy forever.
#[test]
fn a_cycle_of_queues_runs_on_and_captures_nobody() {
    alone(|fixture| {
        let other = ControlQueue::open(&fixture.fabric, session_of(8)).unwrap();
        let region = fixture.fabric.alloc(64).unwrap();
        let there = other.register(&region).unwrap();
        // Each command of one queue releases one of the other, far more than one call executes.
        let nothing = |to, at| Command::PutInline { to, bytes: Inline::new(&[]).unwrap(), at };
        let ping = Posting::new(nothing(other.id(), there)).sps(1);
        let pong = Posting::new(nothing(fixture.session.id(), fixture.there)).sps(1);
        let (mut pings, mut pongs, mut calls) = (0u64, 0u64, 0);
        fixture.advance(1);
        while pings < 20_000 {
            while fixture.session.try_post(ping).is_ok() {
                pings += 1;
            }
            while other.try_post(pong).is_ok() {
                pongs += 1;
            }
            calls += 1;
            assert!(calls < 100_000, "the cycle stands still");
        }
        assert!(pings.abs_diff(pongs) < 4096);
    });
}
