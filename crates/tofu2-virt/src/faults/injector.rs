//! Injects faults into the machine.

use super::{Fault, FaultKind, FaultReport, Faults};
use crate::{core::Machine, operation::Opcode, platform::Timing};
use std::{collections::VecDeque, mem, time::Duration};

/// Puts of more bytes than this are long: they take several packets.
const LONG: u64 = 2048;

/// Injects a job's faults, if it has any.
#[derive(Debug)]
pub(crate) struct Injector(Option<Box<Injection>>);

#[derive(Debug, Default)]
struct Injection {
    faults: Vec<Fault>,
    /// Whether each fault had an effect.
    struck: Vec<bool>,
    /// Links that are slow or down, with the fault's index.
    links: Vec<(usize, Link)>,
    /// Queues whose commands start later.
    stalls: Vec<(usize, Stall)>,
    /// Faults that wait for the first command or notice to which they apply.
    armed: VecDeque<(usize, FaultKind)>,
    credits: Vec<LateCredit>,
    /// Nodes that have stopped but whose ranks have not been ended yet.
    stopped: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    from: u32,
    to: u32,
    /// The end of the fault, in picoseconds.
    until: u64,
    /// The extra time in picoseconds; `None` if the link is down.
    extra: Option<u64>,
    /// Arrival time of the last message that this link held back.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    rank: u32,
    engine: u8,
    number: u8,
    until: u64,
}

/// A late advance of a session offset: the queue's slot and generation, and the amount of the
/// advance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateCredit {
    pub(crate) queue: u32,
    pub(crate) generation: u32,
    pub(crate) slots: u8,
}

/// A fault that has begun: its name, and the rank that it affects (the first rank of the node if it
/// affects a node).
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
        // Kept until the held-back messages have arrived, so that no later message overtakes them.
        self.links.retain(|(_, link)| now < link.until.max(link.last));
        let mut late = arrival;
        for (index, link) in &mut self.links {
            if (link.from, link.to) != ends {
                continue;
            }
            let held = match link.extra {
                _ if now >= link.until => late,
                Some(extra) => late.saturating_add(extra),
                None => late.max(link.until.saturating_add(arrival.saturating_sub(now))),
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

    /// Returns the time at which each fault begins.
    pub(crate) fn times(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(|injection| injection.faults.iter().map(|fault| fault.at.as_picos()))
    }

    /// Returns the outcome of the faults, at the end of the run.
    pub(crate) fn report(&mut self) -> Option<FaultReport> {
        self.0.take().map(|injection| FaultReport { faults: Faults::new(injection.faults), struck: injection.struck })
    }

    /// Handles a `Fault` event.
    pub(crate) fn strike(&mut self, machine: &Machine, now: u64, index: usize) -> Option<Struck> {
        let injection = self.0.as_deref_mut()?;
        let kind = injection.faults[index].kind;
        let until = |lasts| now.saturating_add(picos(lasts));
        match kind {
            FaultKind::NodeStop { node } => {
                let exists = u64::from(node).saturating_mul(machine.ranks_per_node.into()) < machine.ranks.into();
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

    /// Returns whether there are ranks to be ended.
    #[inline]
    pub(crate) fn has_stopped_nodes(&self) -> bool {
        self.0.as_ref().is_some_and(|injection| !injection.stopped.is_empty())
    }

    /// Returns the nodes that have stopped since the last call.
    pub(crate) fn take_stopped(&mut self) -> Vec<u32> {
        self.0.as_mut().map(|injection| mem::take(&mut injection.stopped)).unwrap_or_default()
    }

    /// Returns the arrival time of a message between two nodes that is sent now and would arrive at
    /// `arrival` without faults. Messages that a link holds back follow each other as closely as
    /// their `payload`, in picoseconds, allows.
    #[inline]
    pub(crate) fn over_links(&mut self, now: u64, ends: (u32, u32), arrival: u64, payload: u64) -> u64 {
        match &mut self.0 {
            Some(injection) if !injection.links.is_empty() => injection.over_links(now, ends, arrival, payload),
            _ => arrival,
        }
    }

    /// Returns the time at which a control queue may start a command that it could otherwise start
    /// at `start`.
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

    /// Returns whether a notice for the rank overflows its MRQ.
    #[inline]
    pub(crate) fn overflows(&mut self, rank: u32) -> bool {
        let fits = |kind| matches!(kind, FaultKind::MrqOverflow { rank: whose } if whose == rank).then_some(());
        self.0.as_mut().is_some_and(|injection| injection.take(fits).is_some())
    }

    /// Returns the delay of a completion of the rank, in picoseconds.
    #[inline]
    pub(crate) fn completion_late(&mut self, rank: u32) -> u64 {
        let Some(injection) = &mut self.0 else { return 0 };
        let late = injection.take(|kind| match kind {
            FaultKind::LateCompletion { rank: whose, by } if whose == rank => Some(picos(by)),
            _ => None,
        });
        late.unwrap_or(0)
    }

    /// Returns the index and the delay, in picoseconds, of an advance by a queue of the rank;
    /// `None` if it is not late.
    #[inline]
    pub(crate) fn credit_late(&mut self, rank: u32, credit: LateCredit) -> Option<(u32, u64)> {
        let injection = self.0.as_mut()?;
        let by = injection.take(|kind| match kind {
            FaultKind::LateCredit { rank: whose, by } if whose == rank => Some(picos(by)),
            _ => None,
        })?;
        injection.credits.push(credit);
        Some(((injection.credits.len() as u32).saturating_sub(1), by))
    }

    /// Returns the advance to which a `Credit` event belongs.
    pub(crate) fn late_credit(&self, index: u32) -> Option<LateCredit> {
        self.0.as_ref()?.credits.get(index as usize).copied()
    }

    /// Returns the time at which the first half of a message for the rank becomes visible, if that
    /// is before the whole message arrives.
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

/// Converts a duration to picoseconds.
fn picos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX / 4)
}
