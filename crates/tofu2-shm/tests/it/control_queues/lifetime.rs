//! Opening, registering and closing of queues, and the state afterwards.

use super::fixture::{alone, session_of};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueError, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{FabricError, OwnedMemory, Uses};
use tofu2_shm::QueueMachine;

fn word(to: &fabric_offload::ControlQueue, at: Stadd) -> Command {
    Command::PutInline { to: to.id(), bytes: Inline::word(1), at }
}

fn is_beyond_a_limit(error: FabricError) -> bool {
    matches!(error, FabricError::Queue(error) if matches!(*error, QueueError::Limit { .. }))
}

#[test]
fn a_node_has_as_many_queues_as_its_machine() {
    for machine in [QueueMachine::TOFU2, QueueMachine::TOFUD] {
        let threads = checks::jobs::threads(1).segment_bytes(16 << 20).queue_machine(machine);
        threads
            .run_with(|fabric| {
                let all = u32::from(machine.engines) * u32::from(machine.queues_per_engine);
                assert_eq!(ControlQueue::limits(&fabric).free, all);
                let spec = QueueSpec { mrq_depth: 2, ..session_of(2) };
                let sessions = u32::from(machine.engines) * machine.session.count_ones();
                let open: Vec<_> = (0..sessions).map(|_| ControlQueue::open(&fabric, spec).unwrap()).collect();
                assert_eq!(ControlQueue::open(&fabric, spec).unwrap_err(), QueueError::NoneFree(sessions).into());
                assert_eq!(ControlQueue::limits(&fabric).free, all - sessions);
                let engines: Vec<u8> = open.iter().map(|queue| queue.id().engine()).collect();
                assert!(engines.starts_with(&[0, 1, 2, 3]), "where fewest are open");
                let one = open[3].id();
                let again = QueueSpec { engine: Some(one.engine()), number: Some(one.number()), ..spec };
                assert_eq!(ControlQueue::open(&fabric, again).unwrap_err(), QueueError::InUse(one).into());
                drop(open);
                assert_eq!(ControlQueue::limits(&fabric).free, all);
                assert_eq!(ControlQueue::open(&fabric, again).unwrap().id(), one);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn tofud_keeps_some_queues_for_sessions() {
    let threads = checks::jobs::threads(1).segment_bytes(4 << 20).queue_machine(QueueMachine::TOFUD);
    let run = threads.run_with(|fabric| {
        let at = |mode, number| QueueSpec { number: Some(number), mrq_depth: 2, ..QueueSpec::new(mode).on(5).depth(2) };
        assert!(ControlQueue::open(&fabric, at(QueueMode::Session, 3)).is_ok());
        for spec in [at(QueueMode::Session, 4), at(QueueMode::Normal, 1), at(QueueMode::Exclusive, 0)] {
            assert!(ControlQueue::open(&fabric, spec).is_err_and(is_beyond_a_limit), "{spec:?}");
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn normal_queues_share_a_control_queue() {
    alone(|fixture| {
        let spec = QueueSpec { mrq_depth: 2, ..QueueSpec::new(QueueMode::Normal).on(2).depth(2) };
        let free = ControlQueue::limits(&fixture.fabric).free;
        let open: Vec<_> = (0..9).map(|_| ControlQueue::open(&fixture.fabric, spec).unwrap()).collect();
        let names: Vec<_> = open.iter().map(|queue| (queue.id().number(), queue.id().context())).collect();
        let first = names[0].0;
        assert_eq!(names[..8], [0, 1, 2, 3, 4, 5, 6, 7].map(|context| (first, context)));
        assert_eq!(names[8], (first + 1, 0));
        assert_eq!(ControlQueue::limits(&fixture.fabric).free, free - 2);
        let exclusive = QueueSpec { number: Some(first), mode: QueueMode::Exclusive, ..spec };
        let refused = ControlQueue::open(&fixture.fabric, exclusive).unwrap_err();
        assert!(matches!(refused, FabricError::Queue(error) if matches!(*error, QueueError::InUse(_))));
    });
}

#[test]
fn wrong_sizes_are_refused() {
    alone(|fixture| {
        let spec = session_of(8);
        let wrong = [
            spec.depth(0),
            spec.depth(1),
            spec.depth(3),
            spec.depth(1 << 17),
            spec.ahead(8),
            spec.on(4),
            QueueSpec { mrq_depth: 0, ..spec },
            QueueSpec { mrq_depth: 6, ..spec },
            QueueSpec { number: Some(1), ..spec },
            QueueSpec { number: Some(12), ..spec.on(1) },
            QueueSpec { number: Some(255), ..spec.on(255) },
        ];
        for spec in wrong {
            assert!(ControlQueue::open(&fixture.fabric, spec).is_err_and(is_beyond_a_limit), "{spec:?}");
        }
    });
}

#[test]
fn queues_take_memory_and_give_it_back() {
    checks::jobs::threads(1)
        .segment_bytes(1 << 20)
        .run_with(|fabric| {
            for _ in 0..20 {
                let mut open = Vec::new();
                let error = loop {
                    match ControlQueue::open(&fabric, session_of(1 << 12)) {
                        Ok(queue) => open.push(queue),
                        Err(error) => break error,
                    }
                };
                assert!(matches!(error, FabricError::OutOfMemory(_)), "{error}");
                assert!(!open.is_empty() && ControlQueue::limits(&fabric).free == 48 - open.len() as u32);
            }
            // No region key gives access to a queue's memory.
            let queue = ControlQueue::open(&fabric, session_of(8)).unwrap();
            for index in 0..4096 {
                for generation in [1, 3, 5, 41, 43] {
                    let region = rdma_fabric::RegionKey { index, generation };
                    let addr = rdma_fabric::RemoteAddr { rank: fabric.rank(), region, offset: 0 };
                    assert!(fabric.provider().resolve(addr, 0, 1, 1).is_err());
                }
            }
            drop(queue);
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_same_region_has_the_same_address() {
    alone(|fixture| {
        let region = fixture.fabric.alloc(64).unwrap();
        let at = fixture.session.register(&region).unwrap();
        assert_eq!(fixture.session.register(&region), Ok(at));
        assert!(at.tag() >= Stadd::FIRST_AUTOMATIC);
        assert_eq!(fixture.session.register_fixed(&region, 7), Ok(Stadd::fixed(7)));
        let in_use = QueueError::TagInUse { queue: fixture.session.id(), tag: 7 };
        assert_eq!(fixture.session.register_fixed(&region, 7), Err(in_use.into()));
        fixture.session.deregister(at).unwrap();
        let gone = QueueError::NoSuchTag { queue: fixture.session.id(), stadd: at };
        assert_eq!(fixture.session.deregister(at), Err(gone.into()));
        fixture.normal.try_post(Posting::new(word(&fixture.session, at)).local(0)).unwrap();
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Err(gone));
        fixture.normal.try_post(Posting::new(word(&fixture.session, Stadd::fixed(7))).local(0)).unwrap();
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Ok(()));
        assert_ne!(fixture.session.register(&region), Ok(at), "a new registration has a new address");
    });
}

#[test]
fn automatic_tags_run_out() {
    alone(|fixture| {
        let regions: Vec<_> = (0..769).map(|_| fixture.fabric.alloc(8).unwrap()).collect();
        let results: Vec<_> = regions.iter().map(|region| fixture.normal.register(region)).collect();
        let error = QueueError::TooManyTags { queue: fixture.normal.id(), limit: 768 };
        // The fixture uses one of the 768.
        assert!(results[..767].iter().all(Result::is_ok));
        assert_eq!(results[767..], [Err(error.into()), Err(error.into())]);
    });
}

#[test]
fn memory_that_was_not_allocated_is_refused() {
    alone(|fixture| {
        let region = OwnedMemory::new(vec![0u64; 8]).register(&fixture.fabric, Uses::Transfers).unwrap();
        assert!(matches!(fixture.normal.register(&region), Err(FabricError::Unsupported { .. })));
    });
}

#[test]
fn a_region_that_is_dropped_leaves_a_stale_address() {
    alone(|fixture| {
        let region = fixture.fabric.alloc(64).unwrap();
        let at = fixture.session.register(&region).unwrap();
        drop(region);
        fixture.normal.try_post(Posting::new(word(&fixture.session, at)).local(0)).unwrap();
        let stale = QueueError::Stale { queue: fixture.session.id(), stadd: at };
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Err(stale));
    });
}

#[test]
fn an_address_means_something_on_one_queue_only() {
    alone(|fixture| {
        fixture.normal.try_post(Posting::new(word(&fixture.session, fixture.at)).local(0)).unwrap();
        let none = QueueError::NoSuchTag { queue: fixture.session.id(), stadd: fixture.at };
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Err(none));
        assert!(!ControlQueue::limits(&fixture.fabric).shared_address_space);
    });
}

#[test]
fn a_shared_address_space_is_a_machine_that_tofu2_is_not() {
    let threads = checks::jobs::threads(1).segment_bytes(4 << 20).shared_address_space(true);
    let run = threads.run_with(|fabric| {
        assert!(ControlQueue::limits(&fabric).shared_address_space);
        let [a, b] = [(); 2].map(|()| ControlQueue::open(&fabric, session_of(8).ahead(7)).unwrap());
        let region = fabric.alloc(64).unwrap();
        let at = a.register(&region).unwrap();
        assert_eq!(b.register(&region), Ok(at));
        b.try_post(Posting::new(word(&a, at)).local(0)).unwrap();
        b.try_post(Posting::new(Command::put(b.id(), at, at + 8, 8)).local(0)).unwrap();
        assert!((0..2).all(|_| b.poll_mrq().unwrap().unwrap().status.is_ok()));
        // The address outlives the queue on which it was registered.
        drop(a);
        b.try_post(Posting::new(Command::put(b.id(), at, at + 16, 8)).local(0)).unwrap();
        assert_eq!(b.poll_mrq().unwrap().unwrap().status, Ok(()));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn closing_drops_blocked_commands_and_tells_how_many() {
    alone(|fixture| {
        let queue = ControlQueue::open(&fixture.fabric, session_of(32)).unwrap();
        let region = fixture.fabric.alloc(64).unwrap();
        let at = queue.register(&region).unwrap();
        let long = Command::PutInline { to: queue.id(), bytes: Inline::new(&[1; 20]).unwrap(), at };
        [word(&queue, at), long, Command::Nop].into_iter().for_each(|command| queue.try_post(command.into()).unwrap());
        let put = Command::PutInline { to: queue.id(), bytes: Inline::word(1), at };
        fixture.normal.try_post(Posting::new(put).sps(1)).unwrap();
        let old = queue.id();
        assert_eq!(queue.close(), Ok(2));
        let not_open = QueueError::NotOpen(old);
        fixture.normal.try_post(Posting::new(put).sps(1).local(0)).unwrap();
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Err(not_open));
        // The next queue has the same id and inherits nothing else.
        let again = QueueSpec { engine: Some(old.engine()), number: Some(old.number()), ..session_of(32) };
        let queue = ControlQueue::open(&fixture.fabric, again).unwrap();
        assert_eq!(queue.id(), old);
        queue.register(&region).unwrap();
        assert_eq!(queue.pointers().scheduled, 0);
        fixture.normal.try_post(Posting::new(put).sps(1).local(0)).unwrap();
        let none = QueueError::NoSuchTag { queue: old, stadd: at };
        assert_eq!(fixture.normal.poll_mrq().unwrap().unwrap().status, Err(none));
        assert_eq!(queue.pointers().scheduled, 0);
    });
}

#[test]
fn closing_reports_an_error_that_nobody_heard() {
    alone(|fixture| {
        let queue = ControlQueue::open(&fixture.fabric, session_of(8).ahead(4)).unwrap();
        let wrong = Stadd::fixed(3);
        queue.try_post(Command::put(queue.id(), wrong, wrong, 8).into()).unwrap();
        let error = QueueError::NoSuchTag { queue: queue.id(), stadd: wrong };
        assert_eq!(queue.close(), Err(error.into()));
    });
}
