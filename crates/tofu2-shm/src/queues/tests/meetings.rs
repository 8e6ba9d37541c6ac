//! Operations that run concurrently: an advance and a command that has started, closing and a long
//! copy, a post and the last start.

use super::*;
use crate::queues::view::View;
use core::time::Duration;
use fabric_offload::ControlQueue;
use rdma_fabric::Fabric;

/// A session queue in checking mode, and memory on it.
fn session(fabric: &Fabric, depth: u32, ahead: u32) -> (fabric_offload::ControlQueue, Region, Stadd) {
    let spec = QueueSpec::new(QueueMode::Session).depth(depth).ahead(ahead).checked(true);
    open(fabric, spec)
}

fn open(fabric: &Fabric, spec: QueueSpec) -> (fabric_offload::ControlQueue, Region, Stadd) {
    let queue = ControlQueue::open(fabric, spec).unwrap();
    let region = fabric.alloc(4096).unwrap();
    let at = queue.register(&region).unwrap();
    (queue, region, at)
}

fn nothing(to: QueueId, at: Stadd) -> Command {
    Command::PutInline { to, bytes: Inline::new(&[]).unwrap(), at }
}

/// A command that has started no longer occupies the ring, so an advance that it makes, or that
/// answers it, is not a whole ring ahead.
#[test]
fn an_advance_by_a_command_that_has_begun_is_no_overrun() {
    let job = job(4 << 20);
    let fabric = testing::fabric(&job, 0);
    for depth in [2, 4, 8] {
        let (queue, _region, at) = session(&fabric, depth, depth - 1);
        queue.try_post(Posting::new(nothing(queue.id(), at)).sps(1).tcq(1)).unwrap();
        assert_eq!(queue.poll_tcq().unwrap().map(|done| (done.tag, done.status)), Some((1, Ok(()))), "depth {depth}");
        let pointers = queue.pointers();
        assert_eq!((pointers.read, pointers.scheduled), (1, u64::from(depth)));
        queue.try_post(Posting::new(Command::Nop).tcq(2)).unwrap();
        assert_eq!(queue.poll_tcq().unwrap().map(|done| done.tag), Some(2), "depth {depth}");
    }
}

/// If a queue is closed during a long copy to it, its words are not written once their memory is
/// reused.
#[test]
#[cfg_attr(miri, ignore = "fills a heap")]
fn what_a_long_copy_tells_its_target_does_not_land_in_a_later_region() {
    let job = job(4 << 20);
    let (sender, target) = (testing::fabric(&job, 0), testing::fabric(&job, 1));
    let (queue, region, at) = session(&target, 2048, 0);
    let normal = ControlQueue::open(&sender, QueueSpec::new(QueueMode::Normal)).unwrap();
    let source = sender.alloc(4096).unwrap();
    let from = normal.register(&source).unwrap();
    let (reached, has_reached) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let to = queue.id();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            hook::set(move |label| {
                if label == DeathPoint::Written {
                    reached.send(()).unwrap();
                    let _ = may_go_on.recv_timeout(Duration::from_secs(60));
                }
            });
            let posted = normal.try_post(Posting::new(Command::put(to, from, at, 4096)).sps(3).remote(1));
            hook::set(|_| ());
            posted.unwrap();
        });
        has_reached.recv_timeout(Duration::from_secs(60)).unwrap();
        queue.close().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        // All memory that was released is now part of a region.
        let later: Vec<Region> = core::iter::from_fn(|| target.alloc(4096).ok()).collect();
        go_on.send(()).unwrap();
        later
    })
    .into_iter()
    .enumerate()
    .for_each(|(index, later)| {
        let mut words = [0; 512];
        target.read(&later.span::<u64>(&target, 0, 512).unwrap(), &mut words).unwrap();
        assert_eq!(words.iter().position(|&word| word != 0), None, "later region {index}");
    });
    drop(region);
}

/// A full ring that empties while a post checks it is not a deadlock.
#[test]
fn a_ring_that_empties_meanwhile_is_not_stuck() {
    const ROUNDS: u32 = if cfg!(miri) { 50 } else { 50_000 };
    let job = job(4 << 20);
    let (owner, other) = (testing::fabric(&job, 0), testing::fabric(&job, 1));
    let spec = QueueSpec::new(QueueMode::Session).depth(2).checked(false);
    let (queue, _region, at) = open(&owner, spec);
    let to = queue.id();
    let over = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let normal = ControlQueue::open(&other, QueueSpec::new(QueueMode::Normal)).unwrap();
            while !over.load(core::sync::atomic::Ordering::Relaxed) {
                let (read, scheduled) = View::find(inner(&other).job(), to).unwrap().turns().standing();
                if read == scheduled {
                    normal.try_post(Posting::new(nothing(to, at)).sps(1)).unwrap();
                }
            }
        });
        let mut outcome = (0..ROUNDS).map(|_| block_on(queue.post(Posting::new(Command::Nop), Deps::All)));
        let failed = outcome.find(Result::is_err);
        over.store(true, core::sync::atomic::Ordering::Relaxed);
        assert_eq!(failed, None);
    });
}

/// A post behind another one in line that has not yet seen the room is not a deadlock either.
#[test]
fn who_stands_behind_another_is_not_stuck() {
    use core::{future::Future, pin::pin, task};
    let job = job(4 << 20);
    let (owner, other) = (testing::fabric(&job, 0), testing::fabric(&job, 1));
    let (queue, _region, at) = session(&owner, 2, 0);
    let normal = ControlQueue::open(&other, QueueSpec::new(QueueMode::Normal)).unwrap();
    let credit = || normal.try_post(Posting::new(nothing(queue.id(), at)).sps(1)).unwrap();
    let mut cx = task::Context::from_waker(task::Waker::noop());
    let post = || queue.post(Posting::new(Command::Nop), Deps::All);
    queue.try_post(Posting::new(Command::Nop)).unwrap();
    let (mut first, mut second) = (pin!(post()), pin!(post()));
    assert!(first.as_mut().poll(&mut cx).is_pending() && second.as_mut().poll(&mut cx).is_pending());
    credit();
    assert_eq!(second.as_mut().poll(&mut cx), task::Poll::Pending, "not its turn");
    assert_eq!(first.as_mut().poll(&mut cx), task::Poll::Ready(Ok(())));
    credit();
    assert_eq!(second.as_mut().poll(&mut cx), task::Poll::Ready(Ok(())));
}
