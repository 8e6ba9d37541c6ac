//! Making requests: all members of a neighbourhood together.
//!
//! 1. Each checks its own blocks; they agree on whether all are right and, in the same round, on
//!    whether all ask for [`Aggregation`]. Each publishes its [terms](mod@terms) and compares them
//!    with its neighbours'.
//! 2. They agree on a form: the thriftiest that any of them asks for or can afford. Each opens its
//!    queues; if there were too few anywhere, all close them and try the next thriftier form, down
//!    to [`Form::Cpu`], which needs none. The outcome depends only on the options and on the queues
//!    that are free.
//! 3. Each publishes where its neighbours find its queues, words and buffers.
//!
//! An error of any member in 1 or 3 becomes an error of all, before anybody waits for that member
//! without result.

mod agreeing;
mod channels;
mod terms;
mod wires;

pub(crate) use agreeing::{Outcome, QueueBudget, all_succeed, all_succeed_least, least, longest, open_everywhere};
pub(crate) use channels::{Channel, EdgeEnd, Name, channels, contacts, single};
pub(crate) use terms::{Agreed, Block, Blocks, Incoming, Outgoing, check};
pub(crate) use wires::{Staged, Wires};

use crate::{
    Aggregation, Form, Options, PrdmaError, Result, aggregation,
    engine::{AnyEngine, CpuContact, CpuEngine, Demand, OpenQueues, QueueContact, QueuesOrCpu, assign_queues, widest},
    publish::publish,
};
use channels::neighbours;
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, provider::Boxed};
use terms::{agree, terms};

/// Puts `future` behind a pointer. The body of an `async` block is compiled again in each crate
/// that polls it; behind this pointer, created by a function that is not generic, it is compiled
/// only here.
pub(crate) fn compiled_here<'a, T>(future: impl Future<Output = T> + Send + 'a) -> Boxed<'a, T> {
    Box::pin(future)
}

/// A request's machinery.
pub(crate) struct Made<E = AnyEngine> {
    /// Its queues close before the memory that they address is freed.
    pub(crate) engine: E,
    pub(crate) wires: Wires,
    pub(crate) fabric: Fabric,
    pub(crate) form: Form,
    /// The reason why the form is no richer, if queues could not be opened.
    pub(crate) obstacle: Option<PrdmaError>,
    pub(crate) aggregation: Aggregation,
}

/// What is to be made, and with whom.
pub(crate) struct RequestBuilder<'a> {
    pub(crate) group: &'a mut Group,
    /// Where members publish tables.
    pub(crate) headers: &'a GroupMemory,
    /// The channels of each request.
    pub(crate) requests: &'a [&'a [Channel]],
    /// What is sent and what is received, by slot, [checked](check); or why there is nothing, which
    /// the others then learn.
    pub(crate) blocks: Result<&'a Blocks, &'a PrdmaError>,
    pub(crate) options: &'a Options,
}

/// A request whose members have compared their terms: everything but its engine.
pub(crate) struct Compared<'a> {
    pub(crate) channels: &'a [Channel],
    pub(crate) agreed: Vec<Agreed>,
    pub(crate) wires: Wires,
}

impl<'a> RequestBuilder<'a> {
    /// Compares what both ends of every edge expect: step 1. Collective.
    pub(crate) async fn compare(&mut self) -> Result<Vec<Compared<'a>>> {
        let sound = self.sound();
        all_succeed(self.group, sound).await?;
        self.compare_sound().await
    }

    /// Returns whether this member has blocks. This is agreed on first: a neighbour whose terms
    /// were missing would look like an edge without an end.
    fn sound(&self) -> Result<()> {
        self.blocks.map(drop).map_err(Clone::clone)
    }

    /// Compares what both ends of every edge expect, where all members have blocks. Collective.
    async fn compare_sound(&mut self) -> Result<Vec<Compared<'a>>> {
        let agreed = self.ends().await?;
        let compared = agreed.and_then(|agreed| self.with_memory(agreed));
        all_succeed(self.group, compared).await
    }

    /// Makes one request: by node where all ask for that, otherwise with each edge by itself.
    /// Collective.
    pub(crate) async fn make_by_node(mut self) -> Result<Made> {
        let sound = self.sound();
        let compared = match self.options.aggregation.agree(self.group, sound).await? {
            None => self.compare_sound().await?,
            Some(aggregation) => {
                let agreed = self.ends().await?;
                let agreed = all_succeed(self.group, agreed).await?;
                if let Some(made) = aggregation::make(&mut self, &agreed[0], aggregation).await? {
                    return Ok(made);
                }
                let compared = self.with_memory(agreed);
                all_succeed(self.group, compared).await?
            }
        };
        Ok(self.finish(compared).await?.pop().expect("one was asked for"))
    }

    /// Yields what the ends of each request's channels have agreed on, where all members have
    /// blocks. The inner error is this member's, the outer one is shared by all.
    async fn ends(&mut self) -> Result<Result<Vec<Vec<Agreed>>>> {
        let RequestBuilder { group, headers, requests, blocks, options } = self;
        let (sends, receives) = sides(blocks);
        let all: Vec<&Channel> = requests.iter().copied().flatten().collect();
        let mine: Vec<_> = all.iter().map(|channel| terms(channel, sends, receives, options.direct_blocks)).collect();
        let (members, by) = neighbours(&all);
        let tables = publish(group, headers, &mine, &members).await;
        Ok(tables.map_err(PrdmaError::from).and_then(|tables| {
            let longest = longest(group.fabric()) as u32;
            let (mut mine, mut tables) = (mine.iter(), by.iter().map(|at| &tables[*at]));
            let request = |channels: &[Channel]| {
                let ends = channels.iter().zip(mine.by_ref()).zip(tables.by_ref());
                let agreed = ends.map(|((channel, mine), table)| agree(group.me(), channel, mine, table, longest));
                agreed.collect::<Result<Vec<_>>>()
            };
            requests.iter().copied().map(request).collect()
        }))
    }

    /// Allocates the memory for what was agreed on.
    fn with_memory(&self, agreed: Vec<Vec<Agreed>>) -> Result<Vec<Compared<'a>>> {
        let (sends, receives) = sides(&self.blocks);
        let request = |(channels, agreed): (&&'a [Channel], Vec<Agreed>)| {
            let wires = Wires::new(self.group.fabric(), channels, &agreed, sends, receives)?;
            Ok(Compared { channels, agreed, wires })
        };
        self.requests.iter().zip(agreed).map(request).collect()
    }

    /// Makes the requests. Collective over the group.
    pub(crate) async fn make(mut self) -> Result<Vec<Made>> {
        let compared = self.compare().await?;
        self.finish(compared).await
    }

    /// Agrees on a form and makes the engines: steps 2 and 3.
    async fn finish(self, compared: Vec<Compared<'_>>) -> Result<Vec<Made>> {
        let RequestBuilder { group, headers, options, .. } = self;
        let fabric = group.fabric().clone();
        let demands: Vec<Vec<Demand>> =
            compared.iter().map(|request| request.agreed.iter().map(Demand::of).collect()).collect();
        let Outcome { form, obstacle, opened } = open(group, &demands, 1, options).await?;
        let engines = engines(group, headers, &compared, opened, None).await?;
        let made = engines.into_iter().zip(compared).map(|(engine, Compared { wires, .. })| {
            let (fabric, obstacle) = (fabric.clone(), obstacle.clone());
            Made { engine, wires, fabric, form, obstacle, aggregation: Aggregation::None }
        });
        Ok(made.collect())
    }
}

/// Returns the blocks that are sent, and those that are received.
pub(crate) fn sides<'b>(blocks: &Result<&'b Blocks, &PrdmaError>) -> (&'b [Block], &'b [Block]) {
    blocks.as_ref().map_or((&[][..], &[][..]), |blocks| (&blocks.sends, &blocks.receives))
}

/// Exchanges addresses, and makes the engines of requests. If data are forwarded, `relays` has the
/// channels' demands and the ranks that can hold them up. Collective.
pub(crate) async fn engines(
    group: &mut Group,
    headers: &GroupMemory,
    requests: &[Compared<'_>],
    opened: Option<Vec<OpenQueues>>,
    relays: Option<(&[Demand], &[Rank])>,
) -> Result<Vec<AnyEngine>> {
    let fabric = group.fabric().clone();
    let engines = engines_with(
        group,
        headers,
        requests,
        opened,
        |opened, Compared { channels, agreed, wires }, theirs| {
            let ranks = match relays {
                Some((_, ranks)) => ranks.into(),
                None => channels.iter().map(|channel| channel.rank).collect(),
            };
            opened.engine(&fabric, channels, agreed, wires, theirs, ranks)
        },
        |Compared { channels, agreed, wires }, theirs| {
            CpuEngine::exchange(&fabric, channels, agreed, wires, theirs, relays)
        },
    );
    let engines = engines.await;
    all_succeed(group, engines).await
}

/// Exchanges addresses, and makes an engine of each request: `with_queues` where queues were
/// opened, `with_cpu` elsewhere. Collective; an error is this member's own.
pub(crate) async fn engines_with<Q, C>(
    group: &mut Group,
    headers: &GroupMemory,
    requests: &[Compared<'_>],
    opened: Option<Vec<OpenQueues>>,
    with_queues: impl Fn(OpenQueues, &Compared<'_>, &[QueueContact]) -> Result<Q>,
    with_cpu: impl Fn(&Compared<'_>, &[CpuContact]) -> Result<C>,
) -> Result<Vec<QueuesOrCpu<Q, C>>> {
    let all: Vec<&Channel> = requests.iter().flat_map(|request| request.channels).collect();
    match opened {
        Some(opened) => {
            let mine = opened.iter().zip(requests).map(|(opened, request)| {
                let Compared { channels, wires, .. } = request;
                opened.contacts(channels, wires)
            });
            let mine = mine.collect::<Result<Vec<_>>>().map(|contacts| contacts.concat());
            let mut theirs = &contacts(group, headers, &all, mine, |contact: &QueueContact| contact.name).await?[..];
            let engine = |(opened, request): (OpenQueues, &Compared<'_>)| {
                let first = theirs.split_off(..request.channels.len()).unwrap_or_default();
                Ok(QueuesOrCpu::Queues(with_queues(opened, request, first)?))
            };
            opened.into_iter().zip(requests).map(engine).collect()
        }
        None => {
            let mine = requests
                .iter()
                .flat_map(|request| request.channels.iter().map(|channel| CpuContact::of(channel, &request.wires)));
            let mine = Ok(mine.collect());
            let mut theirs = &contacts(group, headers, &all, mine, |contact: &CpuContact| contact.name).await?[..];
            let engine = |request: &Compared<'_>| {
                let first = theirs.split_off(..request.channels.len()).unwrap_or_default();
                Ok(QueuesOrCpu::Cpu(with_cpu(request, first)?))
            };
            requests.iter().map(engine).collect()
        }
    }
}

/// Agrees on a form, and opens what it needs: for each request, queues for channels with these
/// demands, whose data come in this many `partitions`. Collective.
pub(crate) async fn open(
    group: &mut Group,
    requests: &[Vec<Demand>],
    partitions: u64,
    options: &Options,
) -> Result<Outcome<Vec<OpenQueues>>> {
    let fabric = group.fabric().clone();
    // The number of queues needed if a stage has at most `most`.
    let needs = |most: u32| {
        let form = Form::with_most(most, u32::MAX);
        requests.iter().map(|demands| assign_queues(form, demands).queues.len() as u64).sum::<u64>()
    };
    let widest = requests.iter().map(|demands| widest(demands)).max().unwrap_or(0);
    let can = |afford: u32| {
        let affordable = |most: &u32| needs(*most) <= u64::from(afford);
        if affordable(&u32::MAX) { u32::MAX } else { (1..=afford.min(widest)).rev().find(affordable).unwrap_or(0) }
    };
    let most = options.form.most().min(can(options.budget));
    let available = most.min(can(fabric.queue_limits().free.min(options.budget)));
    let budget = QueueBudget { wanted: most.into(), available: available.into(), needs: needs(most) };
    let (thriftiest, obstacle) = budget.agree(group).await?;
    let degree = group.greatest(u64::from(widest)).await? as u32;
    let next = |form: Form| form.thriftier(degree);
    open_everywhere(group, (Form::with_most(thriftiest as u32, degree), obstacle), next, |form| {
        requests.iter().map(|demands| OpenQueues::open(&fabric, form, demands, partitions)).collect()
    })
    .await
}
