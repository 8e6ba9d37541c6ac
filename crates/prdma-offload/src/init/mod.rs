//! Making requests: all members of a neighbourhood together.
//!
//! 1. Each checks its own blocks; they agree whether all are right, and in the same round whether all wish [`Aggregation`]. Each publishes its [terms] and compares
//!    them with its neighbours'.
//! 2. They agree on a form: the thriftiest that anybody wishes or can afford. Each opens its queues; if they were too few anywhere, all close
//!    them and try the next thriftier form, down to [`Form::Cpu`], which needs none. What comes out depends only on the wishes and on the queues that are free.
//! 3. Each publishes where its neighbours find its queues, words and buffers.
//!
//! An error of any member in 1 or 3 becomes one of all, before anybody waits for it in vain.

mod agreeing;
mod channels;
mod check;
mod contacts;
mod terms;
mod wires;

pub(crate) use agreeing::{Outcome, Wish, least, least_together, longest, open_everywhere, together};
pub(crate) use channels::{Channel, End, channels, single};
pub(crate) use check::check;
pub(crate) use contacts::{Name, contacts};
pub(crate) use terms::{Agreed, Block, Blocks, Incoming, Outgoing};
pub(crate) use wires::{Staged, Wires};

use crate::{
    Aggregation, Form, Options, PrdmaError, Result, aggregation,
    engine::{AnyEngine, Contact, CpuEngine, Desk, Edges, Opened, deal, widest},
    publish::publish,
};
use contacts::neighbours;
use rdma_fabric::{Fabric, Group, GroupMemory, Rank};
use terms::{agree, terms};

/// A request's machinery.
pub(crate) struct Made {
    pub(crate) engine: AnyEngine,
    pub(crate) wires: Wires,
    pub(crate) fabric: Fabric,
    pub(crate) form: Form,
    /// Why it is no richer one, if queues could not be opened.
    pub(crate) obstacle: Option<PrdmaError>,
    pub(crate) aggregation: Aggregation,
}

/// What is to be made, and with whom.
pub(crate) struct Making<'a> {
    pub(crate) group: &'a mut Group,
    /// Where members publish tables.
    pub(crate) headers: &'a GroupMemory,
    /// Of each request, its channels.
    pub(crate) requests: &'a [&'a [Channel]],
    /// What is sent and what is received, by slot, [checked](check); or why there is none, which the others then learn.
    pub(crate) blocks: Result<&'a Blocks, &'a PrdmaError>,
    pub(crate) options: &'a Options,
}

/// What of one request is known when its members have compared their terms.
pub(crate) struct Part<'a> {
    pub(crate) channels: &'a [Channel],
    pub(crate) agreed: Vec<Agreed>,
    pub(crate) wires: Wires,
}

impl Part<'_> {
    fn laid(&self) -> Laid<'_> {
        Laid { channels: self.channels, agreed: &self.agreed, wires: &self.wires, relays: None }
    }
}

impl<'a> Making<'a> {
    /// Step 1: compare what both ends of every edge expect. Collective.
    pub(crate) async fn compare(&mut self) -> Result<Vec<Part<'a>>> {
        let sound = self.sound();
        together(self.group, sound).await?;
        self.compared().await
    }

    /// Whether there are blocks, of this member. Agreed on first of all: a neighbour whose terms were missing would look like an edge without an end.
    fn sound(&self) -> Result<()> {
        self.blocks.map(drop).map_err(Clone::clone)
    }

    /// The rest of it.
    async fn compared(&mut self) -> Result<Vec<Part<'a>>> {
        let agreed = self.ends().await?;
        let parts = agreed.and_then(|agreed| self.parts(agreed));
        together(self.group, parts).await
    }

    /// The same without memory, for one request by node where all wish that, as one with each edge by itself where they don't. Collective.
    pub(crate) async fn make_by_node(mut self) -> Result<Made> {
        let sound = self.sound();
        let Some(wish) = self.options.aggregation.agree(self.group, sound).await? else {
            let parts = self.compared().await?;
            return Ok(self.finish(parts).await?.pop().expect("one was asked for"));
        };
        let agreed = self.ends().await?;
        let agreed = together(self.group, agreed).await?;
        if let Some(made) = aggregation::make(&mut self, &agreed[0], wish).await? {
            return Ok(made);
        }
        let parts = self.parts(agreed);
        let parts = together(self.group, parts).await?;
        Ok(self.finish(parts).await?.pop().expect("one was asked for"))
    }

    /// What the ends of each request's channels have agreed on, where all members have blocks; an error of this member, or of all.
    async fn ends(&mut self) -> Result<Result<Vec<Vec<Agreed>>>> {
        let Making { group, headers, requests, blocks, options } = self;
        let (sends, receives) = sides(blocks);
        let all: Vec<&Channel> = requests.iter().copied().flatten().collect();
        let mine: Vec<_> = all.iter().map(|channel| terms(channel, sends, receives, options.direct_blocks)).collect();
        let (members, by) = neighbours(&all);
        let tables = publish(group, headers, &mine, &members).await;
        Ok(tables.map_err(PrdmaError::from).and_then(|tables| {
            let longest = longest(group.fabric()) as u32;
            let (mut mine, mut tables) = (mine.iter(), by.iter().map(|at| &tables[*at]));
            let part = |channels: &[Channel]| {
                let ends = channels.iter().zip(mine.by_ref()).zip(tables.by_ref());
                let agreed = ends.map(|((channel, mine), table)| agree(group.me(), channel, mine, table, longest));
                agreed.collect::<Result<Vec<_>>>()
            };
            requests.iter().copied().map(part).collect()
        }))
    }

    /// The memory for what was agreed on.
    fn parts(&self, agreed: Vec<Vec<Agreed>>) -> Result<Vec<Part<'a>>> {
        let (sends, receives) = sides(&self.blocks);
        let part = |(channels, agreed): (&&'a [Channel], Vec<Agreed>)| {
            let wires = Wires::new(self.group.fabric(), channels, &agreed, sends, receives)?;
            Ok(Part { channels, agreed, wires })
        };
        self.requests.iter().zip(agreed).map(part).collect()
    }

    /// Make the requests. Collective over the group.
    pub(crate) async fn make(mut self) -> Result<Vec<Made>> {
        let parts = self.compare().await?;
        self.finish(parts).await
    }

    /// Steps 2 and 3.
    async fn finish(self, parts: Vec<Part<'_>>) -> Result<Vec<Made>> {
        let Making { group, headers, options, .. } = self;
        let fabric = group.fabric().clone();
        let edges: Vec<Vec<Edges>> = parts.iter().map(|part| part.agreed.iter().map(Edges::of).collect()).collect();
        let Outcome { form, obstacle, opened } = open(group, &fabric, &edges, 1, options).await?;
        let laid: Vec<_> = parts.iter().map(Part::laid).collect();
        let engines = engines(group, headers, &laid, opened).await?;
        let made = engines.into_iter().zip(parts).map(|(engine, part)| {
            let (fabric, obstacle) = (fabric.clone(), obstacle.clone());
            Made { engine, wires: part.wires, fabric, form, obstacle, aggregation: Aggregation::None }
        });
        Ok(made.collect())
    }
}

/// The blocks that are sent, and those that are received.
pub(crate) fn sides<'b>(blocks: &Result<&'b Blocks, &PrdmaError>) -> (&'b [Block], &'b [Block]) {
    blocks.as_ref().map_or((&[][..], &[][..]), |blocks| (&blocks.sends, &blocks.receives))
}

/// All of one request but who carries it out.
pub(crate) struct Laid<'a> {
    pub(crate) channels: &'a [Channel],
    pub(crate) agreed: &'a [Agreed],
    pub(crate) wires: &'a Wires,
    /// If data are forwarded: what the channels ask for, and who can hold them up.
    pub(crate) relays: Option<(&'a [Edges], &'a [Rank])>,
}

impl Laid<'_> {
    fn ranks(&self) -> Box<[Rank]> {
        match self.relays {
            Some((_, ranks)) => ranks.into(),
            None => self.channels.iter().map(|channel| channel.rank).collect(),
        }
    }
}

/// Step 3: exchange addresses, and make what carries the requests out. Collective.
pub(crate) async fn engines(
    group: &mut Group,
    headers: &GroupMemory,
    requests: &[Laid<'_>],
    opened: Option<Vec<Opened>>,
) -> Result<Vec<AnyEngine>> {
    let fabric = group.fabric().clone();
    let all: Vec<&Channel> = requests.iter().flat_map(|laid| laid.channels).collect();
    let engines = match opened {
        Some(opened) => {
            let mine = opened.iter().zip(requests).map(|(opened, laid)| opened.contacts(laid.channels, laid.wires));
            let mine = mine.collect::<Result<Vec<_>>>().map(|contacts| contacts.concat());
            let theirs = contacts(group, headers, &all, mine, |contact: &Contact| contact.name).await;
            theirs.and_then(|theirs| {
                let mut theirs = theirs.into_iter();
                let engine = |(opened, laid): (Opened, &Laid<'_>)| {
                    let Laid { channels, agreed, wires, .. } = laid;
                    let theirs: Vec<_> = theirs.by_ref().take(channels.len()).collect();
                    Ok(AnyEngine::Queues(opened.engine(&fabric, channels, agreed, wires, &theirs, laid.ranks())?))
                };
                opened.into_iter().zip(requests).map(engine).collect::<Result<Vec<_>>>()
            })
        }
        None => {
            let desk = |laid: &Laid<'_>| {
                let wires = laid.wires;
                laid.channels.iter().map(move |channel| Desk::of(channel, wires)).collect::<Vec<_>>()
            };
            let desks = requests.iter().flat_map(desk).collect();
            let theirs = contacts(group, headers, &all, Ok(desks), |desk: &Desk| desk.name).await;
            theirs.and_then(|theirs| {
                let mut theirs = theirs.into_iter();
                let engine = |laid: &Laid<'_>| {
                    let Laid { channels, agreed, wires, relays } = laid;
                    let theirs: Vec<_> = theirs.by_ref().take(channels.len()).collect();
                    let engine = CpuEngine::exchange(&fabric, channels, agreed, wires, &theirs, *relays)?;
                    Ok(AnyEngine::Cpu(engine))
                };
                requests.iter().map(engine).collect::<Result<Vec<_>>>()
            })
        }
    };
    together(group, engines).await
}

/// Agree on a form, and open what it needs. Of each request, its `edges`, along which data come in so many `parts`.
pub(crate) async fn open(
    group: &mut Group,
    fabric: &Fabric,
    requests: &[Vec<Edges>],
    parts: u64,
    options: &Options,
) -> Result<Outcome<Vec<Opened>>> {
    // Queues, if a stage has at most so many.
    let needs = |most: u32| {
        let form = Form::with_most(most, u32::MAX);
        requests.iter().map(|edges| deal(form, edges).queues.len() as u64).sum::<u64>()
    };
    let widest = requests.iter().map(|edges| widest(edges)).max().unwrap_or(0);
    let can = |afford: u32| {
        let affordable = |most: &u32| needs(*most) <= u64::from(afford);
        if affordable(&u32::MAX) { u32::MAX } else { (1..=afford.min(widest)).rev().find(affordable).unwrap_or(0) }
    };
    let most = options.form.most().min(can(options.budget));
    let few = most.min(can(fabric.queue_limits().free.min(options.budget)));
    let wish = Wish { most: most.into(), few: few.into(), needs: needs(most) };
    let (thriftiest, obstacle) = wish.agree(group).await?;
    let degree = group.greatest(u64::from(widest)).await? as u32;
    let next = |form: Form| form.thriftier(degree);
    open_everywhere(group, (Form::with_most(thriftiest as u32, degree), obstacle), next, |form| {
        requests.iter().map(|edges| Opened::open(fabric, form, edges, parts)).collect()
    })
    .await
}
