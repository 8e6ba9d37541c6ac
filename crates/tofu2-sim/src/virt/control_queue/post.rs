//! Posting: what can be told to be wrong without memory, room, the descriptor.

use super::{super::core::Core, life::Point};
use rdma_fabric::{
    Refused,
    control_queue::{Command, Posting, QueueError, QueueId},
};

impl Core {
    /// What is wrong with a posting whatever the queue's state is.
    fn check_posting(&self, queue: u32, posting: &Posting) -> Result<(), QueueError> {
        let state = self.queues.get(queue);
        let id = state.id;
        let limit = |what, value: u64, limit: u64| Err(QueueError::Limit { queue: id, what, value, limit });
        let (len, blocks) = match posting.command {
            Command::Put { len, blocks, .. } | Command::Get { len, blocks, .. } => (len, blocks.count),
            _ => (0, 1),
        };
        let most = u64::from(state.toq.depth()) - 1;
        if blocks == 0 {
            return limit("the number of blocks, at least 1,", 0, most);
        }
        if len > self.timing.queues.longest {
            return limit("the length of a command", len.into(), self.timing.queues.longest.into());
        }
        if posting.command.slots() > most {
            return limit("the number of slots of a posting", posting.command.slots(), most);
        }
        if posting.sps > 15 {
            return limit("the SPS", posting.sps.into(), 15);
        }
        if u64::from(posting.mtu) > self.timing.packet_payload {
            return limit("the MTU", posting.mtu.into(), self.timing.packet_payload);
        }
        if let Some(path) = posting.path
            && (path > 15 || path >> 1 & 3 == 3)
        {
            return limit("the path", path.into(), 13);
        }
        if posting.sps > 0 && state.checked && !posting.command.advances() {
            return Err(QueueError::CreditIgnored { queue: id, sps: posting.sps });
        }
        Ok(())
    }

    /// Writes a posting into the queue's TOQ. `ticket`: the poster's place in the line, if it stands there.
    pub(super) fn post_command(
        &mut self,
        queue: u32,
        posting: &Posting,
        ticket: Option<u64>,
    ) -> Result<(), Refused<()>> {
        let failed = |error: QueueError| Err(Refused::Failed(error.into(), ()));
        if let Err(error) = self.check_posting(queue, posting) {
            return failed(error);
        }
        let state = self.queues.get_mut(queue);
        if let Some(error) = state.end() {
            return failed(error);
        }
        let first = state.line.front().copied();
        if first.is_some() && first != ticket || !state.toq.has_room(posting.command.slots()) {
            return Err(Refused::Full(()));
        }
        let rank = state.rank;
        let cpu = &mut self.ranks[rank as usize].cpu_until;
        *cpu = self.now.max(*cpu).saturating_add(self.timing.post);
        let written_at = *cpu;
        let slot = state.toq.push(*posting, written_at);
        self.queues.life.pass(Point::Posted, written_at, queue, slot, posting.command.commands());
        self.seen_command(queue, slot, posting, written_at);
        self.kick(queue);
        Ok(())
    }

    /// The id that a command's target has, if it can be one of this job.
    pub(super) fn target_exists(&self, id: QueueId) -> bool {
        id.rank().index() < self.ranks.len()
    }
}
