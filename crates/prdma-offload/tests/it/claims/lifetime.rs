//! Claims of starts and requests that are dropped, and the end of views.

use super::{BLOCKS, LEN, Used, cells, in_use, own_edges};
use crate::{both, disturbed, fx100};
use checks::jobs::threads;
use core::{future::poll_fn, pin::pin};
use prdma_offload::{Buffer, Form, Holder, Options, PrdmaError, exchange_init};
use rdma_fabric::{Fabric, Group, join};

/// A start that is dropped half-way prevents its claimed bytes from being lent, on both sides, as
/// long as the request exists.
#[test]
fn a_start_that_is_dropped_keeps_its_claims() {
    let program = async |fabric: Fabric| {
        let used = Used::new(&fabric, 2, 2)?;
        let (sends, receives) = used.points();
        let mut group = Group::world(&fabric).await?;
        let mut request = exchange_init(&mut group, sends, receives, &Options::form(Form::Cpu)).await?;
        assert!(join::now(request.start()).is_none(), "a start takes time");
        assert!(matches!(request.wait().await, Err(PrdmaError::Broken(_))));
        for (at, buffer) in used.all().enumerate() {
            for block in BLOCKS {
                assert_eq!(in_use(buffer.view_mut(block..block + 1)), Some(Holder::Broken), "buffer {at}");
                let seen = in_use(buffer.view(block..block + 1));
                assert_eq!(seen, (at >= 2).then_some(Holder::Broken), "buffer {at}");
            }
        }
        drop(request);
        // Where a view is a copy, late arrivals do not affect it.
        used.are_free("a request that was dropped");
        Ok(())
    };
    disturbed(1, 30).run(&program).unwrap();
}

/// A request that is dropped while it is active keeps its bytes in each of its buffers.
#[test]
fn claims_of_a_dropped_request_last() {
    let program = async |fabric: Fabric| {
        let used = Used::new(&fabric, 2, 2)?;
        let (sends, receives) = used.points();
        let mut group = Group::world(&fabric).await?;
        let mut request = exchange_init(&mut group, sends, receives, &Options::form(Form::Cpu)).await?;
        request.start().await?;
        used.are_claimed("active");
        drop(request);
        used.are_claimed("dropped");
        Ok(())
    };
    threads(1).run(&program).unwrap();
}

/// Views end one by one, in any order, and each excludes uses until its own end.
#[test]
fn a_view_that_ends_ends_no_other() {
    let program = async |fabric: Fabric| {
        let field = Buffer::<u64>::in_place(&fabric, LEN)?;
        let parts = [0..2, 2..4, 4..6];
        for first in 0..parts.len() {
            for second in (0..parts.len()).filter(|second| *second != first) {
                let views = parts.each_ref().map(|part| field.view(part.clone()));
                let mut views = views.into_iter().map(|view| view.map(Some)).collect::<Result<Vec<_>, _>>()?;
                for ended in [first, second] {
                    views[ended] = None;
                    for (at, part) in parts.iter().enumerate() {
                        let holder = views[at].is_some().then_some(Holder::View);
                        assert_eq!(in_use(field.view_mut(part.clone())), holder, "{at} when {ended} has ended");
                        assert_eq!(in_use(field.write(part.start, &[1])), holder, "{at} when {ended} has ended");
                    }
                }
            }
        }
        Ok(())
    };
    both(1, &program);
}

/// An exchange without a request claims both its buffers until it is complete.
#[test]
fn a_transient_exchange_claims_its_buffers_until_its_end() {
    let program = async |fabric: Fabric| {
        let used = Used::new(&fabric, 1, 1)?;
        let (mut hood, cells) = (own_edges(&fabric).await?, cells());
        hood.alltoallw(&used.sent[0], &cells, &used.received[0], &cells).await?;
        let mut exchange = pin!(hood.alltoallw(&used.sent[0], &cells, &used.received[0], &cells));
        let mut polls = 0;
        // Virtual time passes between polls.
        poll_fn(|cx| {
            let poll = exchange.as_mut().poll(cx);
            if poll.is_pending() {
                polls += 1;
                used.are_claimed("a transient exchange");
            }
            poll
        })
        .await?;
        assert!(polls > 0, "it took no time");
        used.are_free("a transient exchange");
        Ok(())
    };
    fx100(1).run(&program).unwrap();
}
