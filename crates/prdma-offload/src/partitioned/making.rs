//! Making a partitioned request: each edge becomes one channel for each of its partitions; these
//! channels share the queue and the READY.

use super::Partitioned;
use crate::{
    Aggregation, Buffer, EndOfData, Layout, Neighbourhood, Options, PrdmaError, Result, Side,
    engine::{CpuPartitions, Demand},
    init::{
        Block, Blocks, Channel, Compared, EdgeEnd, Handles, Made, Outcome, RequestBuilder, Wish, all_succeed, check,
        compiled_here, engines_with, least, open,
    },
};
use rdma_fabric::{Pod, provider::Boxed};

impl Neighbourhood {
    /// Makes a persistent exchange whose blocks are sent partition by partition (`MPI_Psend_init`,
    /// `MPI_Precv_init`): like [`Neighbourhood::alltoallw_init`], with each block cut into
    /// `partitions` equal parts, in order. A contiguous block is cut by its elements, any other
    /// along its outermost distance. Both ends of all edges have the same number of partitions.
    ///
    /// Nothing is packed, regardless of [`Options::direct_blocks`]: each run of bytes is a separate
    /// command. If a queue has too few slots for that, the request has a form with fewer queues,
    /// down to [`crate::Form::Cpu`].
    ///
    /// # Errors
    /// As [`Neighbourhood::alltoallw_init`]; [`PrdmaError::Uneven`], including for 0 partitions;
    /// [`PrdmaError::Disagreement`] if members pass different numbers of partitions;
    /// [`PrdmaError::Limit`] for more partitions than a 32-bit word can number.
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
        let blocks = Blocks { sends: blocks(send, sends), receives: blocks(receive, receives) };
        let elements = [size_of::<S>(), size_of::<R>()].map(|bytes| bytes as u64);
        self.partitioned(blocks, elements, partitions, options).await
    }

    /// Makes the exchange of `blocks`, whose elements have this many bytes. Collective.
    fn partitioned<'a>(
        &'a mut self,
        whole: Blocks,
        [sent, received]: [u64; 2],
        partitions: usize,
        options: &Options,
    ) -> Boxed<'a, Result<Partitioned>> {
        let options = Options { direct_blocks: u32::MAX, end: EndOfData::WithData, ..*options };
        compiled_here(async move {
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
                check(topology, &whole.sends, &whole.receives)?;
                let mut blocks = whole.sends.iter().chain(&whole.receives);
                blocks.try_for_each(|block| block.memory.open_to_all("a partitioned request"))?;
                let channels = spread(channels, partitions)?;
                let sends = cut(Side::Destination, &whole.sends, partitions, sent)?;
                Ok((channels, Blocks { sends, receives: cut(Side::Source, &whole.receives, partitions, received)? }))
            };
            // Otherwise members could read the partitions of a member that has none.
            let (edges, blocks) = all_succeed(group, cut()).await?;
            let requests = [&edges[..]];
            let mut builder = RequestBuilder {
                group,
                headers,
                requests: &requests,
                blocks: Ok(&blocks),
                options: &options,
                wish: Wish::Queues,
            };
            let compared = builder.compare().await.map_err(|error| of_whole(error, partitions));
            let RequestBuilder { group, .. } = builder;
            let compared = [compared?.pop().expect("one was asked for")];

            let demand = |at: usize| {
                let agreed = &compared[0].agreed[at * partitions..(at + 1) * partitions];
                // The data, and a word behind each partition.
                let data = agreed.iter().map(|agreed| agreed.data_slots().map(|slots| slots + 1)).sum::<Option<u64>>();
                Demand::new(data, agreed[0].inn.is_some())
            };
            let demands = [(0..channels.len()).map(demand).collect::<Vec<_>>()];
            let Outcome { form, obstacle, opened } = open(group, &demands, partitions as u64, &options).await?;
            let opened =
                opened.map(|opened| opened.into_iter().map(|opened| opened.per_partition(partitions)).collect());
            let handles = Handles::open(&fabric);
            let engines = engines_with(
                group,
                headers,
                &compared,
                opened,
                (&handles, 0),
                |opened, Compared { channels, agreed, connections }, theirs| {
                    opened.partitioned(&fabric, partitions, channels, agreed, connections, theirs)
                },
                |Compared { channels, agreed, connections }, theirs| {
                    CpuPartitions::new(&fabric, partitions, channels, agreed, connections, theirs)
                },
            );
            let engines = engines.await;
            let [Compared { connections, .. }] = compared;
            let request = engines.and_then(|mut engines| {
                let engine = engines.pop().expect("one was asked for");
                let made =
                    Made { engine, connections, fabric, form, obstacle, aggregation: Aggregation::None, guarded: None };
                Partitioned::new(made, partitions, &edges, &blocks)
            });
            all_succeed(group, request).await
        })
    }
}

fn blocks<T: Pod>(buffer: &Buffer<T>, layouts: &[Layout]) -> Vec<Block> {
    layouts.iter().map(|layout| buffer.block(*layout)).collect()
}

/// Cuts blocks into partitions, by slot and partition.
fn cut(side: Side, blocks: &[Block], partitions: usize, element: u64) -> Result<Vec<Block>> {
    let uneven = |slot, of| PrdmaError::Uneven { side, slot, partitions, of };
    let mut all = Vec::with_capacity(blocks.len() * partitions);
    for (slot, block) in blocks.iter().enumerate() {
        let cut = block.layout.cut(partitions as u64, element);
        let cut = cut.ok_or_else(|| uneven(slot, block.layout.divisible(element)))?;
        all.extend(cut.into_iter().map(|layout| Block { memory: block.memory.clone(), layout }));
    }
    Ok(all)
}

/// Makes a channel of each partition; those of one edge are consecutive.
fn spread(channels: &[Channel], partitions: usize) -> Result<Vec<Channel>> {
    let most = channels.iter().map(|channel| u64::from(channel.index) + 1).max().unwrap_or(1);
    let limit = u64::from(u32::MAX) / most;
    if partitions as u64 > limit {
        return Err(PrdmaError::Limit { what: "partitions", value: partitions as u64, limit });
    }
    let partition = |channel: &Channel, at: usize| {
        let end = |end: EdgeEnd| EdgeEnd { slot: end.slot * partitions + at, ..end };
        Channel {
            place: channel.place * partitions + at,
            index: channel.index * partitions as u32 + at as u32,
            out: channel.out.map(end),
            inn: channel.inn.map(end),
            ..*channel
        }
    };
    Ok(channels.iter().flat_map(|channel| (0..partitions).map(move |at| partition(channel, at))).collect())
}

/// Turns the error of a partition into that of its block.
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
