//! Waiting for completions, notices and room.

use super::fixture::{alone, alone_with, completed_tags, session_of};
use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    Deps, FabricError,
    control_queue::{Command, Posting},
    join::{Either, race},
};
use tofu2_shm::block_on;

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    core::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn posts_wait_for_room_first_come_first_served() {
    alone_with(session_of(4), |fixture| {
        (0..3).for_each(|_| fixture.queue(Command::Nop));
        let mut posts: Vec<_> = (0..3u64)
            .map(|tag| Box::pin(fixture.session.post(Posting::new(Command::Nop).tcq(tag), Deps::Ranks(&[]))))
            .collect();
        // Only this rank itself can end the wait; a few polls do not end it yet.
        let stand = |posts: &mut Vec<_>| posts.iter_mut().map(|post| poll(post).is_ready()).collect::<Vec<_>>();
        assert_eq!(stand(&mut posts), [false; 3]);
        fixture.advance(1);
        // The second post is polled first, but must not overtake.
        assert!(poll(&mut posts[1]).is_pending());
        assert!(fixture.session.try_post(Command::Nop.into()).is_err(), "nor does anybody else overtake");
        assert!(poll(&mut posts[0]).is_ready());
        // A post that is dropped does not delay the others.
        drop(posts.remove(0));
        drop(posts.remove(0));
        fixture.advance(1);
        assert!(poll(&mut posts[0]).is_ready());
        posts.clear();
        fixture.advance(3);
        let tags = completed_tags(&fixture.session);
        assert_eq!(tags, [0, 2]);
    });
}

#[test]
fn nobody_left_to_advance_ends_a_wait() {
    alone_with(session_of(4), |fixture| {
        fixture.queue(Posting::new(Command::Nop).tcq(0));
        assert_eq!(block_on(fixture.session.next_completion(Deps::All)), Err(FabricError::PeersLeft));
        assert_eq!(block_on(fixture.session.next_notice(Deps::All)), Err(FabricError::PeersLeft));
        (0..2).for_each(|_| fixture.queue(Command::Nop));
        let error = block_on(fixture.session.post(Command::Nop.into(), Deps::All));
        assert_eq!(error, Err(FabricError::PeersLeft));
    });
}

#[test]
fn a_ring_of_commands_without_a_start_is_a_deadlock() {
    alone_with(session_of(4).ahead(3), |fixture| {
        (0..3).for_each(|_| fixture.queue(Posting::new(Command::Nop).delayed()));
        let error = block_on(fixture.session.post(Command::Nop.into(), Deps::All));
        assert!(matches!(error, Err(FabricError::Deadlock { .. })), "{error:?}");
    });
}

#[test]
fn a_task_of_the_same_rank_ends_a_wait() {
    alone(|fixture| {
        fixture.queue(Posting::new(fixture.store(0, 1)).tcq(5));
        let waits = pin!(fixture.session.next_completion(Deps::All));
        let acts = async {
            fixture.advance(1);
            core::future::pending::<()>().await;
        };
        match block_on(race(waits, pin!(acts))) {
            Either::First(done) => assert_eq!(done.map(|done| done.tag), Ok(5)),
            Either::Second(()) => unreachable!(),
        }
    });
}

#[test]
fn queues_and_their_futures_may_move_between_threads() {
    fn assert_send<T: Send>(_: &T) {}
    fn assert_sync<T: Sync>(_: &T) {}
    alone(|fixture| {
        assert_send(&fixture.session);
        assert_sync(&fixture.session);
        assert_send(&fixture.session.next_notice(Deps::All));
        assert_send(&fixture.session.next_completion(Deps::All));
        assert_send(&fixture.session.post(Command::Nop.into(), Deps::All));
    });
}
