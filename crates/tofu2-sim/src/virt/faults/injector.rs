//! Where faults meet the machine.

use super::{Fault, FaultKind, FaultReport, Faults};
use crate::virt::{core::Machine, operation::Opcode, platform::Timing};
use std::{collections::VecDeque, mem, time::Duration};

/// Puts of more bytes than this are long: they take several packets.
const LONG: u64 = 2048;

/// Injects a job's faults, if it has some.
#[derive(Debug)]
pub(crate) struct Injector(Option<Box<Injection>>);

#[derive(Debug, Default)]
struct Injection {
    faults: Vec<Fault>,
    /// Of each fault, whether it disturbed anything.
    struck: Vec<bool>,
    /// Links that are slow or down, with the fault's index.
    links: Vec<(usize, Link)>,
    /// Queues that start later.
    stalls: Vec<(usize, Stall)>,
    /// Faults that wait for the first thing they fit.
    armed: VecDeque<(usize, FaultKind)>,
    credits: Vec<LateCredit>,
    /// Nodes that have stopped and whose ranks are still to be ended.
    stopped: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    from: u32,
    to: u32,
    /// Picoseconds.
    until: u64,
    /// `None`: down.
    extra: Option<u64>,
    /// When the last message that this link held back arrives.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    rank: u32,
    engine: u8,
    number: u8,
    until: u64,
}

/// An advance of a session offset that is late: of a queue's slot and generation, and by how much
/// it will move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateCredit {
    pub(crate) queue: u32,
    pub(crate) generation: u32,
    pub(crate) slots: u8,
}

/// A fault that has begun: its name, and the rank that it meets or the first of the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Struck {
    pub(crate) rank: u32,
    pub(crate) name: &'static str,
}

impl Injection {
    /// Takes the first armed fault that `fits`.
    fn take<T>(&mut self, fits: impl Fn(FaultKind) -> Option<T>) -> Option<T> {
        let (place, found) = self.armed.iter().enumerate().find_map(|(i, (_, kind))| Some((i, fits(*kind)?)))?;
        let (index, _) = self.armed.remove(place)?;
        self.struck[index] = true;
        Some(found)
    }

    #[cold]
    fn over_links(&mut self, now: u64, ends: (u32, u32), arrival: u64, payload: u64) -> u64 {
        // Kept until what it held back is there, so that nothing overtakes.
        self.links.retain(|(_, link)| now < link.until.max(link.last));
        let mut late = arrival;
        for (index, link) in &mut self.links {
            if (link.from, link.to) != ends {
                continue;
            }
            let held = match link.extra {
                _ if now >= link.until => late,
                Some(extra) => late.saturating_add(extra),
                None => late.max(link.until.saturating_add(arrival - now)),
            };
            let held = if link.last > 0 { held.max(link.last.saturating_add(payload.max(1))) } else { held };
            if held > late {
                self.struck[*index] = true;
            }
            (late, link.last) = (held, held);
        }
        late
    }
}

impl Injector {
    pub(crate) fn new(faults: Option<&Faults>) -> Self {
        Injector(faults.map(|Faults(faults, _)| {
            Box::new(Injection { faults: faults.clone(), struck: vec![false; faults.len()], ..Injection::default() })
        }))
    }

    /// When each fault begins.
    pub(crate) fn times(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|injection| injection.faults.iter().map(|fault| fault.at.as_picos()))
    }

    /// What became of the faults, when the run is over.
    pub(crate) fn report(&mut self) -> Option<FaultReport> {
        self.0.take().map(|injection| FaultReport { faults: Faults::new(injection.faults), struck: injection.struck })
    }

    /// A `Fault` event has come.
    pub(crate) fn strike(&mut self, machine: &Machine, now: u64, index: usize) -> Option<Struck> {
        let injection = self.0.as_deref_mut()?;
        let kind = injection.faults[index].kind;
        let until = |lasts| now.saturating_add(picos(lasts));
        match kind {
            FaultKind::NodeStop { node } => {
                let exists = u64::from(node) * u64::from(machine.ranks_per_node) < machine.ranks.into();
                injection.struck[index] = exists;
                if exists {
                    injection.stopped.push(node);
                }
            }
            FaultKind::LinkSlow { from, to, extra, lasts } => {
                let extra = Some(picos(extra));
                injection.links.push((index, Link { from, to, until: until(lasts), extra, last: 0 }));
            }
            FaultKind::LinkDown { from, to, lasts } => {
                injection.links.push((index, Link { from, to, until: until(lasts), extra: None, last: 0 }));
            }
            FaultKind::QueueStall { rank, engine, number, lasts } => {
                injection.stalls.push((index, Stall { rank, engine, number, until: until(lasts) }));
            }
            other => injection.armed.push_back((index, other)),
        }
        let of_node = |node: u32| node.saturating_mul(machine.ranks_per_node);
        let (rank, name) = match kind {
            FaultKind::NodeStop { node } => (of_node(node), "fault: node stops"),
            FaultKind::LinkSlow { from, .. } => (of_node(from), "fault: slow link"),
            FaultKind::LinkDown { from, .. } => (of_node(from), "fault: link down"),
            FaultKind::MrqOverflow { rank } => (rank, "fault: MRQ overflow"),
            FaultKind::LateCompletion { rank, .. } => (rank, "fault: late completion"),
            FaultKind::LateCredit { rank, .. } => (rank, "fault: late credit"),
            FaultKind::QueueStall { rank, .. } => (rank, "fault: queue stalls"),
            FaultKind::PartialPut { rank } => (rank, "fault: partial put"),
        };
        Some(Struck { rank, name })
    }

    /// Whether ranks are to be ended.
    #[inline]
    pub(crate) fn has_stopped_nodes(&self) -> bool {
        self.0.as_ref().is_some_and(|injection| !injection.stopped.is_empty())
    }

    /// Nodes that have stopped since the last call.
    pub(crate) fn take_stopped(&mut self) -> Vec<u32> {
        self.0.as_mut().map(|injection| mem::take(&mut injection.stopped)).unwrap_or_default()
    }

    /// When a message between two nodes arrives that is sent now and would arrive at `arrival`.
    /// Those that a link holds back follow each other as closely as their `payload` allows, in
    /// picoseconds.
    #[inline]
    pub(crate) fn over_links(&mut self, now: u64, ends: (u32, u32), arrival: u64, payload: u64) -> u64 {
        match &mut self.0 {
            Some(injection) if !injection.links.is_empty() => injection.over_links(now, ends, arrival, payload),
            _ => arrival,
        }
    }

    /// When a control queue may start a command that it could start at `start`.
    #[inline]
    pub(crate) fn unless_stalled(&mut self, rank: u32, engine: u8, number: u8, start: u64) -> u64 {
        let Some(injection) = &mut self.0 else { return start };
        let mut late = start;
        for (index, stall) in &injection.stalls {
            if (stall.rank, stall.engine, stall.number) == (rank, engine, number) && late < stall.until {
                late = stall.until;
                injection.struck[*index] = true;
            }
        }
        late
    }

    /// Whether a notice for the rank overflows its MRQ.
    #[inline]
    pub(crate) fn overflows(&mut self, rank: u32) -> bool {
        let fits = |kind| matches!(kind, FaultKind::MrqOverflow { rank: whose } if whose == rank).then_some(());
        self.0.as_mut().is_some_and(|injection| injection.take(fits).is_some())
    }

    /// How late a completion of the rank is, in picoseconds.
    #[inline]
    pub(crate) fn completion_late(&mut self, rank: u32) -> u64 {
        let Some(injection) = &mut self.0 else { return 0 };
        let late = injection.take(|kind| match kind {
            FaultKind::LateCompletion { rank: whose, by } if whose == rank => Some(picos(by)),
            _ => None,
        });
        late.unwrap_or(0)
    }

    /// Whether an advance of a queue of the rank is late: its index, and by how many picoseconds.
    #[inline]
    pub(crate) fn credit_late(&mut self, rank: u32, credit: LateCredit) -> Option<(u32, u64)> {
        let injection = self.0.as_mut()?;
        let by = injection.take(|kind| match kind {
            FaultKind::LateCredit { rank: whose, by } if whose == rank => Some(picos(by)),
            _ => None,
        })?;
        injection.credits.push(credit);
        Some((injection.credits.len() as u32 - 1, by))
    }

    /// The advance of a `Credit` event that has come.
    pub(crate) fn late_credit(&self, index: u32) -> Option<LateCredit> {
        self.0.as_ref()?.credits.get(index as usize).copied()
    }

    /// When the first half of a message for the rank is seen, if before it arrives as a whole.
    #[inline]
    pub(crate) fn half_seen(
        &mut self,
        timing: &Timing,
        now: u64,
        rank: u32,
        opcode: Opcode,
        bytes: u64,
        arrival: u64,
    ) -> Option<u64> {
        let injection = self.0.as_mut()?;
        if opcode != Opcode::Put || bytes <= LONG {
            return None;
        }
        injection.take(|kind| matches!(kind, FaultKind::PartialPut { rank: whose } if whose == rank).then_some(()))?;
        Some(arrival.saturating_sub(timing.payload(bytes) / 2).max(now))
    }
}

/// A duration in picoseconds.
fn picos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX / 4)
}
