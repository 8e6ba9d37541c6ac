//! Making an exchange by node: who travels with whom, queues, memory, addresses.

use super::{
    Wish,
    crossing::{Crossing, crossings},
    hops::{Home, Plan, View},
    nodes::Nodes,
    pairs::{Neighbour, neighbours},
};
use crate::{
    Form, PrdmaError, Result,
    buffer::Memory,
    engine::Edges,
    init::{
        Agreed, Block, Channel, Laid, Made, Making, Outcome, Staged, Wires, engines, least, longest, open, sides,
        together,
    },
    publish::publish,
};
use rdma_fabric::{Fabric, Rank};

/// Make the one request of `making`, whose ends have `agreed`. `None`, at all members, if nothing would travel together, or if there are too few queues for it and
/// nobody wishes [`Form::Cpu`]. Collective.
pub(crate) async fn make(making: &mut Making<'_>, agreed: &[Agreed], wish: Wish) -> Result<Option<Made>> {
    let fabric = making.group.fabric().clone();
    let Some(plan) = plan(making, agreed, wish).await? else { return Ok(None) };
    let edges = vec![plan.hops.iter().map(|hop| hop.edges).collect::<Vec<Edges>>()];
    let by_cpu = least(making.group, making.options.form.most().into()).await? == 0;
    let Outcome { form, obstacle, opened } = open(making.group, &fabric, &edges, 1, making.options).await?;
    if form == Form::Cpu && !by_cpu {
        return Ok(None);
    }
    let (channels, agreed): (Vec<Channel>, Vec<Agreed>) =
        plan.hops.iter().map(|hop| (hop.channel.clone(), hop.agreed.clone())).unzip();
    let wires = wires(&fabric, &plan, &channels, sides(&making.blocks));
    let wires = together(making.group, wires).await?;
    let ranks: Vec<Rank> = match plan.hops.iter().any(|hop| hop.home != Home::Edges) {
        true => (0..making.group.len()).map(|member| making.group.rank(member)).collect::<Result<_, _>>()?,
        false => channels.iter().map(|channel| channel.rank).collect(),
    };
    let laid = Laid { channels: &channels, agreed: &agreed, wires: &wires, relays: Some((&edges[0], &ranks)) };
    let engine = engines(making.group, making.headers, &[laid], opened).await?.pop().expect("one was asked for");
    Ok(Some(Made { engine, wires, fabric, form, obstacle, aggregation: wish.into() }))
}

/// The own part; `None` if no two blocks of the group travel together.
async fn plan(making: &mut Making<'_>, agreed: &[Agreed], wish: Wish) -> Result<Option<Plan>> {
    let Making { group, headers, requests, blocks, .. } = making;
    let (me, channels) = (group.me(), requests[0]);
    let nodes = together(group, Nodes::of_group(group)).await?;
    let home = nodes.of(me).unwrap_or(0);
    let mine = crossings(channels, agreed, sides(blocks), &nodes, me, wish);
    let tables = publish::<Crossing>(group, headers, &mine, nodes.members(home)).await;
    let known = tables.map_err(PrdmaError::from).and_then(|tables| neighbours(&nodes, home, &tables));
    let known = together(group, known).await?;
    if group.greatest(known.len() as u64).await? == 0 {
        return Ok(None);
    }
    let opposite = opposite(making, &nodes, home, &known).await;
    let group = &making.group;
    let plan = opposite.and_then(|opposite| {
        let longest = longest(group.fabric()) as u32;
        let (neighbours, opposite, gap) = (&known[..], &opposite[..], wish.gap);
        let view = View { nodes: &nodes, me, neighbours, opposite, channels, agreed, gap, longest };
        view.plan(|member| Ok(group.rank(member)?))
    });
    together(making.group, plan).await.map(Some)
}

/// By neighbour: who represents it, if this member represents its own node. The first member of a node tells which neighbours it has.
async fn opposite(
    making: &mut Making<'_>,
    nodes: &Nodes,
    home: usize,
    known: &[Neighbour],
) -> Result<Vec<Option<usize>>> {
    let me = making.group.me();
    let mine: Vec<u64> = match nodes.members(home)[0] == me {
        true => known.iter().map(|neighbour| neighbour.node as u64).collect(),
        false => Vec::new(),
    };
    let own: Vec<usize> = (0..known.len()).filter(|place| nodes.representative(home, *place) == me).collect();
    let asked: Vec<usize> = own.iter().map(|place| nodes.members(known[*place].node)[0]).collect();
    let tables = publish(making.group, making.headers, &mine, &asked).await?;
    let mut opposite = vec![None; known.len()];
    for (place, table) in own.into_iter().zip(tables) {
        let there = table.iter().position(|node| *node == home as u64);
        opposite[place] = there.map(|there| nodes.representative(known[place].node, there));
    }
    Ok(opposite)
}

/// The memory that the channels address.
fn wires(fabric: &Fabric, plan: &Plan, channels: &[Channel], (sends, receives): (&[Block], &[Block])) -> Result<Wires> {
    let mut wires = Wires::of_channels(fabric, channels)?;
    let room = |room: &Option<(u64, _)>| match *room {
        None => Ok(None),
        Some((bytes, width)) => Memory::new(fabric, bytes as usize, width).map(Some),
    };
    let out = plan.out.iter().map(room).collect::<Result<Vec<_>>>()?;
    let inn = plan.inn.iter().map(room).collect::<Result<Vec<_>>>()?;
    for hop in &plan.hops {
        let memory = match hop.home {
            Home::Edges => {
                wires.exchange(fabric, &hop.channel, &hop.agreed, sends, receives)?;
                continue;
            }
            Home::Out(place) => out[place].clone(),
            Home::In(place) => inn[place].clone(),
            Home::Send(slot) => Some(sends[slot].memory.clone()),
            Home::Receive(slot) => Some(receives[slot].memory.clone()),
        };
        if hop.channel.out.is_some() { wires.address(memory, None) } else { wires.address(None, memory) }
    }
    for (packs, blocks, memory, staged) in
        [(&plan.packs, sends, &out, &mut wires.packs), (&plan.unpacks, receives, &inn, &mut wires.unpacks)]
    {
        let at = |packed: &super::hops::Packed| {
            let memory = memory[packed.neighbour].clone()?;
            Some(Staged::at(&blocks[packed.slot], memory, packed.start))
        };
        staged.extend(packs.iter().filter_map(at));
    }
    Ok(wires)
}
