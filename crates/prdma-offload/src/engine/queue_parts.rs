//! Parts of blocks posted one by one behind the READYs that release them.
//!
//! ```text
//! start                                       ready             ready
//! READY ... READY | NOP ... | SELF ... SELF | DATA ... END(p) | DATA ... END(q) | ...
//! ```
//! What is posted at start is the [program](super::program) without its data. Credit that comes before its commands is kept, so a part that is
//! marked late leaves at once, and one that is marked early waits for its receiver only (in a queue with several neighbours: for all). An iteration has
//! the same number of slots whatever the order, because it can't end before all parts are posted; so the argument about credit is that of the
//! program, with a network interface that is slow between SELF and DATA.

use super::{
    Contact, Data, Opened, QueueEngine, Step,
    program::{Program, Told, part, releases},
};
use crate::{
    Result,
    init::{Agreed, Channel, Wires},
};
use rdma_fabric::{Deps, Fabric, control_queue::Stadd};

/// Queues, and the commands of each part.
pub(crate) struct QueueParts {
    pub(crate) engine: QueueEngine,
    /// In the order of the channels that send: the queue, and the commands.
    parts: Vec<(usize, Vec<Step>)>,
}

impl Opened {
    /// From edges to their parts: each channel is so many one after the other.
    pub(crate) fn spread(mut self, parts: usize) -> Self {
        self.served = self.served.iter().flat_map(|served| core::iter::repeat_n(*served, parts)).collect();
        self
    }

    /// The queues of channels that are parts, `parts` of an edge one after the other, once the neighbours' contacts are known.
    ///
    /// # Errors
    /// As [`Opened::engine`].
    pub(crate) fn parts(
        self,
        fabric: &Fabric,
        parts: usize,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires,
        theirs: &[Contact],
    ) -> Result<QueueParts> {
        let many = self.queues.len();
        let (mut readies, mut completions) = (vec![Vec::new(); many], vec![0u32; many]);
        let mut posted = Vec::new();
        for (at, ((channel, agreed), contact)) in channels.iter().zip(agreed).zip(theirs).enumerate() {
            let by = self.served[at].by;
            if agreed.inn.is_some() && at % parts == 0 {
                readies[by].push(contact.ready(channel)?);
            }
            if let Some(out) = &agreed.out {
                let memory = wires.sending(channel).unwrap_or(&wires.words);
                let from = self.queues[by].queue.register(memory.region())?;
                let to = contact.queue(channel)?;
                // Its own word tells of a part.
                let told = Told { notice: false, credit: 0 };
                let data = Data { to, from, at: Stadd::from_bits(contact.data), pieces: out.pieces.clone(), told };
                posted.push((by, part(&data, Stadd::from_bits(contact.end))));
                completions[by] += 1;
            }
        }
        let mut queues = Vec::with_capacity(many);
        for (open, (readies, completions)) in self.queues.into_iter().zip(readies.into_iter().zip(completions)) {
            let scratch = open.queue.register(wires.words.region())? + wires.scratch_word();
            let steps = releases(open.queue.id(), scratch, &open.shape, &readies);
            let program = Program { steps, completions, chained: open.shape.selfs() > 0 };
            queues.push((open.queue, program, (readies.len() * parts) as u32));
        }
        let ranks = channels.iter().map(|channel| channel.rank).collect();
        let engine = QueueEngine::new(fabric, queues.into_iter(), ranks);
        Ok(QueueParts { engine, parts: posted })
    }
}

impl QueueParts {
    /// Post part `at`. Its queue has room for two iterations.
    pub(crate) async fn post(&self, at: usize, iteration: u64) -> Result<()> {
        let (by, steps) = &self.parts[at];
        for step in steps {
            self.engine.queues[*by].queue.post(step.posting(iteration), Deps::Ranks(&self.engine.ranks)).await?;
        }
        Ok(())
    }
}
