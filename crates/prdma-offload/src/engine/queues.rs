//! The engine of the forms with control queues.

use super::{
    Engine, Progress,
    dealing::{Dealt, Edges, Served, deal},
    opening::open_queue,
    program::{Data, Program, Ready, Shape, Told, program},
};
use crate::{
    Form, PrdmaError, Result,
    init::{Agreed, Channel, Name, Wires},
};
use bytemuck::{Pod, Zeroable};
use rdma_fabric::{
    ControlQueue, Deps, Fabric, Rank,
    control_queue::{Completion, MrqKind, MrqNotice, Posting, QueueId, QueueMode, Stadd},
};

/// Queues of one member that are open and have no commands yet.
pub(crate) struct Opened {
    pub(super) queues: Vec<Open>,
    /// By channel: which of the queues serve it.
    pub(super) served: Vec<Served>,
}

pub(super) struct Open {
    pub(super) queue: ControlQueue,
    pub(super) shape: Shape,
}

/// What a member says of a channel once its queues are open.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Contact {
    pub(crate) name: Name,
    /// The queue that serves the channel.
    queue: u64,
    /// Where READYs of the neighbour go.
    word: u64,
    /// Where its data go.
    pub(super) data: u64,
    /// Where what tells of their end goes, if they come in parts.
    pub(super) end: u64,
    /// As many slots what arrives is to release: READYs, and data that are forwarded.
    credit: u64,
    /// 1 if data that arrive are forwarded.
    feeds: u64,
    /// 1 if they end with a notice.
    notice: u64,
}

impl Contact {
    /// The neighbour's queue.
    pub(super) fn queue(&self, channel: &Channel) -> Result<QueueId> {
        let to = QueueId::from_bits(self.queue).filter(|to| to.rank() == channel.rank);
        to.ok_or(PrdmaError::Damaged { member: channel.member })
    }

    /// Of each arrival.
    fn credit(&self, channel: &Channel) -> Result<u8> {
        let credit = u8::try_from(self.credit).ok().filter(|credit| (1..=15).contains(credit));
        credit.ok_or(PrdmaError::Damaged { member: channel.member })
    }

    /// The READY for the neighbour's edge.
    pub(super) fn ready(&self, channel: &Channel) -> Result<Ready> {
        Ok(Ready { to: self.queue(channel)?, word: Stadd::from_bits(self.word), credit: self.credit(channel)? })
    }

    /// What tells the neighbour of data.
    fn told(&self, channel: &Channel) -> Result<Told> {
        let credit = if self.feeds == 1 { self.credit(channel)? } else { 0 };
        Ok(Told { notice: self.notice == 1, credit })
    }
}

impl Opened {
    /// Open as many queues as `form` wants for these channels, [dealt out](deal) among them. Data come in so many `parts`, each with a notice.
    ///
    /// # Errors
    /// As [`rdma_fabric::Fabric::open_queue`]: nothing is left open.
    pub(crate) fn open(fabric: &Fabric, form: Form, edges: &[Edges], parts: u64) -> Result<Self> {
        let Dealt { queues, served } = deal(form, edges);
        let open = |number: usize, shape: Shape, mode, notices: u64| -> Result<Open> {
            let ahead = if mode == QueueMode::Session { shape.readies as u32 } else { 0 };
            Ok(Open { queue: open_queue(fabric, number, mode, shape.depth(), notices, ahead)?, shape })
        };
        // Who only receives needs nothing released: its READYs leave from a normal queue.
        let mode = |shape: &Shape| if shape.awaited == 0 { QueueMode::Normal } else { QueueMode::Session };
        let opened = queues
            .into_iter()
            .enumerate()
            .map(|(number, shape)| open(number, shape, mode(&shape), shape.notices.saturating_mul(parts)));
        Ok(Opened { queues: opened.collect::<Result<_>>()?, served })
    }

    /// Register the memory of the channels on their queues, and say what the neighbours need to know.
    ///
    /// # Errors
    /// As [`ControlQueue::register`].
    pub(crate) fn contacts(&self, channels: &[Channel], wires: &Wires) -> Result<Vec<Contact>> {
        let contact = |(channel, served): (&Channel, &Served)| {
            let open = &self.queues[served.by];
            let words = open.queue.register(wires.words.region())?;
            let data = match wires.receiving(channel) {
                Some(memory) => open.queue.register(memory.region())?.to_bits(),
                None => 0,
            };
            Ok(Contact {
                name: Name::of(channel),
                queue: open.queue.id().to_bits(),
                word: (words + wires.ready_word(channel)).to_bits(),
                data,
                end: (words + wires.end_word(channel)).to_bits(),
                credit: u64::from(open.shape.credit()),
                feeds: u64::from(served.feeds),
                notice: u64::from(served.notice),
            })
        };
        channels.iter().zip(&self.served).map(contact).collect()
    }

    /// The engine, once the neighbours' contacts are known: `theirs` by channel. Waits depend on `ranks`.
    ///
    /// # Errors
    /// [`PrdmaError::Damaged`]; as [`ControlQueue::register`].
    pub(crate) fn engine(
        self,
        fabric: &Fabric,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires,
        theirs: &[Contact],
        ranks: Box<[Rank]>,
    ) -> Result<QueueEngine> {
        let mut queues = Vec::with_capacity(self.queues.len());
        for (number, open) in self.queues.into_iter().enumerate() {
            let (mut readies, mut data) = (Vec::new(), Vec::new());
            for (at, served) in self.served.iter().enumerate() {
                let (channel, agreed, contact) = (&channels[at], &agreed[at], &theirs[at]);
                if agreed.inn.is_some() && served.says == number {
                    readies.push(contact.ready(channel)?);
                }
                if let Some(out) = agreed.out.as_ref().filter(|_| served.by == number) {
                    let memory = wires.sending(channel).unwrap_or(&wires.words);
                    let from = open.queue.register(memory.region())?;
                    let (to, at, told) =
                        (contact.queue(channel)?, Stadd::from_bits(contact.data), contact.told(channel)?);
                    data.push(Data { to, from, at, pieces: out.pieces.clone(), told });
                }
            }
            let scratch = open.queue.register(wires.words.region())? + wires.scratch_word();
            let program = program(open.queue.id(), scratch, &open.shape, &readies, &data);
            queues.push((open.queue, program, open.shape.notices as u32));
        }
        Ok(QueueEngine::new(fabric, queues.into_iter(), ranks))
    }
}

/// Iterations run by queues.
pub(crate) struct QueueEngine {
    /// They close before the memory goes that they address.
    pub(super) queues: Vec<Running>,
    /// Who can hold it up.
    pub(super) ranks: Box<[Rank]>,
    fabric: Fabric,
}

impl QueueEngine {
    /// Of queues, each with its program and the notices of an iteration. Waits depend on `ranks`.
    pub(crate) fn new(
        fabric: &Fabric,
        queues: impl Iterator<Item = (ControlQueue, Program, u32)>,
        ranks: Box<[Rank]>,
    ) -> Self {
        let running = |(queue, program, notices): (ControlQueue, Program, u32)| {
            let postings = program.steps.iter().map(|step| step.posting(0)).collect();
            Running { queue, program, postings, notices, owed: Owed::default() }
        };
        QueueEngine { queues: queues.map(running).collect(), ranks, fabric: fabric.clone() }
    }
}

pub(super) struct Running {
    pub(super) queue: ControlQueue,
    program: Program,
    /// The program's commands for the iteration that was started last.
    postings: Box<[Posting]>,
    /// Of an iteration: one for each edge that is received along.
    notices: u32,
    owed: Owed,
}

/// What has not been seen yet of the current iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    notices: u32,
    completions: u32,
}

impl Running {
    fn take_notice(&mut self, notice: MrqNotice, iteration: u64) -> Result<()> {
        notice.status?;
        match notice.kind {
            MrqKind::RemotePut if notice.edata == iteration as u8 && self.owed.notices > 0 => {
                self.owed.notices -= 1;
                Ok(())
            }
            _ => Err(PrdmaError::WrongIteration { rank: notice.peer.rank(), got: notice.edata, iteration }),
        }
    }

    fn take_completion(&mut self, completion: Completion) -> Result<()> {
        completion.status?;
        self.owed.completions = self.owed.completions.saturating_sub(1);
        Ok(())
    }
}

impl Engine for QueueEngine {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        for running in &mut self.queues {
            if running.program.chained {
                self.fabric.charge("prdma.chain").await;
            }
            running.owed = Owed { notices: running.notices, completions: running.program.completions };
            running
                .program
                .steps
                .iter()
                .zip(&mut running.postings)
                .for_each(|(step, posting)| step.renew(posting, iteration));
            running.queue.post_all(&running.postings, Deps::Ranks(&self.ranks)).await?;
        }
        Ok(())
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        let deps = Deps::Ranks(&self.ranks);
        for running in &mut self.queues {
            while running.owed.notices > 0 {
                let notice = self.fabric.triggers().beside(running.queue.next_notice(deps)).await?;
                running.take_notice(notice, iteration)?;
            }
            while running.owed.completions > 0 {
                let completion = self.fabric.triggers().beside(running.queue.next_completion(deps)).await?;
                running.take_completion(completion)?;
            }
        }
        Ok(())
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        self.fabric.triggers().advance().await;
        let mut progress = Progress::Done;
        for running in &mut self.queues {
            while running.owed.notices > 0 {
                match running.queue.poll_mrq()? {
                    Some(notice) => running.take_notice(notice, iteration)?,
                    None => break,
                }
            }
            while running.owed.completions > 0 {
                match running.queue.poll_tcq()? {
                    Some(completion) => running.take_completion(completion)?,
                    None => break,
                }
            }
            if running.owed.notices + running.owed.completions > 0 {
                progress = Progress::Pending;
            }
        }
        Ok(progress)
    }
}
