//! Making requests: all members of a neighbourhood together.
//!
//! 1. Each checks its own blocks; they agree on whether all are valid and, in the same round, on
//!    whether all request [`Aggregation`]. Each publishes its [terms](mod@terms) and compares them
//!    with its neighbours'.
//! 2. They agree on a form: the one with the fewest queues that any of them requests or can afford.
//!    Each opens its queues; if there were too few anywhere, all close them and try the next form
//!    with fewer queues, down to [`Form::Cpu`], which needs none. The outcome depends only on the
//!    options and on the number of free queues.
//! 3. Each publishes the locations of its queues, words and buffers for its neighbours.
//!
//! An error of any member in 1 or 3 becomes an error of all, before any member waits for that
//! member forever.

mod agreeing;
mod channels;
mod connections;
#[cfg(test)]
mod forged_pointers;
mod guard;
mod presented;
mod terms;

pub(crate) use agreeing::{
    Outcome, QueueBudget, all_succeed, all_succeed_least, least, longest, open, open_everywhere,
};
pub(crate) use channels::{Channel, EdgeEnd, Name, channels, contacts, single};
pub(crate) use connections::{Connections, Staged};
pub(crate) use guard::{Binding, Handles, Seal, Wish};
pub(crate) use presented::Presented;
pub(crate) use terms::{Agreed, Block, Blocks, Incoming, Outgoing, check};

use crate::{
    Aggregation, Form, Options, PrdmaError, Result, aggregation,
    engine::{AnyEngine, CpuContact, CpuEngine, Demand, OpenQueues, QueueContact, QueuesOrCpu, awaited},
    publish::publish_sealed,
};
use channels::neighbours;
use rdma_fabric::{Fabric, Group, GroupMemory, Rank, provider::Boxed};
use terms::{Terms, agree, terms};

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
    pub(crate) connections: Connections,
    pub(crate) fabric: Fabric,
    pub(crate) form: Form,
    /// The reason why the form does not have more queues, if queues could not be opened.
    pub(crate) obstacle: Option<PrdmaError>,
    pub(crate) aggregation: Aggregation,
    /// The number after which the words of a guarded request start.
    pub(crate) guarded: Option<u64>,
}

/// The requests to be created, and the group with which to create them.
pub(crate) struct RequestBuilder<'a> {
    pub(crate) group: &'a mut Group,
    /// The memory through which members publish tables.
    pub(crate) headers: &'a GroupMemory,
    /// The channels of each request.
    pub(crate) requests: &'a [&'a [Channel]],
    /// The sent and received blocks, by slot, [checked](check); or the reason why there are none,
    /// which is then shared with the others.
    pub(crate) blocks: Result<&'a Blocks, &'a PrdmaError>,
    pub(crate) options: &'a Options,
    /// Whether this member requests a guarded request.
    pub(crate) wish: Wish,
}

/// A request whose members have compared their terms: everything but its engine.
pub(crate) struct Compared<'a> {
    pub(crate) channels: &'a [Channel],
    pub(crate) agreed: Vec<Agreed>,
    pub(crate) connections: Connections,
}

impl<'a> RequestBuilder<'a> {
    /// Compares the expectations of both ends of every edge: step 1. Collective.
    pub(crate) async fn compare(&mut self) -> Result<Vec<Compared<'a>>> {
        let (guarded, _) = self.agree(0).await?;
        Ok(self.compare_sound(guarded).await?.0)
    }

    /// Agrees on whether all members have blocks, whether the request is guarded, and the maximum
    /// length of the blocks that all aggregate. Collective.
    async fn agree(&mut self, longest: u64) -> Result<(bool, u64)> {
        let (sound, vote) = (self.sound(), self.wish.vote(longest));
        Ok(Wish::of_vote(all_succeed_least(self.group, sound.map(|()| vote)).await?))
    }

    /// Returns whether this member has blocks. Members agree on this first: otherwise a neighbour
    /// whose terms are missing would look like an edge with only one end.
    fn sound(&self) -> Result<()> {
        self.blocks.map(drop).map_err(Clone::clone)
    }

    /// Checks that none of this member's blocks needs a guarded request.
    fn may_be_unguarded(&self) -> Result<()> {
        let (sends, receives) = sides(&self.blocks);
        let mut blocks = sends.iter().chain(receives);
        blocks.try_for_each(|block| block.memory.open_to_all("a request with ranks that lend no memory"))
    }

    /// Compares the expectations of both ends of every edge, where all members have blocks.
    /// Collective.
    async fn compare_sound(&mut self, guarded: bool) -> Result<(Vec<Compared<'a>>, Handles)> {
        let fabric = self.group.fabric().clone();
        let opened = if guarded { Handles::guarded(&fabric) } else { Ok(Handles::open(&fabric)) };
        // Without handles, the member still participates.
        let (handles, opened) =
            opened.map_or_else(|error| (Handles::open(&fabric), Err(error)), |handles| (handles, Ok(())));
        let opened = if guarded { opened } else { opened.and(self.may_be_unguarded()) };
        let agreed = self.ends(&handles).await?;
        let compared = opened.and(agreed).and_then(|agreed| self.with_memory(agreed, &handles));
        Ok((all_succeed(self.group, compared).await?, handles))
    }

    /// Makes one request: aggregated by node if all members request that, otherwise without
    /// aggregation. Collective.
    pub(crate) async fn make_by_node(mut self) -> Result<Made> {
        let asked = self.options.aggregation;
        let (guarded, longest) = self.agree(asked.longest()).await?;
        let (compared, handles) = match longest {
            0 => self.compare_sound(guarded).await?,
            longest => {
                let aggregation = asked.agree(self.group, longest).await?;
                let handles = Handles::open(self.group.fabric());
                let agreed = self.ends(&handles).await?;
                let agreed = all_succeed(self.group, self.may_be_unguarded().and(agreed)).await?;
                if let Some(made) = aggregation::make(&mut self, &agreed[0], aggregation).await? {
                    return Ok(made);
                }
                let compared = self.with_memory(agreed, &handles);
                (all_succeed(self.group, compared).await?, handles)
            }
        };
        Ok(self.finish(compared, handles).await?.pop().expect("one was asked for"))
    }

    /// Yields the agreements of the ends of each request's channels, if all members have blocks.
    /// The inner error is this member's own, the outer one is shared by all.
    async fn ends(&mut self, handles: &Handles) -> Result<Result<Vec<Vec<Agreed>>>> {
        let RequestBuilder { group, headers, requests, blocks, options, .. } = self;
        let (sends, receives) = sides(blocks);
        let all: Vec<&Channel> = requests.iter().copied().flatten().collect();
        let mine: Vec<_> = all.iter().map(|channel| terms(channel, sends, receives, options)).collect();
        let (members, by) = neighbours(&all);
        let seal = handles.seal(Terms::KIND);
        let published = publish_sealed(group, headers, &mine, &members, seal.as_ref()).await;
        Ok(published.map_err(PrdmaError::from).and_then(|published| {
            let longest = longest(group.fabric()) as u32;
            let own = if handles.guarded { published.mine } else { 0 };
            let (mut mine, mut tables) = (mine.iter(), by.iter().map(|at| &published.tables[*at]));
            let request = |channels: &[Channel]| {
                let ends = channels.iter().zip(mine.by_ref()).zip(tables.by_ref());
                let agreed = ends.map(|((channel, mine), (key, table))| {
                    let theirs = if handles.guarded { *key } else { 0 };
                    let agreed = agree(group.me(), channel, mine, table, longest)?;
                    Ok(agreed.bound(Binding { mine: own, theirs }))
                });
                agreed.collect::<Result<Vec<_>>>()
            };
            requests.iter().copied().map(request).collect()
        }))
    }

    /// Allocates the memory for the agreed channels.
    fn with_memory(&self, agreed: Vec<Vec<Agreed>>, handles: &Handles) -> Result<Vec<Compared<'a>>> {
        let (sends, receives) = sides(&self.blocks);
        let request = |(channels, agreed): (&&'a [Channel], Vec<Agreed>)| {
            let connections =
                Connections::new((self.group.fabric(), &handles.words), channels, &agreed, sends, receives)?;
            Ok(Compared { channels, agreed, connections })
        };
        self.requests.iter().zip(agreed).map(request).collect()
    }

    /// Makes the requests. Collective over the group.
    pub(crate) async fn make(mut self) -> Result<Vec<Made>> {
        let (guarded, _) = self.agree(0).await?;
        let (compared, handles) = self.compare_sound(guarded).await?;
        self.finish(compared, handles).await
    }

    /// Agrees on a form and makes the engines: steps 2 and 3.
    async fn finish(self, compared: Vec<Compared<'_>>, handles: Handles) -> Result<Vec<Made>> {
        let RequestBuilder { group, headers, options, .. } = self;
        let fabric = group.fabric().clone();
        let demands: Vec<Vec<Demand>> =
            compared.iter().map(|request| request.agreed.iter().map(Demand::of).collect()).collect();
        let Outcome { form, obstacle, opened } = open(group, &demands, 1, options).await?;
        let first = if handles.guarded { Some(guard::first_number(group).await?) } else { None };
        let engines = engines(group, headers, &compared, opened, (&handles, first.unwrap_or(0)), None).await?;
        let made = engines.into_iter().zip(compared).map(|(engine, Compared { connections, .. })| {
            let (fabric, obstacle) = (fabric.clone(), obstacle.clone());
            Made { engine, connections, fabric, form, obstacle, aggregation: Aggregation::None, guarded: first }
        });
        Ok(made.collect())
    }
}

/// Returns the blocks that are sent, and those that are received.
pub(crate) fn sides<'b>(blocks: &Result<&'b Blocks, &PrdmaError>) -> (&'b [Block], &'b [Block]) {
    blocks.as_ref().map_or((&[][..], &[][..]), |blocks| (&blocks.sends, &blocks.receives))
}

/// Exchanges addresses, and makes the engines of requests. If data are forwarded, `relays` has the
/// channels' demands and the ranks that can delay them. Collective.
pub(crate) async fn engines(
    group: &mut Group,
    headers: &GroupMemory,
    requests: &[Compared<'_>],
    opened: Option<Vec<OpenQueues>>,
    guard: (&Handles, u64),
    relays: Option<(&[Demand], &[Rank])>,
) -> Result<Vec<AnyEngine>> {
    let fabric = group.fabric().clone();
    let engines = engines_with(
        group,
        headers,
        requests,
        opened,
        guard,
        |opened, Compared { channels, agreed, connections }, theirs| {
            let ranks = match relays {
                Some((_, ranks)) => ranks.into(),
                None => awaited(fabric.rank(), channels),
            };
            opened.engine(&fabric, channels, agreed, connections, theirs, ranks)
        },
        |Compared { channels, agreed, connections }, theirs| {
            CpuEngine::exchange((&fabric, guard.0), channels, agreed, connections, theirs, relays)
        },
    );
    let engines = engines.await;
    all_succeed(group, engines).await
}

/// Exchanges addresses, and makes an engine of each request: `with_queues` if queues were opened,
/// otherwise `with_cpu`. Collective; an error is this member's own.
pub(crate) async fn engines_with<Q, C>(
    group: &mut Group,
    headers: &GroupMemory,
    requests: &[Compared<'_>],
    opened: Option<Vec<OpenQueues>>,
    (handles, first): (&Handles, u64),
    with_queues: impl Fn(OpenQueues, &Compared<'_>, &[QueueContact]) -> Result<Q>,
    with_cpu: impl Fn(&Compared<'_>, &[CpuContact]) -> Result<C>,
) -> Result<Vec<QueuesOrCpu<Q, C>>> {
    let all: Vec<&Channel> = requests.iter().flat_map(|request| request.channels).collect();
    match opened {
        Some(opened) => {
            let mine = opened.iter().zip(requests).map(|(opened, request)| {
                let Compared { channels, connections, .. } = request;
                opened.contacts(channels, connections)
            });
            let mine = mine.collect::<Result<Vec<_>>>().map(|contacts| contacts.concat());
            let mut theirs =
                &contacts(group, headers, &all, mine, |contact: &QueueContact| contact.name, None).await?[..];
            let engine = |(opened, request): (OpenQueues, &Compared<'_>)| {
                let first = theirs.split_off(..request.channels.len()).unwrap_or_default();
                Ok(QueuesOrCpu::Queues(with_queues(opened, request, first)?))
            };
            opened.into_iter().zip(requests).map(engine).collect()
        }
        None => {
            let me = group.fabric().rank();
            let mine = requests.iter().flat_map(|Compared { channels, agreed, connections }| {
                let ends = channels.iter().zip(agreed);
                ends.map(|(channel, agreed)| CpuContact::of((me, channel), agreed, connections, first))
            });
            let (mine, seal) = (Ok(mine.collect()), handles.seal(CpuContact::KIND));
            let theirs =
                contacts(group, headers, &all, mine, |contact: &CpuContact| contact.name, seal.as_ref()).await?;
            let agreed = requests.iter().flat_map(|request| &request.agreed);
            let mut ends = all.iter().zip(agreed).zip(&theirs);
            ends.try_for_each(|((channel, agreed), contact)| contact.check((me, channel), agreed, first))?;
            let mut theirs = &theirs[..];
            let engine = |request: &Compared<'_>| {
                let first = theirs.split_off(..request.channels.len()).unwrap_or_default();
                Ok(QueuesOrCpu::Cpu(with_cpu(request, first)?))
            };
            requests.iter().map(engine).collect()
        }
    }
}
