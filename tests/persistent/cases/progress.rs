//! Who moves the data while programs compute.

use super::FORMS;
use crate::{
    exchange::{Spec, Stage, all, busy, place},
    shapes::Shape,
    suite::verdict::{ensure, ensure_eq},
};
use onesided::{ProgramResult, prdma::Form};
use rdma_fabric::Fabric;
use std::time::Duration;

/// A member starts late, and both compute without a call. Each finds the exchange complete when it looks for the first time. Not
/// so without queues, for who looks first: the data of the other one wait for a call there.
pub(super) async fn unattended(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    let specs = FORMS.map(|form| Spec::new(Shape::ring(members), form));
    found_complete(fabric, &specs, "moves the data of").await
}

/// The same with each of `specs`; without queues nobody `does` it for a member that computes.
pub(super) async fn found_complete(fabric: &Fabric, specs: &[Spec], does: &str) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    for spec in specs {
        let form = spec.options.form;
        let mut hood = all(fabric, &spec.shape).await?;
        let mut stage = Stage::new(&mut hood, spec).await?;
        hood.group_mut().barrier().await?;
        let (before, after) = if me == 0 { (0, 150) } else { (20, 50) };
        busy(fabric, Duration::from_millis(before)).await;
        stage.start().await?;
        busy(fabric, Duration::from_millis(after)).await;
        let over = stage.request.test().await?;
        if form != Form::Cpu {
            ensure!(over, "{form}: not complete at member {me} after everybody has started");
        } else if me == 1 {
            ensure_eq!(over, false, "without queues nobody {does} a computing member");
        }
        stage.wait().await?;
        hood.group_mut().barrier().await?;
    }
    Ok(())
}
