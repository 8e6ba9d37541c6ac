//! Data whose END is a command of its own.

use super::{
    FORMS,
    exchange::{Exchange, Sizes, Spec, busy, each, neighbours, place, through},
    pace::is_late,
    shapes::Shape,
};
use fabric_conformance::ensure_eq;
use onesided::{
    Group, ProgramResult,
    prdma::{Buffer, EndOfData, Form, Layout, Options, Point, points_init},
};
use rdma_fabric::Fabric;
use std::time::Duration;

/// Returns the options of `form` with a separate END.
pub(super) fn separate(form: Form) -> Options {
    Options { end: EndOfData::Separate, ..Options::form(form) }
}

/// A member is late at start, at wait, and by several iterations of the others; every other
/// iteration ends by polling.
pub(super) async fn separately(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let spec = |form| Spec { options: separate(form), ..Spec::new(Shape::ring(members), form) };
    let late = async |exchange: &mut Exchange| {
        for k in 0..12 {
            is_late(fabric, k, true, (me, k) == (1, 6)).await;
            exchange.start().await?;
            is_late(fabric, k, false, (me, k) == (1, 9)).await;
            if k % 2 == 0 {
                while !exchange.request.test().await? {
                    fabric.sleep(Duration::from_micros(2)).await;
                }
                exchange.data.check()?;
            } else {
                exchange.wait().await?;
            }
        }
        Ok(())
    };
    each(fabric, FORMS.map(spec), late).await
}

/// Some members request a separate END, so that edges of a queue end in different ways; duplicates,
/// loops, edges in one direction, and many blocks.
pub(super) async fn mixed(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    let shape = Shape::graph(&[vec![1, 2, 1, 3], vec![0, 2, 0], vec![2, 1, 2], vec![0]]);
    for form in FORMS {
        for separate in [0b0001, 0b0110, 0b1111] {
            let end = if separate >> me & 1 == 1 { EndOfData::Separate } else { EndOfData::WithData };
            let options = Options { end, direct_blocks: u32::MAX, ..Options::form(form) };
            let spec = Spec { options, sizes: Sizes::Mixed(separate), ..Spec::new(shape.clone(), form) };
            through(fabric, &spec, 4).await?;
        }
    }
    Ok(())
}

/// A request that only sends and one that only receives, of which each is early in turn.
pub(super) async fn points(fabric: &Fabric) -> ProgramResult<()> {
    let (me, _) = place(fabric);
    let (left, right) = neighbours(fabric);
    for form in FORMS {
        let mut world = Group::world(fabric).await?;
        let (send, receive) = (Buffer::<u32>::new(fabric, 4)?, Buffer::<u32>::new(fabric, 4)?);
        let block = Layout::contiguous::<u32>(0, 4)?;
        let (to, from) = (Point::new(right, 0, &send, block), Point::new(left, 0, &receive, block));
        let (mut sends, mut receives) = points_init(&mut world, vec![to], vec![from], &separate(form)).await?;
        for k in 0..6 {
            send.write(0, &[(10 * k + me) as u32; 4])?;
            if k % 2 == me % 2 {
                busy(fabric, Duration::from_micros(30)).await;
            }
            for request in sends.iter_mut().chain(&mut receives) {
                request.start().await?;
            }
            for request in receives.iter_mut().chain(&mut sends) {
                request.wait().await?;
            }
            let mut got = [0u32; 4];
            receive.read(0, &mut got)?;
            ensure_eq!(got, [(10 * k + left) as u32; 4], "{form}, iteration {k}");
        }
        world.barrier().await?;
    }
    Ok(())
}
