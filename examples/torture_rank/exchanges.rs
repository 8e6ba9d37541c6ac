//! Rounds of exchanges with fixed neighbours, and of reflects.

use crate::{Play, Rounds};
use onesided::{
    Fabric, Group, ProgramResult,
    prdma::{Buffer, Cartesian, Neighbourhood, Options},
    xmp::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template, Widths},
};

const BYTES: usize = 4096;
/// Elements of the distributed array at each node.
const EACH: i64 = 50;

/// A persistent exchange with both neighbours of a ring.
pub(super) async fn prdma(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let world = Group::world(fabric).await?;
    let (me, members) = (world.me(), world.len());
    let ring = Cartesian::new(&[members], &[true])?;
    let mut hood = Neighbourhood::new(world, ring.topology(me)).await?;
    let (send, receive) = (Buffer::<u8>::new(fabric, 2 * BYTES)?, Buffer::<u8>::new(fabric, 2 * BYTES)?);
    let mut exchange = hood.alltoall_init(&send, &receive, BYTES, &Options::auto(&fabric.caps())).await?;
    hood.group_mut().barrier().await?;
    let (left, right) = ring.shift(me, 0, 1)?;
    let mut rounds = Rounds::begin(play, fabric.rank().number())?;
    let mut got = vec![0; 2 * BYTES];
    loop {
        let stamp = |member: usize| (member as u8).wrapping_add(rounds.made as u8);
        send.write(0, &vec![stamp(me); 2 * BYTES])?;
        exchange.start().await?;
        exchange.wait().await?;
        receive.read(0, &mut got)?;
        for (neighbour, got) in [left, right].into_iter().flatten().zip(got.chunks_exact(BYTES)) {
            if got.iter().any(|byte| *byte != stamp(neighbour)) {
                return Err(format!("the block of {neighbour} in round {} is wrong", rounds.made).into());
            }
        }
        if rounds.are_over(hood.group_mut()).await? {
            return Ok(rounds.made);
        }
    }
}

/// A reflect of a ring of numbers.
pub(super) async fn xmp(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let group = Group::world(fabric).await?;
    let all = EACH * group.len() as i64;
    let nodes = Nodes::new(&[group.len()], Order::LastFastest)?;
    let template = Template::new(&(0..all), &[Format::Block], &nodes)?;
    let mapping = template.align(&(0..all), &[Align::with(0)])?.shadow(&[Shadow::of(1)])?;
    let mut set = NodeSet::new(group, nodes)?;
    let array: Array<f64> = set.array(&mapping)?;
    set.barrier().await?;
    let mut rounds = Rounds::begin(play, fabric.rank().number())?;
    loop {
        let round = rounds.made as f64;
        array.fill(|index| index[0] as f64 + round)?;
        set.reflect(&array, &Reflect::widths(&[Widths::of(1).periodic()])).await?;
        {
            let cells = array.view()?;
            let first = EACH * set.me() as i64;
            let below = (first + all - 1) % all;
            let above = (first + EACH) % all;
            let ends = [cells[0], cells[cells.len() - 1]];
            if ends != [below as f64 + round, above as f64 + round] {
                return Err(format!("the shadow in round {round} is {ends:?}").into());
            }
        }
        if rounds.are_over(set.group_mut()).await? {
            return Ok(rounds.made);
        }
    }
}
