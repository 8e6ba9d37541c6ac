//! Making an exchange by node: its pairs of nodes, queues, memory and addresses.

use super::{
    AgreedAggregation,
    pairs::{CrossNodeEdge, Neighbour, cross_node_edges, neighbours},
    plan::{Backing, Packed, Plan, Planner},
};
use crate::{
    Form, PrdmaError, Result,
    buffer::Memory,
    engine::Demand,
    init::{
        Agreed, Block, Channel, Compared, Connections, Handles, Made, Outcome, RequestBuilder, Staged, all_succeed,
        engines, least, longest, open, sides,
    },
    nodes::Nodes,
    publish::publish,
};
use rdma_fabric::{Fabric, Rank};

/// Makes the single request of `builder`, whose ends have `agreed`. Yields `None`, at all members,
/// if no blocks would travel together, or if there are too few queues and no member requests
/// [`Form::Cpu`]. Collective.
pub(crate) async fn make(
    builder: &mut RequestBuilder<'_>,
    agreed: &[Agreed],
    aggregation: AgreedAggregation,
) -> Result<Option<Made>> {
    let fabric = builder.group.fabric().clone();
    let Some(plan) = plan(builder, agreed, aggregation).await? else { return Ok(None) };
    let demands = vec![plan.channels.iter().map(|planned| planned.demand).collect::<Vec<Demand>>()];
    let by_cpu = least(builder.group, builder.options.form.most().into()).await? == 0;
    let Outcome { form, obstacle, opened } = open(builder.group, &demands, 1, builder.options).await?;
    if form == Form::Cpu && !by_cpu {
        return Ok(None);
    }
    let (channels, agreed): (Vec<Channel>, Vec<Agreed>) =
        plan.channels.iter().map(|planned| (planned.channel.clone(), planned.agreed.clone())).unzip();
    let connections = connections(&fabric, &plan, &channels, sides(&builder.blocks));
    let connections = all_succeed(builder.group, connections).await?;
    let ranks: Vec<Rank> = match plan.channels.iter().any(|planned| planned.backing != Backing::Edges) {
        true => (0..builder.group.len()).map(|member| builder.group.rank(member)).collect::<Result<_, _>>()?,
        false => channels.iter().map(|channel| channel.rank).collect(),
    };
    let compared = [Compared { channels: &channels, agreed, connections }];
    let relays = Some((&demands[0][..], &ranks[..]));
    let mut engines =
        engines(builder.group, builder.headers, &compared, opened, (&Handles::open(&fabric), 0), relays).await?;
    let (engine, [Compared { connections, .. }]) = (engines.pop().expect("one was asked for"), compared);
    Ok(Some(Made { engine, connections, fabric, form, obstacle, aggregation: aggregation.into(), guarded: None }))
}

/// Makes this member's plan; `None` if no two blocks of the group travel together. Collective.
async fn plan(
    builder: &mut RequestBuilder<'_>,
    agreed: &[Agreed],
    aggregation: AgreedAggregation,
) -> Result<Option<Plan>> {
    let RequestBuilder { group, headers, requests, blocks, .. } = builder;
    let (me, channels) = (group.me(), requests[0]);
    let nodes = all_succeed(group, Nodes::of_group(group).map_err(PrdmaError::from)).await?;
    let home = nodes.of(me).unwrap_or(0);
    let mine = cross_node_edges(channels, agreed, sides(blocks), &nodes, me, aggregation);
    let tables = publish::<CrossNodeEdge>(group, headers, &mine, nodes.members(home)).await;
    let known = tables.map_err(PrdmaError::from).and_then(|tables| neighbours(&nodes, home, &tables));
    let known = all_succeed(group, known).await?;
    if group.greatest(known.len() as u64).await? == 0 {
        return Ok(None);
    }
    let opposite = opposite(builder, &nodes, home, &known).await;
    let group = &builder.group;
    let plan = opposite.and_then(|opposite| {
        let longest = longest(group.fabric()) as u32;
        let (neighbours, opposite, gap) = (&known[..], &opposite[..], aggregation.gap);
        let planner = Planner { nodes: &nodes, me, neighbours, opposite, channels, agreed, gap, longest };
        planner.plan(|member| Ok(group.rank(member)?))
    });
    all_succeed(builder.group, plan).await.map(Some)
}

/// Yields the opposite representative of each neighbour, if this member represents its own node.
/// The first member of a node publishes the node's neighbours. Collective.
async fn opposite(
    builder: &mut RequestBuilder<'_>,
    nodes: &Nodes,
    home: usize,
    known: &[Neighbour],
) -> Result<Vec<Option<usize>>> {
    let me = builder.group.me();
    let mine: Vec<u64> = match nodes.members(home)[0] == me {
        true => known.iter().map(|neighbour| neighbour.node as u64).collect(),
        false => Vec::new(),
    };
    let own: Vec<usize> = (0..known.len()).filter(|place| nodes.representative(home, *place) == me).collect();
    let asked: Vec<usize> = own.iter().map(|place| nodes.members(known[*place].node)[0]).collect();
    let tables = publish(builder.group, builder.headers, &mine, &asked).await?;
    let mut opposite = vec![None; known.len()];
    for (place, table) in own.into_iter().zip(tables) {
        let there = table.iter().position(|node| *node == home as u64);
        opposite[place] = there.map(|there| nodes.representative(known[place].node, there));
    }
    Ok(opposite)
}

/// Returns the memory that the channels address.
fn connections(
    fabric: &Fabric,
    plan: &Plan,
    channels: &[Channel],
    (sends, receives): (&[Block], &[Block]),
) -> Result<Connections> {
    let mut connections = Connections::of_channels(fabric, channels)?;
    let room = |room: &Option<(u64, _)>| match *room {
        None => Ok(None),
        Some((bytes, width)) => Memory::new(fabric, bytes as usize, width).map(Some),
    };
    let out = plan.out.iter().map(room).collect::<Result<Vec<_>>>()?;
    let inn = plan.inn.iter().map(room).collect::<Result<Vec<_>>>()?;
    for planned in &plan.channels {
        let memory = match planned.backing {
            Backing::Edges => {
                connections.exchange(fabric, &planned.channel, &planned.agreed, sends, receives)?;
                continue;
            }
            Backing::Out(place) => out[place].clone(),
            Backing::In(place) => inn[place].clone(),
            Backing::Send(slot) => Some(sends[slot].memory.clone()),
            Backing::Receive(slot) => Some(receives[slot].memory.clone()),
        };
        if planned.channel.out.is_some() {
            connections.address(memory, None)
        } else {
            connections.address(None, memory)
        }
    }
    for (packs, blocks, memory, staged) in
        [(&plan.packs, sends, &out, &mut connections.packs), (&plan.unpacks, receives, &inn, &mut connections.unpacks)]
    {
        let at = |packed: &Packed| {
            let memory = memory[packed.neighbour].clone()?;
            Some(Staged::at(&blocks[packed.slot], memory, packed.start))
        };
        staged.extend(packs.iter().filter_map(at));
    }
    Ok(connections)
}
