//! Making requests: all members of a neighbourhood together.
//!
//! 1. Each checks its own blocks; if all are right, each publishes its [terms] and compares them with its neighbours'.
//! 2. They agree on a form: the thriftiest that anybody wishes or can afford. Each opens its queues; if they were too few anywhere, all close
//!    them and try the next thriftier form, down to [`Form::Cpu`], which needs none. What comes out depends only on the wishes and on the queues that are free.
//! 3. Each publishes where its neighbours find its queues, words and buffers.
//!
//! An error of any member in 1 or 3 becomes one of all, before anybody waits for it in vain.

mod agreeing;
mod channels;
mod check;
mod terms;
mod wires;

pub(crate) use agreeing::{Outcome, least, open_everywhere, together};
pub(crate) use channels::{Channel, End, channels, single};
pub(crate) use check::check;
pub(crate) use terms::{Agreed, Block, Blocks, Outgoing};
pub(crate) use wires::{Staged, Wires};

use crate::{
    Form, Options, PrdmaError, Result,
    engine::{AnyEngine, Contact, CpuEngine, Desk, Edges, Opened},
    publish::publish,
};
use bytemuck::Pod;
use rdma_fabric::{Fabric, Group, GroupMemory, SessionFabric};
use terms::{agree, terms};

/// A request's machinery.
pub(crate) struct Made<F: SessionFabric> {
    pub(crate) engine: AnyEngine<F>,
    pub(crate) wires: Wires<F>,
    pub(crate) fabric: F,
    pub(crate) form: Form,
    /// Why it is no richer one, if queues could not be opened.
    pub(crate) obstacle: Option<PrdmaError>,
}

/// What is to be made, and with whom.
pub(crate) struct Making<'a, F: SessionFabric> {
    pub(crate) group: &'a mut Group<F>,
    /// Where members publish tables.
    pub(crate) headers: &'a GroupMemory<F>,
    /// Of each request, its channels.
    pub(crate) requests: &'a [&'a [Channel]],
    /// What is sent and what is received, by slot, [checked](check); or why there is none, which the others then learn.
    pub(crate) blocks: Result<&'a Blocks<F>, &'a PrdmaError>,
    pub(crate) options: &'a Options,
}

/// What of one request is known when its members have compared their terms.
pub(crate) struct Part<'a, F: Fabric> {
    pub(crate) channels: &'a [Channel],
    pub(crate) agreed: Vec<Agreed>,
    pub(crate) wires: Wires<F>,
}

impl<'a, F: SessionFabric> Making<'a, F> {
    /// Step 1: compare what both ends of every edge expect. Collective.
    pub(crate) async fn compare(&mut self) -> Result<Vec<Part<'a, F>>> {
        let Making { group, headers, requests, blocks, options } = self;
        let fabric = group.fabric().clone();
        let (sends, receives) = blocks.map_or((&[][..], &[][..]), |blocks| (&blocks.sends, &blocks.receives));
        // First of all: a neighbour whose terms were missing would look like an edge without an end.
        together(group, blocks.map(drop).map_err(Clone::clone)).await?;
        let requests: &[&'a [Channel]] = requests;
        let all: Vec<&Channel> = requests.iter().copied().flatten().collect();
        let mine: Vec<_> = all.iter().map(|channel| terms(channel, sends, receives, options.direct_blocks)).collect();
        let (members, by) = neighbours(&all);
        let tables = publish(group, headers, &mine, &members).await;
        let parts = tables.map_err(PrdmaError::from).and_then(|tables| {
            let longest = Some(fabric.queue_limits().longest).filter(|longest| *longest > 0).unwrap_or(u32::MAX);
            let (mut mine, mut tables) = (mine.iter(), by.iter().map(|at| &tables[*at]));
            let part = |channels: &'a [Channel]| {
                let ends = channels.iter().zip(mine.by_ref()).zip(tables.by_ref());
                let agreed = ends.map(|((channel, mine), table)| agree(group.me(), channel, mine, table, longest));
                let agreed: Vec<_> = agreed.collect::<Result<_>>()?;
                let wires = Wires::new(&fabric, channels, &agreed, sends, receives)?;
                Ok(Part { channels, agreed, wires })
            };
            requests.iter().copied().map(part).collect::<Result<Vec<_>>>()
        });
        together(group, parts).await
    }

    /// Make the requests. Collective over the group.
    pub(crate) async fn make(mut self) -> Result<Vec<Made<F>>> {
        let parts = self.compare().await?;
        let Making { group, headers, requests, options, .. } = self;
        let fabric = group.fabric().clone();
        let all: Vec<&Channel> = requests.iter().copied().flatten().collect();
        let edges: Vec<Vec<Edges>> = parts.iter().map(|part| part.agreed.iter().map(Edges::of).collect()).collect();
        let Outcome { form, obstacle, opened } = open(group, &fabric, &edges, 1, options).await?;
        let engines = match opened {
            Some(opened) => {
                let mine = opened.iter().zip(&parts).map(|(opened, part)| opened.contacts(part.channels, &part.wires));
                let mine = mine.collect::<Result<Vec<_>>>().map(|contacts| contacts.concat());
                let name = |contact: &Contact| contact.name;
                let theirs = contacts(group, headers, &all, mine, name).await;
                theirs.and_then(|theirs| {
                    let mut theirs = theirs.into_iter();
                    let engine = |(opened, part): (Opened<F>, &Part<'_, F>)| {
                        let theirs: Vec<_> = theirs.by_ref().take(part.channels.len()).collect();
                        let engine = opened.engine(&fabric, part.channels, &part.agreed, &part.wires, &theirs)?;
                        Ok(AnyEngine::Queues(engine))
                    };
                    opened.into_iter().zip(&parts).map(engine).collect::<Result<Vec<_>>>()
                })
            }
            None => {
                let desks =
                    parts.iter().flat_map(|part| part.channels.iter().map(|channel| Desk::of(channel, &part.wires)));
                let theirs = contacts(group, headers, &all, Ok(desks.collect()), |desk: &Desk| desk.name).await;
                theirs.and_then(|theirs| {
                    let mut theirs = theirs.into_iter();
                    let engine = |part: &Part<'_, F>| {
                        let theirs: Vec<_> = theirs.by_ref().take(part.channels.len()).collect();
                        let engine = CpuEngine::exchange(&fabric, part.channels, &part.agreed, &part.wires, &theirs)?;
                        Ok(AnyEngine::Cpu(engine))
                    };
                    parts.iter().map(engine).collect::<Result<Vec<_>>>()
                })
            }
        };
        let engines = together(group, engines).await?;
        let made = engines.into_iter().zip(parts).map(|(engine, part)| {
            let (fabric, obstacle) = (fabric.clone(), obstacle.clone());
            Made { engine, wires: part.wires, fabric, form, obstacle }
        });
        Ok(made.collect())
    }
}

/// How a member names a channel to the neighbour: its own number, the channel's number, and 1 if the member only receives along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Name {
    member: u64,
    index: u64,
    receives: u64,
}

impl Name {
    /// As the member that has the channel calls it.
    pub(crate) fn of(channel: &Channel) -> Self {
        let receives = u64::from(channel.out.is_none());
        Name { member: channel.member as u64, index: u64::from(channel.index), receives }
    }

    /// What the neighbour calls it.
    fn other(channel: &Channel, me: usize) -> Self {
        let receives = u64::from(channel.inn.is_none());
        Name { member: me as u64, index: u64::from(channel.index), receives }
    }
}

/// Agree on a form, and open what it needs. Of each request, its `edges`, along which data come in so many `parts`.
pub(crate) async fn open<F: SessionFabric>(
    group: &mut Group<F>,
    fabric: &F,
    requests: &[Vec<Edges>],
    parts: u64,
    options: &Options,
) -> Result<Outcome<Vec<Opened<F>>>> {
    let sending = |edges: &Vec<Edges>| edges.iter().filter(|edges| edges.data.is_some()).count() as u32;
    let needs = |edges: &Vec<Edges>| sending(edges).max(u32::from(!edges.is_empty()));
    let (all, most) = (requests.iter().map(needs).sum::<u32>(), requests.iter().map(sending).max().unwrap_or(0));
    let afford = fabric.queue_limits().free.min(options.budget);
    let can = if all <= afford { u32::MAX } else { afford / requests.len().max(1) as u32 };
    let thriftiest = least(group, options.form.most().min(can).into()).await? as u32;
    let degree = group.greatest(u64::from(most)).await? as u32;
    let next = |form: Form| form.thriftier(degree);
    open_everywhere(group, Form::with_most(thriftiest, degree), next, |form| {
        requests.iter().map(|edges| Opened::open(fabric, form, edges, parts)).collect()
    })
    .await
}

/// Publish `mine`, and find the neighbour's record of each channel of the own ones, which go to `members`.
pub(crate) async fn contacts<F: Fabric, T: Pod + Unpin>(
    group: &mut Group<F>,
    headers: &GroupMemory<F>,
    channels: &[&Channel],
    mine: Result<Vec<T>>,
    name: impl Fn(&T) -> Name,
) -> Result<Vec<T>> {
    let (members, by) = neighbours(channels);
    let none = Vec::new();
    let tables = publish(group, headers, mine.as_ref().unwrap_or(&none), &members).await?;
    mine?;
    let me = group.me();
    let find = |(channel, at): (&&Channel, usize)| {
        let record = tables[at].iter().copied().find(|record| name(record) == Name::other(channel, me));
        record.ok_or(PrdmaError::Damaged { member: channel.member })
    };
    channels.iter().zip(by).map(find).collect()
}

/// The members that channels go to, each once; and by channel, which of them.
fn neighbours(channels: &[&Channel]) -> (Vec<usize>, Vec<usize>) {
    let mut members: Vec<usize> = channels.iter().map(|channel| channel.member).collect();
    members.sort_unstable();
    members.dedup();
    let by = channels.iter().map(|channel| members.partition_point(|member| *member < channel.member)).collect();
    (members, by)
}
