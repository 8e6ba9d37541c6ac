//! Windows over the buffers of requests.

use super::{
    FORMS,
    exchange::{neighbours, place},
};
use fabric_conformance::ensure_eq;
use onesided::{
    Group, ProgramResult,
    lock::{LockMode, Window, WindowOptions},
    prdma::{Buffer, Layout, Options, Point, points_init},
};
use rdma_fabric::Fabric;

/// After each exchange, members look up their sent data in the buffer of their right neighbour, and
/// leave an answer.
pub(super) async fn windows(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    let (left, right) = neighbours(fabric);
    for form in FORMS {
        let mut world = Group::world(fabric).await?;
        // The sent element, the received element, and the answer.
        let buffer = Buffer::<u32>::new(fabric, 3)?;
        let region = (buffer.key().ok_or("every rank may reach it")?, buffer.len());
        let window = Window::<u32>::over_region(&mut world, buffer.clone(), region, WindowOptions::default()).await?;
        let send = Point::new(right, 0, &buffer, Layout::contiguous::<u32>(0, 1)?);
        let receive = Point::new(left, 0, &buffer, Layout::contiguous::<u32>(1, 1)?);
        let (mut sends, mut receives) =
            points_init(&mut world, vec![send], vec![receive], &Options::form(form)).await?;
        for k in 0..4 {
            let value = |member: usize| (k * 10 + member) as u32;
            buffer.write(0, &[value(me)])?;
            for request in sends.iter_mut().chain(&mut receives) {
                request.start().await?;
            }
            for request in sends.iter_mut().chain(&mut receives) {
                request.wait().await?;
            }
            // The neighbour may not have received it yet.
            world.barrier().await?;
            let epoch = window.lock(LockMode::Exclusive, world.rank(right)?).await?;
            let there = epoch.get(1, vec![0]).await?;
            ensure_eq!(there, [value(me)], "{form}: what member {me} sent");
            epoch.put(2, [value(me) + 5]).await?;
            epoch.unlock().await?;
            world.barrier().await?;
            ensure_eq!(buffer.to_vec()?, [value(me), value(left), value(left) + 5], "{form}: member {me}");
        }
        window.free().await?;
    }
    Ok(())
}
