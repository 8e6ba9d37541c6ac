//! Exchanges without state between calls.

use crate::{disturbed, fx100, neighbours};
use checks::jobs::threads;
use core::{future::Future, pin::pin, task::Poll, time::Duration};
use prdma_offload::{Buffer, Form, Layout, Options, PrdmaError, Side};
use rdma_fabric::{Fabric, ProgramResult};

fn block(start: usize, len: usize) -> Layout {
    Layout::contiguous::<u64>(start, len).unwrap()
}

fn column(start: usize, len: usize) -> Layout {
    Layout::vector::<u64>(start, len, 1, 3).unwrap()
}

/// Transient and persistent exchanges of the same blocks in turn.
async fn alike(fabric: Fabric, len: usize, columns: (bool, bool)) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let me = hood.group().me() as u64;
    let layouts = |columns, len: usize| -> Vec<Layout> {
        (0..3).map(|at| if columns { column(at, len) } else { block(at * len, len) }).collect()
    };
    let (sends, receives) = (layouts(columns.0, len), layouts(columns.1, len));
    let send = Buffer::<u64>::new(&fabric, 3 * len + 1)?;
    let (one, other) = (Buffer::<u64>::new(&fabric, 3 * len + 1)?, Buffer::<u64>::new(&fabric, 3 * len + 1)?);
    let mut request = hood.alltoallw_init(&send, &sends, &other, &receives, &Options::default()).await?;
    for k in 0..20 {
        let data: Vec<u64> = (0..=3 * len as u64).map(|at| k << 40 | me << 32 | at).collect();
        send.write(0, &data)?;
        if k % 3 == me % 3 {
            fabric.compute(Duration::from_micros(30)).await;
        }
        request.start().await?;
        hood.alltoallw(&send, &sends, &one, &receives).await?;
        request.wait().await?;
        assert_eq!(one.to_vec()?, other.to_vec()?, "exchange {k}");
        let from = (hood.group().len() as u64 + me - 1) % hood.group().len() as u64;
        if len > 0 {
            assert_eq!(one.to_vec()?[0] >> 32, k << 8 | from, "what comes from the left is of this exchange");
        }
    }
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn a_transient_exchange_brings_what_a_persistent_one_does() {
    for n in [1, 2, 3, 5] {
        for len in [0, 1, 7, 40] {
            for columns in [(false, false), (false, true), (true, true)] {
                let program = async move |fabric| alike(fabric, len, columns).await;
                threads(n).run(&program).unwrap();
                disturbed(n, 5).run(&program).unwrap();
            }
        }
    }
}

/// Sizes that differ on one edge, then blocks outside their buffer, then valid ones.
async fn wrong(fabric: Fabric) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let (me, n) = (hood.group().me(), hood.group().len());
    let (send, receive) = (Buffer::<u64>::new(&fabric, 16)?, Buffer::<u64>::new(&fabric, 16)?);
    send.write(0, &[me as u64 + 1; 16])?;
    let good = [block(0, 2), Layout::nothing(), block(2, 2)];
    // Member 0 sends one element too many to the right.
    let long = [block(0, 2), Layout::nothing(), block(2, 3)];
    let told = hood.alltoallw(&send, if me == 0 { &long } else { &good }, &receive, &good).await;
    let size = |side, slot, member, mine, theirs| Err(PrdmaError::Size { side, slot, member, mine, theirs });
    match me {
        0 => assert_eq!(told, size(Side::Destination, 2, 1, 24, 16)),
        1 => assert_eq!(told, size(Side::Source, 0, 0, 16, 24)),
        _ => assert_eq!(told, Ok(())),
    }
    // The other edges were exchanged.
    assert_eq!(receive.to_vec()?[2], ((me + 1) % n) as u64 + 1);
    let outside = [block(0, 2), Layout::nothing(), block(15, 2)];
    let told = hood.alltoallw(&send, &good, &receive, if me == 0 { &outside } else { &good }).await;
    match me {
        0 => assert!(matches!(told, Err(PrdmaError::OutOfBounds { side: Side::Source, slot: 2, .. })), "{told:?}"),
        me if me == 1 || me == n - 1 => assert_eq!(told, Err(PrdmaError::ElsewhereFailed)),
        _ => assert_eq!(told, Ok(())),
    }
    for k in 0..3 {
        send.write(0, &[100 * k + me as u64; 16])?;
        hood.alltoallw(&send, &good, &receive, &good).await?;
        let (left, right) = (((me + n - 1) % n) as u64, ((me + 1) % n) as u64);
        assert_eq!(receive.to_vec()?[..4], [left, left, right, right].map(|from| 100 * k + from));
    }
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn an_error_at_both_ends_disturbs_no_later_exchange() {
    threads(4).run(&wrong).unwrap();
    fx100(4).shuffle_ties(true).run(&wrong).unwrap();
}

/// Member 0 drops an exchange while it waits: its neighbours are notified, and all other members
/// continue.
async fn dropping(fabric: Fabric) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let (me, n) = (hood.group().me(), hood.group().len());
    let (send, receive) = (Buffer::<u64>::new(&fabric, 4)?, Buffer::<u64>::new(&fabric, 4)?);
    let blocks = [block(0, 2), Layout::nothing(), block(2, 2)];
    hood.alltoallw(&send, &blocks, &receive, &blocks).await?;
    if me == 0 {
        {
            let mut call = pin!(hood.alltoallw(&send, &blocks, &receive, &blocks));
            // No other member has started.
            for _ in 0..3 {
                let looked = core::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
                assert!(looked.is_pending());
            }
        }
        hood.group_mut().barrier().await?;
        assert_eq!(hood.alltoallw(&send, &blocks, &receive, &blocks).await, Err(PrdmaError::Dropped));
    } else {
        hood.group_mut().barrier().await?;
        for _ in 0..2 {
            let told = hood.alltoallw(&send, &blocks, &receive, &blocks).await;
            let beside = me == 1 || me == n - 1;
            assert_eq!(told, if beside { Err(PrdmaError::ElsewhereFailed) } else { Ok(()) }, "member {me}");
        }
    }
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn a_dropped_exchange_leaves_no_member_waiting() {
    threads(5).run(&dropping).unwrap();
    fx100(5).run(&dropping).unwrap();
}

/// The duration of an exchange; without a form, of a transient one.
async fn timed(fabric: Fabric, form: Option<Form>, len: usize) -> ProgramResult<u64> {
    let mut hood = neighbours(&fabric).await?;
    let (send, receive) = (Buffer::<u64>::new(&fabric, 3 * len)?, Buffer::<u64>::new(&fabric, 3 * len)?);
    let blocks = [block(0, len), Layout::nothing(), block(2 * len, len)];
    let mut request = match form {
        Some(form) => Some(hood.alltoallw_init(&send, &blocks, &receive, &blocks, &Options::form(form)).await?),
        None => hood.alltoallw(&send, &blocks, &receive, &blocks).await.map(|()| None)?,
    };
    hood.group_mut().barrier().await?;
    let start = fabric.now();
    for _ in 0..50 {
        match &mut request {
            Some(request) => {
                request.start().await?;
                request.wait().await?;
            }
            None => hood.alltoallw(&send, &blocks, &receive, &blocks).await?,
        }
    }
    let took = fabric.now() - start;
    hood.group_mut().barrier().await?;
    Ok(took.as_nanos() as u64 / 50)
}

#[test]
fn persistence_is_faster_in_every_form() {
    for len in [1, 128, 2048] {
        let took = |form| {
            let outcome = fx100(8).ranks_per_node(1).run(&async |fabric| timed(fabric, form, len).await).unwrap();
            outcome.outs.into_iter().max().unwrap()
        };
        let transient = took(None);
        for form in [Form::Fast, Form::Mrc, Form::Cpu] {
            let persistent = took(Some(form));
            println!("{len} elements: transient {transient} ns, {form} {persistent} ns");
            assert!(persistent < transient, "{form}: {persistent} ns, transient {transient} ns");
        }
    }
}
