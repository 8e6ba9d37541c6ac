//! Open queues of a request: their contacts for neighbours, and the engines created from them.

use super::{
    CommandTemplate, Program, QueueEngine, QueuePartitions,
    assignment::{Assignment, Assignments, Demand, assign_queues},
    data::{Data, OnArrival},
    program::{Ready, Shape, program, releases},
};
use crate::{
    EndOfData, Form, PrdmaError, Result,
    init::{Agreed, Channel, Connections, Name},
};
use bytemuck::{Pod, Zeroable};
use fabric_offload::{
    ControlQueue,
    control_queue::{QueueError, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Fabric, FabricError, Rank};

/// Opens queue `number` of a request, with `depth` slots and room for two iterations of `notices`.
/// Queues of a request are on different engines, and so are the first queues of a node's ranks;
/// where an engine has no free queue, any engine is used.
///
/// # Errors
/// As [`ControlQueue::open`]; [`PrdmaError::Limit`].
pub(crate) fn open_queue(
    fabric: &Fabric,
    number: usize,
    mode: QueueMode,
    depth: u64,
    notices: u64,
    initial_offset: u32,
) -> Result<ControlQueue> {
    let limits = ControlQueue::limits(fabric);
    let (mrq, limit) = ((2 * notices + 2).next_power_of_two().max(16), u64::from(limits.most_depth));
    if depth.max(mrq) > limit {
        return Err(PrdmaError::Limit { what: "slots or notices of a queue", value: depth.max(mrq), limit });
    }
    let spec = QueueSpec { depth: depth as u32, mrq_depth: mrq as u32, initial_offset, ..QueueSpec::new(mode) };
    let engine = ((number + number_on_node(fabric)) % usize::from(limits.engines.max(1))) as u8;
    match ControlQueue::open(fabric, spec.on(engine)) {
        Err(FabricError::Queue(error)) if matches!(*error, QueueError::NoneFree(_)) => {
            Ok(ControlQueue::open(fabric, spec)?)
        }
        other => Ok(other?),
    }
}

/// Returns this rank's number among those of its node.
fn number_on_node(fabric: &Fabric) -> usize {
    let Ok(node) = fabric.node(fabric.rank()) else { return 0 };
    let mut ranks = (0..).map_while(|number| fabric.facts().rank_on(node, number));
    ranks.position(|rank| rank == fabric.rank()).unwrap_or(0)
}

/// The location of a channel's queue, words and data at the member that publishes it, for a
/// neighbour's queues.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueueContact {
    pub(crate) name: Name,
    /// The queue that serves the channel.
    queue: u64,
    /// The address for the neighbour's READYs.
    word: u64,
    /// The address for the neighbour's data.
    data: u64,
    /// The address for the END of a partition, or a separate END.
    end: u64,
    /// The number of slots that each arrival must release: READYs, and data that are forwarded.
    credit: u64,
    /// 1 if data that arrive are forwarded, otherwise 0.
    feeds: u64,
    /// 1 if data end with a notice, otherwise 0.
    notice: u64,
}

impl QueueContact {
    /// Returns the neighbour's queue.
    fn queue(&self, channel: &Channel) -> Result<QueueId> {
        let to = QueueId::from_bits(self.queue).filter(|to| to.rank() == channel.rank);
        to.ok_or(PrdmaError::Damaged { member: channel.member })
    }

    /// Returns the number of slots that each arrival releases.
    fn credit(&self, channel: &Channel) -> Result<u8> {
        let credit = u8::try_from(self.credit).ok().filter(|credit| (1..=15).contains(credit));
        credit.ok_or(PrdmaError::Damaged { member: channel.member })
    }

    /// Returns the READY for the neighbour's edge.
    fn ready(&self, channel: &Channel) -> Result<Ready> {
        Ok(Ready { to: self.queue(channel)?, word: Stadd::from_bits(self.word), credit: self.credit(channel)? })
    }

    /// Returns the effect of data where they arrive.
    fn on_arrival(&self, channel: &Channel, end: EndOfData) -> Result<OnArrival> {
        let credit = if self.feeds == 1 { self.credit(channel)? } else { 0 };
        let end = (end == EndOfData::Separate).then(|| Stadd::from_bits(self.end));
        Ok(OnArrival { notice: self.notice == 1, credit, end })
    }
}

/// Queues of one member that are open and have no commands yet.
pub(crate) struct OpenQueues {
    queues: Vec<OpenQueue>,
    /// The queues that serve each channel, by channel.
    assigned: Vec<Assignment>,
}

struct OpenQueue {
    queue: ControlQueue,
    shape: Shape,
}

impl OpenQueue {
    /// Returns the address, on this queue, of a word whose content is never read.
    fn scratch(&self, connections: &Connections) -> Result<Stadd> {
        Ok(self.queue.register(connections.words.region())? + connections.scratch_word())
    }

    /// Returns the data that are sent along a channel.
    fn data(
        &self,
        channel: &Channel,
        agreed: &Agreed,
        connections: &Connections,
        contact: &QueueContact,
    ) -> Result<Option<Data>> {
        let Some(out) = &agreed.out else { return Ok(None) };
        let from = self.queue.register(connections.sending(channel).unwrap_or(&connections.words).region())?;
        let (to, at, on_arrival) =
            (contact.queue(channel)?, Stadd::from_bits(contact.data), contact.on_arrival(channel, agreed.end)?);
        Ok(Some(Data { to, from, at, pieces: out.pieces.clone(), on_arrival }))
    }
}

impl OpenQueues {
    /// Opens the number of queues that `form` has for channels with these demands, which are
    /// [assigned](assign_queues) to them. Data arrive in this many `partitions`, each with a
    /// notice.
    ///
    /// # Errors
    /// As [`ControlQueue::open`]: nothing is left open.
    pub(crate) fn open(fabric: &Fabric, form: Form, demands: &[Demand], partitions: u64) -> Result<Self> {
        let Assignments { queues, assigned } = assign_queues(form, demands);
        let open = |(number, shape): (usize, Shape)| {
            // A member that only receives has nothing to release: its READYs leave from a normal
            // queue.
            let (mode, ahead) = match shape.awaited {
                0 => (QueueMode::Normal, 0),
                _ => (QueueMode::Session, shape.readies as u32),
            };
            let notices = shape.notices.saturating_mul(partitions);
            Ok(OpenQueue { queue: open_queue(fabric, number, mode, shape.depth(), notices, ahead)?, shape })
        };
        Ok(OpenQueues { queues: queues.into_iter().enumerate().map(open).collect::<Result<_>>()?, assigned })
    }

    /// Turns queues of edges into queues of their partitions: each channel becomes `partitions`
    /// channels, one after the other.
    pub(crate) fn per_partition(mut self, partitions: usize) -> Self {
        let each = |assigned: &Assignment| core::iter::repeat_n(*assigned, partitions);
        self.assigned = self.assigned.iter().flat_map(each).collect();
        self
    }

    /// Registers the memory of the channels on their queues, and yields the contacts for the
    /// neighbours.
    ///
    /// # Errors
    /// As [`ControlQueue::register`].
    pub(crate) fn contacts(&self, channels: &[Channel], connections: &Connections) -> Result<Vec<QueueContact>> {
        let contact = |(channel, assigned): (&Channel, &Assignment)| {
            let open = &self.queues[assigned.queue];
            let words = open.queue.register(connections.words.region())?;
            let data = match connections.receiving(channel) {
                Some(memory) => open.queue.register(memory.region())?.to_bits(),
                None => 0,
            };
            Ok(QueueContact {
                name: Name::of(channel),
                queue: open.queue.id().to_bits(),
                word: (words + connections.ready_word(channel)).to_bits(),
                data,
                end: (words + connections.end_word(channel)).to_bits(),
                credit: u64::from(open.shape.credit()),
                feeds: u64::from(assigned.feeds),
                notice: u64::from(assigned.notice),
            })
        };
        channels.iter().zip(&self.assigned).map(contact).collect()
    }

    /// Makes the engine, once the neighbours' contacts are known: `theirs` by channel. Waits depend
    /// on `ranks`.
    ///
    /// # Errors
    /// [`PrdmaError::Damaged`]; as [`ControlQueue::register`].
    pub(crate) fn engine(
        self,
        fabric: &Fabric,
        channels: &[Channel],
        agreed: &[Agreed],
        connections: &Connections,
        theirs: &[QueueContact],
        ranks: Box<[Rank]>,
    ) -> Result<QueueEngine> {
        let received = channels.iter().zip(agreed).filter(|(_, agreed)| agreed.inn.is_some());
        let separate = received.filter(|(_, agreed)| agreed.end == EndOfData::Separate);
        let ends = separate.map(|(channel, _)| connections.end(channel)).collect::<Result<_>>()?;
        let mut queues = Vec::with_capacity(self.queues.len());
        for (number, open) in self.queues.into_iter().enumerate() {
            let (mut readies, mut data) = (Vec::new(), Vec::new());
            for (at, assigned) in self.assigned.iter().enumerate() {
                let (channel, agreed, contact) = (&channels[at], &agreed[at], &theirs[at]);
                if agreed.inn.is_some() && assigned.ready_queue == number {
                    readies.push(contact.ready(channel)?);
                }
                if assigned.queue == number {
                    data.extend(open.data(channel, agreed, connections, contact)?);
                }
            }
            let program = program(open.queue.id(), open.scratch(connections)?, &open.shape, &readies, &data);
            queues.push((open.queue, program, open.shape.notices as u32));
        }
        Ok(QueueEngine::new(fabric, queues.into_iter(), ranks).with_ends(ends))
    }

    /// Makes the engine of channels that are partitions, `partitions` of an edge one after the
    /// other, once the neighbours' contacts are known: `theirs` by channel.
    ///
    /// # Errors
    /// [`PrdmaError::Damaged`]; as [`ControlQueue::register`].
    pub(crate) fn partitioned(
        self,
        fabric: &Fabric,
        partitions: usize,
        channels: &[Channel],
        agreed: &[Agreed],
        connections: &Connections,
        theirs: &[QueueContact],
    ) -> Result<QueuePartitions> {
        let many = self.queues.len();
        let (mut readies, mut completions) = (vec![Vec::new(); many], vec![0u32; many]);
        let mut posted: Vec<(usize, Vec<CommandTemplate>)> = Vec::new();
        for (at, ((channel, agreed), contact)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let queue = self.assigned[at].queue;
            if agreed.inn.is_some() && at % partitions == 0 {
                readies[queue].push(contact.ready(channel)?);
            }
            if let Some(data) = self.queues[queue].data(channel, agreed, connections, contact)? {
                posted.push((queue, data.partition(Stadd::from_bits(contact.end))));
                completions[queue] += 1;
            }
        }
        let mut queues = Vec::with_capacity(many);
        for (open, (readies, completions)) in self.queues.into_iter().zip(readies.into_iter().zip(completions)) {
            let commands = releases(open.queue.id(), open.scratch(connections)?, &open.shape, &readies);
            let program = Program { commands, completions };
            queues.push((open.queue, program, (readies.len() * partitions) as u32));
        }
        let ranks = super::awaited(fabric.rank(), channels);
        Ok(QueuePartitions { engine: QueueEngine::new(fabric, queues.into_iter(), ranks), partitions: posted })
    }
}
