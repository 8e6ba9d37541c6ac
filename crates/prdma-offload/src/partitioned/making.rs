//! Making a partitioned request: each edge becomes as many channels as it has partitions, which share its queue and its READY.

use super::{Carrier, Partitioned};
use crate::{
    Buffer, Layout, Neighbourhood, Options, PrdmaError, Result, Side,
    engine::{Contact, CpuParts, Desk, Edges},
    init::{Block, Blocks, Channel, End, Making, Outcome, check, contacts, least, open, together},
};
use rdma_fabric::Pod;

impl Neighbourhood {
    /// A persistent exchange whose blocks are sent part by part (`MPI_Psend_init`, `MPI_Precv_init`): as
    /// [`Neighbourhood::alltoallw_init`], each block cut into `partitions` equal parts, in order. A contiguous block is cut by its elements, another
    /// along its outermost distance. Both ends of all edges have the same number of partitions.
    ///
    /// Nothing is packed, whatever [`Options::direct_blocks`] says: each run of bytes is a command of its own. Where a queue has not enough slots for
    /// that, the request has a thriftier form, down to [`crate::Form::Cpu`].
    ///
    /// # Errors
    /// As [`Neighbourhood::alltoallw_init`]; [`PrdmaError::Uneven`], also for 0 partitions; [`PrdmaError::Disagreement`] if members give different
    /// numbers of partitions; [`PrdmaError::Limit`] for more than a 32-bit word can number.
    #[allow(clippy::too_many_arguments)]
    pub async fn partitioned_init<S: Pod, R: Pod>(
        &mut self,
        send: &Buffer<S>,
        sends: &[Layout],
        receive: &Buffer<R>,
        receives: &[Layout],
        partitions: usize,
        options: &Options,
    ) -> Result<Partitioned> {
        let Neighbourhood { group, topology, channels, headers, .. } = self;
        let fabric = group.fabric().clone();
        let (fewest, most) = (least(group, partitions as u64).await?, group.greatest(partitions as u64).await?);
        if fewest != most {
            return Err(PrdmaError::Disagreement { what: "numbers of partitions", least: fewest, most });
        }
        if partitions == 0 {
            return Err(PrdmaError::Uneven { side: Side::Destination, slot: 0, partitions, of: 0 });
        }
        let cut = || {
            let whole = Blocks { sends: blocks(send, sends), receives: blocks(receive, receives) };
            check(topology, &whole.sends, &whole.receives)?;
            let channels = spread(channels, partitions)?;
            let sends = parts(Side::Destination, &whole.sends, partitions, size_of::<S>())?;
            Ok((
                channels,
                Blocks { sends, receives: parts(Side::Source, &whole.receives, partitions, size_of::<R>())? },
            ))
        };
        // Nobody looks for the parts of who has none.
        let (edges, blocks) = together(group, cut()).await?;
        let requests = [&edges[..]];
        let options = Options { direct_blocks: u32::MAX, ..*options };
        let mut making = Making { group, headers, requests: &requests, blocks: Ok(&blocks), options: &options };
        let compared = making.compare().await.map_err(|error| of_whole(error, partitions));
        let Making { group, .. } = making;
        let part = compared?.pop().expect("one was asked for");

        let slots = |at: usize| {
            let agreed = &part.agreed[at * partitions..(at + 1) * partitions];
            // The data, and a word behind each part.
            let data = agreed.iter().map(|agreed| agreed.data_slots().map(|slots| slots + 1)).sum::<Option<u64>>();
            Edges::new(data, agreed[0].inn.is_some())
        };
        let wanted = [(0..channels.len()).map(slots).collect::<Vec<_>>()];
        let Outcome { form, obstacle, opened } = open(group, &fabric, &wanted, partitions as u64, &options).await?;
        let all: Vec<&Channel> = edges.iter().collect();
        let carrier = match opened.and_then(|mut opened| opened.pop()) {
            Some(opened) => {
                let opened = opened.spread(partitions);
                let mine = opened.contacts(&edges, &part.wires);
                let theirs = contacts(group, headers, &all, mine, |contact: &Contact| contact.name).await;
                theirs.and_then(|theirs| {
                    let parts = opened.parts(&fabric, partitions, &edges, &part.agreed, &part.wires, &theirs)?;
                    Ok(Carrier::Queues(parts))
                })
            }
            None => {
                let desks = edges.iter().map(|channel| Desk::of(channel, &part.wires)).collect();
                let theirs = contacts(group, headers, &all, Ok(desks), |desk: &Desk| desk.name).await;
                theirs.and_then(|theirs| {
                    let parts = CpuParts::new(&fabric, partitions, &edges, &part.agreed, &part.wires, &theirs)?;
                    Ok(Carrier::Cpu(parts))
                })
            }
        };
        let request = carrier.and_then(|carrier| {
            Partitioned::new(carrier, part.wires, &fabric, (form, obstacle), partitions, &edges, &blocks)
        });
        together(group, request).await
    }
}

fn blocks<T: Pod>(buffer: &Buffer<T>, layouts: &[Layout]) -> Vec<Block> {
    layouts.iter().map(|layout| buffer.block(*layout)).collect()
}

/// The parts of blocks, by slot and partition.
fn parts(side: Side, blocks: &[Block], partitions: usize, element: usize) -> Result<Vec<Block>> {
    let uneven = |slot, of| PrdmaError::Uneven { side, slot, partitions, of };
    let mut all = Vec::with_capacity(blocks.len() * partitions);
    for (slot, block) in blocks.iter().enumerate() {
        let element = element as u64;
        let parts = block.layout.parts(partitions as u64, element);
        let parts = parts.ok_or_else(|| uneven(slot, block.layout.divisible(element)))?;
        all.extend(parts.into_iter().map(|layout| Block { memory: block.memory.clone(), layout }));
    }
    Ok(all)
}

/// The channels of all parts; those of one edge come one after the other.
fn spread(channels: &[Channel], partitions: usize) -> Result<Vec<Channel>> {
    let most = channels.iter().map(|channel| u64::from(channel.index) + 1).max().unwrap_or(1);
    let limit = u64::from(u32::MAX) / most;
    if partitions as u64 > limit {
        return Err(PrdmaError::Limit { what: "partitions", value: partitions as u64, limit });
    }
    let part = |channel: &Channel, at: usize| {
        let end = |end: End| End { slot: end.slot * partitions + at, ..end };
        Channel {
            place: channel.place * partitions + at,
            index: channel.index * partitions as u32 + at as u32,
            out: channel.out.map(end),
            inn: channel.inn.map(end),
            ..*channel
        }
    };
    Ok(channels.iter().flat_map(|channel| (0..partitions).map(move |at| part(channel, at))).collect())
}

/// An error of a part, told of the block.
fn of_whole(error: PrdmaError, partitions: usize) -> PrdmaError {
    let many = partitions.max(1);
    match error {
        PrdmaError::Unmatched { side, slot, member } => PrdmaError::Unmatched { side, slot: slot / many, member },
        PrdmaError::Size { side, slot, member, mine, theirs } => {
            let (mine, theirs) = (mine * many as u64, theirs * many as u64);
            PrdmaError::Size { side, slot: slot / many, member, mine, theirs }
        }
        other => other,
    }
}
