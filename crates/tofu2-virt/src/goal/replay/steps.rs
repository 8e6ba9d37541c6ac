//! The steps of a replay: an operation starts, a message arrives, a class of operations tries again.

use super::{Machine, events::Event};
use crate::{
    goal::{
        parameters::NANOSECOND,
        schedule::{Kind, edges, size},
    },
    prefetch::prefetch,
};
use std::cmp::Reverse;

/// Operations are prefetched this many events ahead, the tables that they refer to half as many.
const AHEAD: usize = 16;

/// The resources that an operation needs, as indices of `Machine::free`, and its class.
#[derive(Clone, Copy, Debug)]
struct Needs {
    rank: u32,
    cpu: usize,
    /// A calculation uses none.
    nic: Option<usize>,
    class: u32,
}

impl Machine {
    /// Starts an operation, or receives a message, as soon as its resources are free.
    #[inline]
    pub(super) fn start(&mut self, index: u32) {
        if self.ops[index as usize].kind == Kind::Recv {
            self.fire(index, true, self.now);
            self.receive(index);
            self.schedule_executable();
            return;
        }
        let needs = self.needs(index);
        let list = self.list(needs.rank, needs.class);
        let free = self.free_at(needs);
        if self.waiting[list].is_empty() && free <= self.now {
            self.execute(index, needs);
            return;
        }
        if self.waiting[list].is_empty() {
            self.queue.push(Event::retry(free, needs.rank, needs.class));
        }
        self.waiting[list].push(&mut self.ops, index);
    }

    /// Lets a class of a rank try again at this time, in the order of stamps.
    pub(super) fn retry_now(&mut self, rank: u32, class: u32) {
        if let Some(first) = self.waiting[self.list(rank, class)].front(&self.ops) {
            self.retries.push(Reverse((self.ops[first as usize].stamp, rank, class)));
        }
    }

    /// Starts the first operation of the class that is first to try again, unless something else has
    /// taken its resources. The class tries again as long as operations of it wait.
    pub(super) fn retry_first(&mut self) {
        let Some(Reverse((_, rank, class))) = self.retries.pop() else { return };
        let list = self.list(rank, class);
        let Some(first) = self.waiting[list].front(&self.ops) else { return };
        let needs = self.needs(first);
        if self.free_at(needs) <= self.now {
            self.waiting[list].pop(&mut self.ops);
            self.execute(first, needs);
            if self.waiting[list].is_empty() {
                return;
            }
        }
        // All of a class need the same resources.
        match self.free_at(needs) {
            free if free <= self.now => self.retry_now(rank, class),
            free => self.queue.push(Event::retry(free, rank, class)),
        }
    }

    #[inline]
    fn list(&self, rank: u32, class: u32) -> usize {
        rank as usize * self.classes + class as usize
    }

    #[inline]
    fn needs(&self, index: u32) -> Needs {
        let op = &self.ops[index as usize];
        let (cpu, nic) = (usize::from(op.cpu), usize::from(op.nic));
        let pair = self.cpus + cpu * self.nics + nic;
        let (rank, nic, class) = match op.kind {
            Kind::Send => (op.rank, Some(self.cpus + nic), pair),
            Kind::Message | Kind::Offer => (op.peer, Some(self.cpus + self.nics + nic), pair + self.cpus * self.nics),
            _ => (op.rank, None, cpu),
        };
        let first = rank as usize * (self.cpus + 2 * self.nics);
        Needs { rank, cpu: first + cpu, nic: nic.map(|nic| first + nic), class: class as u32 }
    }

    #[inline]
    fn free_at(&self, needs: Needs) -> u64 {
        needs.nic.map_or(0, |nic| self.free[nic]).max(self.free[needs.cpu])
    }

    #[inline]
    fn execute(&mut self, index: u32, needs: Needs) {
        match (self.ops[index as usize].kind, needs.nic) {
            (Kind::Send, Some(nic)) => self.send(index, needs.cpu, nic),
            (_, Some(nic)) => self.arrive(index, needs.cpu, nic),
            (_, None) => self.calculate(index, needs.cpu),
        }
        self.schedule_executable();
    }

    fn calculate(&mut self, index: u32, cpu: usize) {
        let op = &mut self.ops[index as usize];
        op.kind = Kind::Finished;
        let end = self.now.saturating_add(size(op, &self.large).saturating_mul(NANOSECOND));
        self.free[cpu] = end;
        self.unfinished -= 1;
        self.fire(index, true, self.now);
        self.fire(index, false, end);
    }

    fn send(&mut self, index: u32, cpu: usize, nic: usize) {
        let (machine, now) = (self.loggps, self.now);
        let op = &mut self.ops[index as usize];
        let bytes = size(op, &self.large);
        let more = bytes.saturating_sub(1);
        let overhead_end = now.saturating_add(machine.overhead);
        let end = overhead_end.saturating_add(more.saturating_mul(machine.overhead_per_byte));
        self.free[cpu] = end;
        self.free[nic] = now.saturating_add(machine.gap).saturating_add(more.saturating_mul(machine.gap_per_byte));
        let is_eager = bytes <= machine.eager_bytes;
        op.kind = if is_eager { Kind::Message } else { Kind::Offer };
        op.stamp = self.stamps;
        self.stamps += 1;
        self.messages += 1;
        self.queue.push(Event::start(overhead_end.saturating_add(machine.latency), index));
        self.fire(index, true, now);
        if is_eager {
            self.fire(index, false, end);
        }
    }

    fn arrive(&mut self, index: u32, cpu: usize, nic: usize) {
        let (machine, now) = (self.loggps, self.now);
        let more = size(&self.ops[index as usize], &self.large).saturating_sub(1);
        let per_byte = machine.overhead_per_byte.max(machine.gap_per_byte);
        let end = now.saturating_add(machine.overhead).saturating_add(more.saturating_mul(per_byte));
        self.free[cpu] = end;
        self.free[nic] = now.saturating_add(machine.gap).saturating_add(more.saturating_mul(machine.gap_per_byte));
        match self.posted_receive(index) {
            Some(receive) => self.deliver(index, receive, end),
            None => self.ops[index as usize].set_arrived(end),
        }
    }

    fn receive(&mut self, index: u32) {
        if let Some(message) = self.unreceived_message(index) {
            let end = self.ops[message as usize].arrived().max(self.now);
            self.deliver(message, index, end);
        }
    }

    /// Ends a receive at `end`, and the send of its message now if that has waited for it.
    fn deliver(&mut self, message: u32, receive: u32, end: u64) {
        let op = &mut self.ops[message as usize];
        let (rank, cpu, nic) = (op.rank as usize, usize::from(op.cpu), usize::from(op.nic));
        let was_offered = core::mem::replace(&mut op.kind, Kind::Finished) == Kind::Offer;
        self.ops[receive as usize].kind = Kind::Finished;
        self.unfinished -= 2;
        if was_offered {
            let first = rank * (self.cpus + 2 * self.nics);
            for resource in [first + cpu, first + self.cpus + nic] {
                self.free[resource] = self.free[resource].max(self.now);
            }
            self.fire(message, false, self.now);
        }
        self.fire(receive, false, end);
    }

    /// Counts down the dependencies on the start of an operation, or on its end, which is at `at`.
    #[inline]
    fn fire(&mut self, index: u32, on_start: bool, at: u64) {
        let index = index as usize;
        let end = self.ops.get(index + 1).map_or(self.edges.len(), |next| next.edges as usize);
        for edge in self.ops[index].edges as usize..end {
            let edge = self.edges[edge];
            if edge.is_on_start() == on_start {
                let later = &mut self.ops[edge.target() as usize];
                later.link -= 1;
                if later.link == 0 {
                    self.executable.push((edge.target(), at));
                }
            }
        }
    }

    /// Schedules the operations that have become executable, in order of rank and kind.
    #[inline]
    pub(super) fn schedule_executable(&mut self) {
        if self.executable.is_empty() {
            return;
        }
        let mut executable = core::mem::take(&mut self.executable);
        if executable.len() > 1 {
            let ops = &self.ops;
            executable.sort_by_key(|(index, _)| (ops[*index as usize].rank, ops[*index as usize].kind));
        }
        for (index, at) in executable.drain(..) {
            let time = self.free_at(self.needs(index)).max(at);
            self.ops[index as usize].stamp = self.stamps;
            self.stamps += 1;
            self.queue.push(Event::start(time, index));
        }
        self.executable = executable;
    }

    /// Prefetches the operations of later events, and the tables of nearer ones.
    #[inline]
    pub(super) fn prefetch(&self, batch: &[Event], index: usize) {
        let operation = |ahead: usize| batch.get(index + ahead).filter(|event| event.class().is_none());
        if let Some(event) = operation(AHEAD) {
            prefetch(&self.ops[event.subject as usize]);
        }
        if let Some(event) = operation(AHEAD / 2) {
            let op = &self.ops[event.subject as usize];
            let rank = if matches!(op.kind, Kind::Message | Kind::Offer) { op.peer } else { op.rank };
            prefetch(&self.free[rank as usize * (self.cpus + 2 * self.nics)]);
            prefetch(&self.waiting[rank as usize * self.classes]);
            if let Some(channel) = self.channels.get(op.tag as usize) {
                prefetch(channel);
            }
            if let Some(edge) = edges(&self.ops, &self.edges, event.subject as usize).first() {
                prefetch(edge);
            }
        }
    }
}
