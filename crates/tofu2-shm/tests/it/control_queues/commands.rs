//! The effects and reports of each command, on normal queues unless stated otherwise.

use super::fixture::{Fixture, alone, completed_tags, session_of};
use fabric_offload::{
    ControlQueue,
    control_queue::{
        Blocks, Command, Inline, MrqKind, MrqNotice, Posting, QueueError, QueueId, QueueMode, QueueSpec, Stadd, Width,
    },
};
use rdma_fabric::{Amo, FabricError, Rank, Refused};

/// Runs `test` with each kind of queue as the poster: commands behave the same on all.
fn both(test: impl Fn(&Fixture, &fabric_offload::ControlQueue, Stadd) + Sync) {
    alone(|fixture| test(fixture, &fixture.normal, fixture.at));
    alone(|fixture| {
        let ahead = ControlQueue::open(&fixture.fabric, session_of(64).ahead(63)).unwrap();
        let region = fixture.fabric.alloc(8192).unwrap();
        let own = ahead.register(&region).unwrap();
        test(fixture, &ahead, own);
    });
}

fn notices(queue: &fabric_offload::ControlQueue) -> Vec<MrqNotice> {
    core::iter::from_fn(|| queue.poll_mrq().unwrap()).collect()
}

const NONE: Stadd = Stadd::fixed(0);

#[test]
fn notices_tell_what_their_kind_says() {
    both(|fixture, poster, own| {
        let (to, at) = (fixture.session.id(), fixture.there + 64);
        let both = |command: Command| Posting::new(command).local(33).remote(33);
        let ok = |kind, peer, value, local, remote| MrqNotice {
            kind,
            peer,
            edata: 33,
            value,
            local,
            remote,
            status: Ok(()),
        };
        let me = poster.id();
        fixture.set(8, 5);
        let add = Command::Atomic { to, at, width: Width::Eight, amo: Amo::Add(2) };
        poster.try_post(both(add)).unwrap();
        assert_eq!(notices(poster), [ok(MrqKind::LocalAtomic, to, 5, NONE, at)]);
        assert_eq!(notices(&fixture.session), [ok(MrqKind::RemoteAtomic, me, 0, NONE, at)]);
        poster.try_post(both(Command::get(to, at, own, 24))).unwrap();
        assert_eq!(notices(poster), [ok(MrqKind::LocalGet, to, 0, own + 24, NONE)]);
        assert_eq!(notices(&fixture.session), [ok(MrqKind::RemoteGet, me, 0, NONE, at + 24)]);
        poster.try_post(both(Command::put(to, own, at + 8, 16))).unwrap();
        assert_eq!(notices(poster), [ok(MrqKind::LocalPut, to, 0, NONE, at + 24)]);
        assert_eq!(notices(&fixture.session), [ok(MrqKind::RemotePut, me, 0, NONE, at + 24)]);
        assert_eq!(fixture.words()[8..10], [7, 7]);
        poster.try_post(both(Command::PutInline { to, bytes: Inline::new(b"abc").unwrap(), at })).unwrap();
        assert_eq!(notices(poster), [ok(MrqKind::LocalPut, to, 0, NONE, at + 3)]);
        assert_eq!(notices(&fixture.session), [ok(MrqKind::RemotePut, me, 0, NONE, at + 3)]);
        // A nop leaves no notice.
        poster.try_post(Posting::new(Command::Nop).local(1).tcq(4)).unwrap();
        assert_eq!(notices(poster), []);
        assert_eq!(poster.poll_tcq().unwrap().map(|done| (done.tag, done.status)), Some((4, Ok(()))));
    });
}

#[test]
fn atomics_do_what_they_say() {
    both(|fixture, poster, _| {
        let (to, at) = (fixture.session.id(), fixture.there);
        let armw = |width, op| Command::Atomic { to, at, width, amo: op };
        let swap = |width, expected, new| Command::Atomic { to, at, width, amo: Amo::CompareSwap { expected, new } };
        let cases = [
            (armw(Width::Eight, Amo::Swap(0xff)), 0xff),
            (armw(Width::Eight, Amo::Add(u64::MAX)), 0xfe),
            (armw(Width::Eight, Amo::Xor(0xf)), 0xf1),
            (armw(Width::Eight, Amo::And(0x30)), 0x30),
            (armw(Width::Eight, Amo::Or(1 << 40)), 1 << 40 | 0x30),
            (swap(Width::Eight, 0x30, 7), 1 << 40 | 0x30),
            (swap(Width::Eight, 1 << 40 | 0x30, 7 << 40), 7 << 40),
            // Only the low half changes. It is first in memory on little-endian machines.
            (armw(Width::Four, Amo::Add(3 << 32 | 9)), 7 << 40 | 9),
            (swap(Width::Four, 5 << 32 | 9, 8 << 32 | 4), 7 << 40 | 4),
        ];
        let mut before = 0;
        for (command, after) in cases {
            poster.try_post(Posting::new(command).local(0)).unwrap();
            let notice = poster.poll_mrq().unwrap().unwrap();
            let wide = matches!(command, Command::Atomic { width: Width::Eight, .. });
            assert_eq!(notice.value, if wide { before } else { before & 0xffff_ffff }, "{command:?}");
            if cfg!(target_endian = "little") {
                assert_eq!(fixture.word(0), after, "{command:?}");
            }
            before = fixture.word(0);
        }
    });
}

#[test]
fn completions_come_in_posting_order() {
    both(|fixture, poster, own| {
        for tag in 0..40 {
            let posting = Posting::new(Command::put(fixture.session.id(), own, fixture.there, 8));
            poster.try_post(if tag % 3 == 0 { posting } else { posting.tcq(tag) }).unwrap();
        }
        let tags = completed_tags(poster);
        assert_eq!(tags, (0..40).filter(|tag| tag % 3 != 0).collect::<Vec<_>>());
    });
}

/// Errors in the poster's local memory are reported by the completion, errors at the target by the
/// notice. Later commands proceed.
#[test]
fn errors_show_where_they_belong() {
    both(|fixture, poster, own| {
        let (to, me) = (fixture.session.id(), poster.id());
        let at = fixture.there;
        let stadd = own + 8190;
        poster.try_post(Posting::new(Command::put(to, stadd, at, 8)).tcq(1).local(1)).unwrap();
        let beyond = QueueError::OutOfBounds { queue: me, stadd, len: 8, registered: 8192 };
        assert_eq!(poster.poll_tcq().unwrap().map(|done| done.status), Some(Err(beyond)));
        let unknown = Stadd::new(0x9_0000, 0);
        poster.try_post(Posting::new(Command::get(to, at, unknown, 8)).tcq(1)).unwrap();
        let no_tag = QueueError::NoSuchTag { queue: me, stadd: unknown };
        assert_eq!(poster.poll_tcq().unwrap().map(|done| done.status), Some(Err(no_tag)));
        assert_eq!(poster.poll_mrq(), Ok(None));

        let other = QueueId::new(Rank::new(0), 3, 11, 0);
        let nobody = QueueId::new(Rank::new(99), 0, 0, 0);
        let word = |to, at| Command::PutInline { to, bytes: Inline::word(1), at };
        let add = |at, width| Command::Atomic { to, at, width, amo: Amo::Add(1) };
        let cases = [
            (word(other, at), QueueError::NotOpen(other)),
            (word(nobody, at), QueueError::NotOpen(nobody)),
            (word(to, unknown), QueueError::NoSuchTag { queue: to, stadd: unknown }),
            (word(to, at + 8185), QueueError::OutOfBounds { queue: to, stadd: at + 8185, len: 8, registered: 8192 }),
            (add(at + 4, Width::Eight), QueueError::Misaligned { queue: to, stadd: at + 4, width: 8 }),
            (add(at + 2, Width::Four), QueueError::Misaligned { queue: to, stadd: at + 2, width: 4 }),
        ];
        for (command, error) in cases {
            // Posted again below without a notice, the command's error is reported by the next
            // call.
            poster.try_post(Posting::new(command).local(5).remote(5).sps(0).tcq(3)).unwrap();
            let notice = poster.poll_mrq().unwrap().unwrap();
            assert_eq!((notice.status, notice.edata, Some(notice.peer)), (Err(error), 5, command.target()));
            assert_eq!(poster.poll_tcq().unwrap().map(|done| (done.tag, done.status)), Some((3, Ok(()))));
            poster.try_post(Posting::new(command)).unwrap();
            assert_eq!(poster.poll_mrq(), Err(error.into()));
            assert_eq!(poster.poll_mrq(), Ok(None));
        }
        assert_eq!(fixture.session.poll_mrq(), Ok(None), "nothing was done at the target");
    });
}

#[test]
fn a_failed_put_advances_nothing() {
    alone(|fixture| {
        fixture.queue(fixture.store(0, 1));
        let (to, bytes) = (fixture.session.id(), Inline::word(1));
        let wrong = Command::PutInline { to, bytes, at: Stadd::fixed(99) };
        fixture.normal.try_post(Posting::new(wrong).sps(1).local(0)).unwrap();
        assert_eq!(fixture.read(), 0);
    });
}

#[test]
fn read_only_memory_refuses_writes_of_others_and_atomics() {
    both(|fixture, poster, own| {
        let (to, at) = (fixture.session.id(), fixture.there);
        let read_only = QueueError::ReadOnly { queue: to, stadd: at };
        let word = Command::PutInline { to, bytes: Inline::word(6), at };
        let add = Command::Atomic { to, at, width: Width::Eight, amo: Amo::Add(1) };
        fixture.session.set_read_only(at, true).unwrap();
        for command in [word, add] {
            poster.try_post(Posting::new(command).local(0)).unwrap();
            assert_eq!(poster.poll_mrq().unwrap().map(|notice| notice.status), Some(Err(read_only)));
        }
        poster.try_post(Posting::new(Command::get(to, at, own, 8)).local(0)).unwrap();
        assert_eq!(poster.poll_mrq().unwrap().map(|notice| notice.status), Some(Ok(())));
        fixture.session.set_read_only(at, false).unwrap();
        poster.try_post(Posting::new(word).local(0)).unwrap();
        assert_eq!(poster.poll_mrq().unwrap().map(|notice| notice.status), Some(Ok(())));
        assert_eq!(fixture.word(0), 6);
        let unknown = Stadd::fixed(200);
        let error = QueueError::NoSuchTag { queue: to, stadd: unknown };
        assert_eq!(fixture.session.set_read_only(unknown, true), Err(error.into()));
    });
}

#[test]
fn numbers_out_of_range_are_refused_at_once() {
    alone(|fixture| {
        let to = fixture.session.id();
        let refuse = |queue: &fabric_offload::ControlQueue, posting: Posting, wanted: (u64, u64)| {
            let refused = queue.try_post(posting);
            let Err(Refused::Failed(FabricError::Queue(error), ())) = refused else { panic!("{refused:?}") };
            let QueueError::Limit { value, limit, .. } = *error else { panic!("{error:?}") };
            assert_eq!((value, limit), wanted);
        };
        let longest = ControlQueue::limits(&fixture.fabric).longest;
        assert_eq!(longest, 16_777_215);
        let put = |len, blocks| Command::Put { to, from: fixture.at, at: fixture.there, len, blocks };
        refuse(&fixture.normal, put(longest + 1, Blocks::ONE).into(), (longest as u64 + 1, longest.into()));
        refuse(&fixture.normal, put(1, Blocks { count: 0, stride: 1 }).into(), (0, u32::MAX.into()));
        for queue in [&fixture.normal, &fixture.session] {
            refuse(queue, put(1, Blocks { count: 2048, stride: 1 }).into(), (2048, 2047));
        }
        assert_eq!(fixture.normal.pointers().write, 0);
    });
}

/// A ring full of delayed starts refuses further posts, and nothing drains it.
#[test]
fn a_normal_ring_full_of_delayed_starts_is_busy() {
    alone(|fixture| {
        let queue = ControlQueue::open(&fixture.fabric, QueueSpec::new(QueueMode::Normal).depth(8)).unwrap();
        (0..7).for_each(|_| queue.try_post(Posting::new(Command::Nop).delayed().tcq(1)).unwrap());
        assert!(matches!(queue.try_post(Command::Nop.into()), Err(Refused::Full(()))));
        assert_eq!(queue.poll_tcq(), Ok(None));
        let error = tofu2_shm::block_on(queue.post(Command::Nop.into(), rdma_fabric::Deps::All));
        assert!(matches!(error, Err(FabricError::Deadlock { .. })), "{error:?}");
        let pointers = queue.pointers();
        assert_eq!((pointers.read, pointers.write, pointers.scheduled), (0, 7, 7));
        assert_eq!(queue.close(), Ok(7));
    });
}

/// When an MRQ overflows, earlier notices are delivered, then the error, and no command is executed
/// any longer.
#[test]
fn an_overflowing_receive_queue_stops_its_queue() {
    alone(|fixture| {
        let spec = QueueSpec { mrq_depth: 4, ..QueueSpec::new(QueueMode::Normal) };
        let small = ControlQueue::open(&fixture.fabric, spec).unwrap();
        let region = fixture.fabric.alloc(64).unwrap();
        let at = small.register(&region).unwrap();
        let overflow = QueueError::MrqOverflow { queue: small.id(), depth: 4 };
        for number in 0..5u8 {
            let command = Command::PutInline { to: small.id(), bytes: Inline::word(u64::from(number) + 1), at };
            fixture.normal.try_post(Posting::new(command).remote(number).local(number)).unwrap();
            let status = fixture.normal.poll_mrq().unwrap().unwrap().status;
            assert_eq!(status, if number < 4 { Ok(()) } else { Err(overflow) });
        }
        let edata: Vec<_> = (0..4).map(|_| small.poll_mrq().unwrap().unwrap().edata).collect();
        assert_eq!(edata, [0, 1, 2, 3]);
        assert_eq!(small.poll_mrq(), Err(overflow.into()));
        assert_eq!(small.poll_mrq(), Err(QueueError::Stopped(small.id()).into()));
        let command = Command::PutInline { to: small.id(), bytes: Inline::word(9), at };
        fixture.normal.try_post(Posting::new(command).local(0)).unwrap();
        let stopped = QueueError::Stopped(small.id());
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Err(stopped));
        let mut word = [0u64];
        let span = region.span(&fixture.fabric, 0, 1).unwrap();
        fixture.fabric.read(&span, &mut word).unwrap();
        assert_eq!(word, [4], "nothing was done when there was no room");
    });
}
