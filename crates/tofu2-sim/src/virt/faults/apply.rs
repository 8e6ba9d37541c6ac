//! Where faults meet the machine.

use super::{FaultKind, Link, Stall, picos};
use crate::virt::{
    core::Core,
    event::{Event, Kind},
    op::Verb,
    timeline::{Place, What},
};

/// Puts of more bytes than this are long: they take several packets.
const LONG: u64 = 2048;

impl Core {
    /// A `Fault` event has come.
    pub(in super::super) fn strike(&mut self, index: u32) {
        let index = index as usize;
        let Some(trouble) = &mut self.trouble else { return };
        let kind = trouble.faults[index].kind;
        let now = self.now;
        let until = |lasts| now.saturating_add(picos(lasts));
        match kind {
            FaultKind::NodeStop { node } => {
                let exists = u64::from(node) * u64::from(self.ranks_per_node) < self.ranks.len() as u64;
                trouble.struck[index] = exists;
                if exists {
                    trouble.stopped.push(node);
                }
            }
            FaultKind::LinkSlow { from, to, extra, lasts } => {
                let extra = Some(picos(extra));
                trouble.links.push((index, Link { from, to, until: until(lasts), extra, last: 0 }));
            }
            FaultKind::LinkDown { from, to, lasts } => {
                trouble.links.push((index, Link { from, to, until: until(lasts), extra: None, last: 0 }));
            }
            FaultKind::QueueStall { rank, engine, number, lasts } => {
                trouble.stalls.push((index, Stall { rank, engine, number, until: until(lasts) }));
            }
            other => trouble.armed.push_back((index, other)),
        }
        self.show_fault(kind);
    }

    /// Whether ranks are to be ended.
    #[inline]
    pub(in super::super) fn has_stopped_nodes(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| !trouble.stopped.is_empty())
    }

    /// Marks a fault in the timeline, at whom it meets.
    fn show_fault(&mut self, kind: FaultKind) {
        let (rank, name) = match kind {
            FaultKind::NodeStop { node } => (node.saturating_mul(self.ranks_per_node), "fault: node stops"),
            FaultKind::LinkSlow { from, .. } => (from.saturating_mul(self.ranks_per_node), "fault: slow link"),
            FaultKind::LinkDown { from, .. } => (from.saturating_mul(self.ranks_per_node), "fault: link down"),
            FaultKind::MrqOverflow { rank } => (rank, "fault: MRQ overflow"),
            FaultKind::LateCompletion { rank, .. } => (rank, "fault: late completion"),
            FaultKind::LateCredit { rank, .. } => (rank, "fault: late credit"),
            FaultKind::QueueStall { rank, .. } => (rank, "fault: queue stalls"),
            FaultKind::PartialPut { rank } => (rank, "fault: partial put"),
        };
        let (node, now) = (self.node_of(rank), self.now);
        if let Some(timeline) = &mut self.timeline {
            timeline.mark(node, Place::Cpu(rank), now, What::Fault(name));
        }
    }

    /// When a message between two nodes arrives that is sent now and would arrive at `arrival`. Those that a link holds back follow each
    /// other as closely as their `payload` allows, in picoseconds.
    #[inline]
    pub(in super::super) fn over_links(&mut self, from: u32, to: u32, arrival: u64, payload: u64) -> u64 {
        match &self.trouble {
            Some(trouble) if !trouble.links.is_empty() => self.over_bad_links(from, to, arrival, payload),
            _ => arrival,
        }
    }

    #[cold]
    fn over_bad_links(&mut self, from: u32, to: u32, arrival: u64, payload: u64) -> u64 {
        let now = self.now;
        let Some(trouble) = &mut self.trouble else { return arrival };
        // Kept until what it held back is there, so that nothing overtakes.
        trouble.links.retain(|(_, link)| now < link.until.max(link.last));
        let mut late = arrival;
        for (index, link) in &mut trouble.links {
            if (link.from, link.to) != (from, to) {
                continue;
            }
            let held = match link.extra {
                _ if now >= link.until => late,
                Some(extra) => late.saturating_add(extra),
                None => late.max(link.until.saturating_add(arrival - now)),
            };
            let held = if link.last > 0 { held.max(link.last.saturating_add(payload.max(1))) } else { held };
            if held > late {
                trouble.struck[*index] = true;
            }
            (late, link.last) = (held, held);
        }
        late
    }

    /// When a control queue may start a command that it could start at `start`.
    #[inline]
    pub(in super::super) fn unless_stalled(&mut self, rank: u32, engine: u8, number: u8, start: u64) -> u64 {
        let Some(trouble) = &mut self.trouble else { return start };
        let mut late = start;
        for (index, stall) in &trouble.stalls {
            if (stall.rank, stall.engine, stall.number) == (rank, engine, number) && late < stall.until {
                late = stall.until;
                trouble.struck[*index] = true;
            }
        }
        late
    }

    /// Whether a notice for the rank overflows its MRQ.
    #[inline]
    pub(in super::super) fn overflows(&mut self, queue: u32) -> bool {
        let Some(trouble) = &mut self.trouble else { return false };
        let rank = self.queues.owner(queue);
        let fits = |kind| matches!(kind, FaultKind::MrqOverflow { rank: whose } if whose == rank).then_some(());
        trouble.take(fits).is_some()
    }

    /// How late a completion of the queue's rank is.
    #[inline]
    pub(in super::super) fn completion_late(&mut self, queue: u32) -> u64 {
        let Some(trouble) = &mut self.trouble else { return 0 };
        let rank = self.queues.owner(queue);
        let late = trouble.take(|kind| match kind {
            FaultKind::LateCompletion { rank: whose, by } if whose == rank => Some(picos(by)),
            _ => None,
        });
        late.unwrap_or(0)
    }

    /// Whether an advance of a queue is late: then an event will make it.
    #[inline]
    pub(in super::super) fn credit_late(&mut self, rank: u32, queue: u32, generation: u32, slots: u8) -> bool {
        let now = self.now;
        let Some(trouble) = &mut self.trouble else { return false };
        let late = trouble.take(|kind| match kind {
            FaultKind::LateCredit { rank: whose, by } if whose == rank => Some(picos(by)),
            _ => None,
        });
        let Some(by) = late else { return false };
        let index = trouble.credits.len() as u32;
        trouble.credits.push((queue, generation, slots));
        self.queue.push(Event::new(now.saturating_add(by), Kind::Credit, index));
        true
    }

    /// A `Credit` event has come: the queue, its generation and the slots.
    pub(in super::super) fn late_credit(&mut self, index: u32) -> Option<(u32, u32, u8)> {
        self.trouble.as_ref().and_then(|trouble| trouble.credits.get(index as usize).copied())
    }

    /// When the first half of a message for the rank is seen, if before it arrives as a whole.
    #[inline]
    pub(in super::super) fn half_seen(&mut self, rank: u32, verb: Verb, bytes: u64, arrival: u64) -> Option<u64> {
        let trouble = self.trouble.as_mut()?;
        if verb != Verb::Put || bytes <= LONG {
            return None;
        }
        trouble.take(|kind| matches!(kind, FaultKind::PartialPut { rank: whose } if whose == rank).then_some(()))?;
        let half = self.timing.payload(bytes) / 2;
        Some(arrival.saturating_sub(half).max(self.now))
    }
}
