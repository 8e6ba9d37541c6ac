//! The times at which members start, wait and poll, and the movement of data while they compute.

use super::{
    FORMS,
    areas::Cut,
    exchange::{Exchange, ExchangeData, Sizes, Spec, all, busy, each, place},
    shapes::Shape,
};
use fabric_conformance::{ensure, ensure_eq};
use onesided::{
    ProgramResult,
    prdma::{Form, Request, start_all, wait_all},
};
use rdma_fabric::{Fabric, Time};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Longer than one iteration, and longer than several.
const LATE: Duration = Duration::from_micros(30);
const LONG: Duration = Duration::from_micros(800);

/// Delays this member before start or wait of iteration `k`: the members in turn by [`LATE`], and
/// this one by [`LONG`], several iterations of the others, if it `dawdles` here.
pub(super) async fn is_late(fabric: &Fabric, k: usize, before_start: bool, dawdles: bool) {
    let (me, members) = place(fabric);
    if k % members == me && k.is_multiple_of(2) == before_start {
        busy(fabric, LATE).await;
    }
    if dawdles {
        busy(fabric, LONG).await;
    }
}

/// A member is late at start, at wait, and by several iterations of the others.
pub(super) async fn late(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let specs = FORMS.map(|form| Spec::new(Shape::ring(members), form));
    let late = async |exchange: &mut Exchange| {
        for k in 0..12 {
            is_late(fabric, k, true, (me, k) == (1, 6)).await;
            exchange.start().await?;
            is_late(fabric, k, false, (me, k) == (1, 9)).await;
            exchange.wait().await?;
        }
        Ok(())
    };
    each(fabric, specs, late).await
}

/// Ends iterations by polling, and by waits of which some are dropped.
pub(super) async fn polled(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let specs = FORMS.map(|form| Spec { receives: Cut::Column, ..Spec::new(Shape::ring(members), form) });
    let polled = async |exchange: &mut Exchange| {
        let form = exchange.request.form();
        for k in 0..10 {
            exchange.start().await?;
            if k % members == me {
                busy(fabric, LATE).await;
            }
            if k % 2 == 0 {
                while !exchange.request.test().await? {
                    ensure!(exchange.request.is_active(), "{form}: it has ended and does not say so");
                    fabric.sleep(Duration::from_micros(2)).await;
                }
                exchange.data.check()?;
            } else {
                let dropped = pin!(exchange.request.wait()).poll(&mut Context::from_waker(Waker::noop()));
                if let Poll::Ready(ended) = dropped {
                    ended?;
                }
                exchange.wait().await?;
            }
            ensure!(!exchange.request.is_active() && exchange.request.test().await?, "{form}: it is over");
        }
        Ok(())
    };
    each(fabric, specs, polled).await
}

/// More iterations than a notice's number has values.
pub(super) async fn thousand(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let spec = |form| Spec { sizes: Sizes::All(12), ..Spec::new(Shape::ring(members), form) };
    let thousand = async |exchange: &mut Exchange| {
        exchange.steps(1000).await?;
        ensure_eq!(exchange.request.iterations(), 1000, "{}", exchange.request.form());
        Ok(())
    };
    each(fabric, [Form::Fast, Form::Mrc, Form::Cpu].map(spec), thousand).await
}

/// Two requests, started and waited for in different orders by different members (MPI-4: without an
/// assertion, any), also with a barrier in between.
pub(super) async fn orders(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let forms = [Form::Fast, Form::Mrc, Form::Cpu];
    for (one, other) in forms.iter().flat_map(|one| forms.map(|other| (*one, other))) {
        let mut hood = all(fabric, &Shape::ring(members)).await?;
        let mut a = Exchange::new(&mut hood, &Spec::new(Shape::ring(members), one)).await?;
        let mut b = Exchange::new(&mut hood, &Spec::new(Shape::ring(members), other)).await?;
        for k in 0..6 {
            if (me + k) % 2 == 0 {
                a.start().await?;
                b.start().await?;
            } else {
                b.start().await?;
                a.start().await?;
            }
            if k == 2 {
                // The members that reach the barrier last wait, in `a`, for those that wait in the
                // barrier.
                if me % 2 == 0 {
                    hood.group_mut().barrier().await?;
                }
                a.wait().await?;
                if me % 2 == 1 {
                    hood.group_mut().barrier().await?;
                }
                b.wait().await?;
            } else if (me + k / 2) % 2 == 0 {
                b.wait().await?;
                a.wait().await?;
            } else {
                a.wait().await?;
                b.wait().await?;
            }
        }
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// Runs ten requests of one neighbourhood, of all forms, concurrently; each member starts them in a
/// different order.
pub(super) async fn many(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let mut hood = all(fabric, &Shape::ring(members)).await?;
    let (mut data, mut requests): (Vec<ExchangeData>, Vec<Request>) = (Vec::new(), Vec::new());
    for number in 0..10 {
        let sizes = Sizes::All(12 * number);
        let spec = Spec { sizes, ..Spec::new(Shape::ring(members), FORMS[number % FORMS.len()]) };
        let exchange = Exchange::new(&mut hood, &spec).await?;
        data.push(exchange.data);
        requests.push(exchange.request);
    }
    data.rotate_left(me);
    requests.rotate_left(me);
    for k in 0..8 {
        data.iter_mut().try_for_each(ExchangeData::fill)?;
        if k == 4 {
            data.rotate_left(3);
            requests.rotate_left(3);
        }
        start_all(&mut requests).await?;
        ensure!(requests.iter().all(Request::is_active), "all are started");
        wait_all(&mut requests).await?;
        ensure!(!requests.iter().any(Request::is_active), "all are waited for");
        data.iter().try_for_each(ExchangeData::check)?;
    }
    Ok(hood.group_mut().barrier().await?)
}

/// A member starts late, and both compute without a call. Each finds the exchange complete when it
/// polls for the first time. Without queues, the member that polls first does not: the other's data
/// waits for a call there.
pub(super) async fn unattended(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let specs = FORMS.map(|form| Spec::new(Shape::ring(members), form));
    found_complete(fabric, &specs, "moves the data of").await
}

/// Starts each of `specs` late at one member. Each member finds the exchange complete when it polls
/// for the first time, unless there are no queues; `does` describes, for the error message, the
/// action that is not executed for a computing member without queues.
pub(super) async fn found_complete(fabric: &Fabric, specs: &[Spec], does: &str) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    for spec in specs {
        let form = spec.options.form;
        let mut hood = all(fabric, &spec.shape).await?;
        let mut exchange = Exchange::new(&mut hood, spec).await?;
        hood.group_mut().barrier().await?;
        let (before, after) = if me == 0 { (0, 150) } else { (20, 50) };
        busy(fabric, Duration::from_millis(before)).await;
        exchange.start().await?;
        let started = fabric.now();
        busy(fabric, Duration::from_millis(after)).await;
        let looks = fabric.now();
        let over = exchange.request.test().await?;
        let looked = fabric.now();
        exchange.wait().await?;
        // On a busy machine, no particular member is certain to be the first or the last.
        let group = hood.group_mut();
        let (own, all) = (group.me(), group.allgather([started, looks].map(Time::as_picos)).await?);
        let mut others = all.into_iter().enumerate().filter(|(member, _)| *member != own).map(|(_, times)| times);
        if form == Form::Cpu {
            let is_first = others.all(|[_, looks]| looked.as_picos() < looks);
            ensure!(!over || !is_first, "without queues nobody {does} a computing member");
        } else {
            let is_last = others.all(|[started, _]| started < looks.as_picos());
            ensure!(over || !is_last, "{form}: not complete at member {me} after everybody has started");
        }
    }
    Ok(())
}
