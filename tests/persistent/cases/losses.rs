//! The last member is lost.

use crate::{
    exchange::{Spec, Stage, all, busy, place},
    shapes::Shape,
    suite::{
        provider::Loss,
        verdict::{ensure, ensure_eq},
    },
};
use onesided::{
    Deps, FabricError, FullFabric, ProgramResult, Rank, Region, RegionAccess,
    control_queue::QueueError,
    prdma::{Form, Neighbourhood, PrdmaError},
};
use std::time::Duration;

/// When it is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// Before it starts an iteration that its neighbours wait in.
    Waited,
    /// After it has started, not waited.
    Started,
    /// Before its neighbours start, who know it.
    Known,
}

impl Moment {
    pub(crate) const ALL: [Moment; 3] = [Moment::Waited, Moment::Started, Moment::Known];
}

/// Longer than any loss may go unnoticed, ten times over.
pub(super) const HANG: Duration = Duration::from_secs(20);

/// Five members; the last one exchanges with 0 and with 1, and 2 with 3. Those two don't depend on it.
pub(super) fn shape() -> Shape {
    Shape::graph(&[vec![4], vec![4], vec![3], vec![2], vec![0, 1]])
}

/// Whether an error is that of an exchange with a lost rank. One that fails or panics takes its memory and its queues along first; what meets these
/// before the loss is told says so.
pub(super) fn is_gone(error: &PrdmaError, last: Rank, loss: Loss) -> bool {
    match error {
        PrdmaError::Fabric(FabricError::PeerLost { rank }) => *rank == last,
        PrdmaError::Fabric(FabricError::StaleRegion { rank, .. }) => *rank == last && loss != Loss::Kill,
        PrdmaError::Fabric(FabricError::Queue(
            QueueError::NotOpen { queue } | QueueError::NoSuchTag { queue, .. } | QueueError::Stale { queue, .. },
        )) => queue.rank() == last && loss != Loss::Kill,
        _ => false,
    }
}

/// `PeerLost` in bounded time at its neighbours; all others go on, in this request and in others.
pub(super) async fn lost<F: FullFabric>(fabric: &F, form: Form, moment: Moment, loss: Loss) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let last = Rank::new(members as u32 - 1);
    let mut hood = all(fabric, &shape()).await?;
    let mut stage = Stage::new(&mut hood, &Spec::new(shape(), form)).await?;
    let survivors = hood.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    let ready = fabric.alloc_symmetric(8).await?;
    stage.steps(3).await?;
    let Some(survivors) = survivors else {
        // The others are past all that they do with this member, and had time to wait.
        let others = members as u64 - 1;
        fabric.wait_until(&ready.word::<u64>(fabric, 0)?, Deps::All, |ready| ready == others).await?;
        fabric.flush_all().await?;
        busy(fabric, Duration::from_micros(700)).await;
        if let Moment::Started = moment {
            stage.start().await?;
        }
        return loss.happen();
    };
    fabric.fetch_add(&fabric.remote_word::<u64>(ready.at(last, 0))?, 1).await?;
    if let Moment::Known = moment {
        let nothing = fabric.alloc(8)?;
        let end = fabric.wait_until(&nothing.word::<u64>(fabric, 0)?, Deps::One(last), |v| v == 1).await;
        ensure_eq!(end, Err(FabricError::PeerLost { rank: last }), "waiting for the loss");
    }
    if me < 2 {
        let mut ended = 0;
        let error = loop {
            let step = fabric.before(fabric.now() + HANG, stage.steps(1)).await;
            match step.ok_or_else(|| format!("{form}, {moment:?}: member {me} hangs"))? {
                Ok(()) => ended += 1,
                Err(error) => break error,
            }
            ensure!(ended <= 1, "{form}, {moment:?}: an iteration that member {last} did not start has ended");
        };
        let want = error.downcast_ref::<PrdmaError>().ok_or_else(|| format!("{form}, {moment:?}: {error}"))?;
        ensure!(is_gone(want, last, loss), "{form}, {moment:?}: {want:?}");
        for end in [stage.request.start().await, stage.request.wait().await] {
            ensure_eq!(end, Err(PrdmaError::Broken(Box::new(want.clone()))), "{form}, {moment:?}: once broken");
        }
    } else {
        stage.steps(20).await?;
    }
    // What is left makes a new neighbourhood.
    let ring = Spec::new(Shape::ring(survivors.len()), form);
    let topology = ring.shape.topology(survivors.me())?;
    let mut hood = Neighbourhood::new(survivors, topology).await?;
    let mut stage = Stage::new(&mut hood, &ring).await?;
    stage.steps(5).await?;
    Ok(hood.group_mut().barrier().await?)
}
