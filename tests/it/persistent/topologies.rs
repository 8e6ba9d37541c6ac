//! The neighbours of each member.

use super::{
    FORMS,
    areas::Cut,
    exchange::{Sizes, Spec, neighbours, place, through},
    shapes::Shape,
};
use fabric_conformance::ensure_eq;
use onesided::{
    Group, ProgramResult,
    prdma::{Buffer, Cartesian, Form, Neighbourhood, Options},
};
use rdma_fabric::Fabric;

/// Exchanges in one shape in all forms.
async fn in_all_forms(fabric: &Fabric, shape: &Shape, steps: u64) -> ProgramResult<()> {
    for form in FORMS {
        through(fabric, &Spec { sizes: Sizes::Mixed(7), ..Spec::new(shape.clone(), form) }, steps).await?;
    }
    Ok(())
}

/// Both neighbours are the same member in rings of one and two.
pub(super) async fn rings(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    in_all_forms(fabric, &Shape::ring(members), 8).await
}

pub(super) async fn torus(fabric: &Fabric, dims: [usize; 2]) -> ProgramResult<()> {
    in_all_forms(fabric, &Shape::torus(&dims), 4).await
}

/// Eight neighbours on a torus of two by two: each of the others several times, and never the
/// member itself.
pub(super) async fn surrounded(fabric: &Fabric) -> ProgramResult<()> {
    in_all_forms(fabric, &Shape::Moore { dims: vec![2, 2], periodic: vec![true; 2] }, 4).await?;
    in_all_forms(fabric, &Shape::Moore { dims: vec![2, 2], periodic: vec![true, false] }, 4).await
}

/// Nothing arrives from beyond a border, and the block remains unchanged.
pub(super) async fn borders(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    in_all_forms(fabric, &Shape::Grid { dims: vec![members], periodic: vec![false] }, 4).await?;
    if members.is_multiple_of(2) {
        in_all_forms(fabric, &Shape::Grid { dims: vec![2, members / 2], periodic: vec![false; 2] }, 4).await?;
        in_all_forms(fabric, &Shape::Grid { dims: vec![members / 2, 2], periodic: vec![true, false] }, 4).await?;
    }
    Ok(())
}

/// A block that is sent in slot s arrives in slot s XOR 1 (MPI 4.1, example 8.10), also if both are
/// the same member. Checked without the oracle.
pub(super) async fn opposite(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    for form in FORMS {
        let group = Group::world(fabric).await?;
        let topology = Cartesian::new(&[members, 1], &[true, true])?.topology(me);
        let mut hood = Neighbourhood::new(group, topology).await?;
        let (send, receive) = (Buffer::<u64>::new(fabric, 4)?, Buffer::<u64>::new(fabric, 4)?);
        let mut request = hood.alltoall_init(&send, &receive, 1, &Options::form(form)).await?;
        for k in 0..4 {
            let name = |member: usize, slot: u64| 1000 * k + 10 * member as u64 + slot;
            send.write(0, &[0, 1, 2, 3].map(|slot| name(me, slot)))?;
            request.start().await?;
            request.wait().await?;
            let (left, right) = neighbours(fabric);
            let want = [name(left, 1), name(right, 0), name(me, 3), name(me, 2)];
            ensure_eq!(receive.to_vec()?, want, "{form}, iteration {k} of member {me}");
        }
        hood.group_mut().barrier().await?;
    }
    Ok(())
}

/// Duplicates, loops, edges in one direction, a member without any, in different orders at both
/// ends.
pub(super) async fn tangled(fabric: &Fabric) -> ProgramResult<()> {
    let shapes = [
        // 0 and 1 have three edges and two back; 2 has two to itself; 3 only sends; 4 is alone.
        [vec![1, 2, 1, 1], vec![0, 2, 0], vec![2, 1, 2], vec![0, 2, 0], vec![]],
        // Only edges in one direction: a chain with a shortcut.
        [vec![1, 2], vec![2], vec![3], vec![4], vec![]],
        // No member has any edge.
        [vec![], vec![], vec![], vec![], vec![]],
        // Every member but the last sends to itself and to the last, which only receives.
        [vec![0, 4], vec![1, 4], vec![4, 2], vec![3, 4, 4], vec![]],
    ];
    for shape in &shapes {
        in_all_forms(fabric, &Shape::graph(shape), 4).await?;
    }
    Ok(())
}

/// One member is the neighbour of all.
pub(super) async fn star(fabric: &Fabric) -> ProgramResult<()> {
    let (_, members) = place(fabric);
    in_all_forms(fabric, &Shape::star(members), 4).await?;
    // Member 0 only sends, or only receives.
    let spread = |hub: bool| {
        Shape::by(members, |me| match (me, hub) {
            (0, true) => (1..members).collect(),
            (0, false) | (_, true) => vec![],
            _ => vec![0],
        })
    };
    in_all_forms(fabric, &spread(true), 4).await?;
    in_all_forms(fabric, &spread(false), 4).await?;
    let columns = Spec { receives: Cut::Column, ..Spec::new(Shape::star(members), Form::Mrc) };
    through(fabric, &columns, 4).await
}
