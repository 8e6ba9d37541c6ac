//! The last member is lost.

use super::{
    exchange::{Exchange, Spec, all, busy, place},
    shapes::Shape,
};
use fabric_conformance::{Loss, ensure, ensure_eq};
use onesided::{
    Deps, FabricError, Group, ProgramResult, Rank, Region,
    prdma::{Form, Neighbourhood, Options, PrdmaError},
};
use rdma_fabric::Fabric;
use std::time::Duration;

/// The time at which the last member is lost.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moment {
    /// Before it starts an iteration in which its neighbours wait.
    Waited,
    /// After it has started but not waited.
    Started,
    /// Before its neighbours start; they know of the loss by then.
    Known,
    /// When it has dropped its request and its neighbours have started nevertheless; they wait when
    /// they know of the loss.
    Dropped,
}

impl Moment {
    pub(super) const ALL: [Moment; 4] = [Moment::Waited, Moment::Started, Moment::Known, Moment::Dropped];
}

/// Ten times as long as any loss may go unnoticed.
pub(super) const HANG: Duration = Duration::from_secs(20);

/// Returns a shape of five members; the last one exchanges with 0 and with 1, and 2 with 3. Those
/// two don't depend on it.
pub(super) fn shape() -> Shape {
    Shape::graph(&[vec![4], vec![4], vec![3], vec![2], vec![0, 1]])
}

/// Waits, at the last member, until the others have [announced that they are ready](announce_ready)
/// and had time to wait.
pub(super) async fn others_ready(fabric: &Fabric, ready: &Region, others: u64) -> ProgramResult<()> {
    fabric.wait_until(&ready.word::<u64>(fabric, 0)?, Deps::All, |ready| ready == others).await?;
    fabric.flush_all().await?;
    busy(fabric, Duration::from_micros(700)).await;
    Ok(())
}

/// Announces that this member has completed its part with the last one, except for the steps that
/// are to fail.
pub(super) async fn announce_ready(fabric: &Fabric, ready: &Region, last: Rank, moment: Moment) -> ProgramResult<()> {
    fabric.fetch_add(&fabric.remote_word::<u64>(ready.at(last, 0))?, 1).await?;
    if let Moment::Known = moment {
        known(fabric, last).await?;
    }
    Ok(())
}

/// Waits until the loss is known.
pub(super) async fn known(fabric: &Fabric, last: Rank) -> ProgramResult<()> {
    let nothing = fabric.alloc(8)?;
    let end = fabric.wait_until(&nothing.word::<u64>(fabric, 0)?, Deps::One(last), |v| v == 1).await;
    ensure_eq!(end, Err(FabricError::PeerLost { rank: last }), "waiting for the loss");
    Ok(())
}

/// Checks that steps that depend on the last member end with its loss, after at most `most` more of
/// them; if `early`, the error may be about resources that it dropped before. Returns the error.
pub(super) async fn ends(
    fabric: &Fabric,
    last: Rank,
    (most, early): (u32, bool),
    what: &str,
    mut step: impl AsyncFnMut() -> ProgramResult<()>,
) -> ProgramResult<PrdmaError> {
    let mut ended = 0;
    let error = loop {
        let step = fabric.before(fabric.now() + HANG, step()).await;
        match step.ok_or_else(|| format!("{what}: rank {} hangs", fabric.rank()))? {
            Ok(()) => ended += 1,
            Err(error) => break error,
        }
        ensure!(ended <= most, "{what}: {ended} iterations that rank {last} did not start have ended");
    };
    let error = error.downcast_ref::<PrdmaError>().ok_or_else(|| format!("{what}: {error}"))?;
    ensure!(is_gone(error, last, early), "{what}: {error:?}");
    Ok(error.clone())
}

/// Returns whether an error is that of an exchange with a lost rank. A rank that fails or panics
/// drops its memory and its queues first, and a rank may drop them earlier; if `early`, the error
/// may report this, because the exchange encountered it before the loss was known.
pub(super) fn is_gone(error: &PrdmaError, last: Rank, early: bool) -> bool {
    *error == PrdmaError::Fabric(FabricError::PeerLost { rank: last }) || early && error.gone() == Some(last)
}

/// Loses the last member. Its neighbours receive `PeerLost` in bounded time; all others continue,
/// in this request and in others.
pub(super) async fn lost(fabric: &Fabric, options: Options, moment: Moment, loss: Loss) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let (last, form) = (Rank::new(members as u32 - 1), options.form);
    let mut hood = all(fabric, &shape()).await?;
    let mut exchange = Exchange::new(&mut hood, &Spec { options, ..Spec::new(shape(), form) }).await?;
    let survivors = hood.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    let ready = fabric.alloc_symmetric(8).await?;
    exchange.steps(3).await?;
    let Some(survivors) = survivors else {
        others_ready(fabric, &ready, members as u64 - 1).await?;
        if let Moment::Started = moment {
            exchange.start().await?;
        }
        if let Moment::Dropped = moment {
            drop(exchange);
            for neighbour in [0, 1].map(Rank::new) {
                fabric.fetch_add(&fabric.remote_word::<u64>(ready.at(neighbour, 0))?, 1).await?;
            }
            let started = |all| all == members as u64 + 1;
            fabric.wait_until(&ready.word::<u64>(fabric, 0)?, Deps::All, started).await?;
        }
        return loss.happen();
    };
    announce_ready(fabric, &ready, last, moment).await?;
    let mut started = None;
    if let (Moment::Dropped, 0 | 1) = (moment, me) {
        fabric.wait_until(&ready.word::<u64>(fabric, 0)?, Deps::All, |dropped| dropped == 1).await?;
        started = Some(exchange.start().await);
        fabric.fetch_add(&fabric.remote_word::<u64>(ready.at(last, 0))?, 1).await?;
        known(fabric, last).await?;
    }
    let what = format!("{form}, {:?}, {moment:?}", options.end);
    if me < 2 {
        // A loss that is known before the start, or before the wait, is reported as a loss.
        let early = match (moment, &started) {
            (Moment::Known, _) | (Moment::Dropped, Some(Ok(()))) => false,
            (Moment::Dropped, _) => true,
            _ => loss != Loss::Kill,
        };
        let step = async || match started.take() {
            None => exchange.steps(1).await,
            Some(Ok(())) => exchange.wait().await,
            Some(failed) => failed,
        };
        let error = ends(fabric, last, (1, early), &what, step).await?;
        for end in [exchange.request.start().await, exchange.request.wait().await] {
            ensure_eq!(end, Err(PrdmaError::Broken(Box::new(error.clone()))), "{what}: once broken");
        }
    } else {
        exchange.steps(20).await?;
    }
    go_on(survivors, form).await
}

/// Creates a new neighbourhood of the survivors, and exchanges in it.
pub(super) async fn go_on(survivors: Group, form: Form) -> ProgramResult<()> {
    let ring = Spec::new(Shape::ring(survivors.len()), form);
    let topology = ring.shape.topology(survivors.me())?;
    let mut hood = Neighbourhood::new(survivors, topology).await?;
    let mut exchange = Exchange::new(&mut hood, &ring).await?;
    exchange.steps(5).await?;
    Ok(hood.group_mut().barrier().await?)
}
