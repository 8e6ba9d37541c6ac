//! Network interfaces: send engines, receive engines, the atomic unit of each node.

use super::{
    clock::{Clock, EventKind},
    operation::{Line, Operations},
    platform::Timing,
    prefetch::prefetch,
    slots::NONE,
};

/// Send engines, each of which sends one command after another. Holds the time, in picoseconds, at
/// which each engine of each node is free to take the next.
#[derive(Debug)]
pub(super) struct SendEngines {
    free_at: Vec<u64>,
    engines: u32,
}

impl SendEngines {
    pub(super) fn new(nodes: u32, engines: u32) -> Self {
        SendEngines { free_at: vec![0; nodes as usize * engines as usize], engines }
    }

    /// Takes a command with `bytes` of payload, divided into transfers of at most the machine's
    /// limit. Returns the time at which the engine starts it.
    #[inline]
    pub(super) fn take(&mut self, timing: &Timing, node: u32, engine: u32, now: u64, bytes: u64) -> u64 {
        let last = timing.gap.max(timing.payload(bytes));
        let all = match bytes > timing.max_transfer {
            true => ((bytes - 1) / timing.max_transfer).saturating_mul(timing.gap).saturating_add(last),
            false => last,
        };
        self.occupy(node, engine, now, all)
    }

    /// Takes a command that occupies the engine for `picos` picoseconds. Returns the time at which
    /// the engine starts it.
    #[inline]
    pub(super) fn occupy(&mut self, node: u32, engine: u32, now: u64, picos: u64) -> u64 {
        let free_at = &mut self.free_at[node as usize * self.engines as usize + engine as usize];
        let start = now.max(*free_at);
        *free_at = start.saturating_add(picos);
        start
    }
}

/// Whether a receive engine can take a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Now,
    /// Not before this time, in picoseconds.
    At(u64),
    /// When the atomic unit has finished one of the engine's operations.
    AfterService,
}

/// All receive engines. An engine holds few atomics, so that a busy atomic unit causes backpressure
/// in the network; data packets occupy the engine for their length.
#[derive(Debug)]
pub(super) struct Receivers {
    engines: Vec<Engine>,
    per_node: u32,
}

#[derive(Clone, Copy, Debug)]
struct Engine {
    /// The time at which the data packet being taken has arrived in full.
    free_at: u64,
    /// The number of atomics held, including the one in service.
    atomics: u8,
}

impl Receivers {
    pub(super) fn new(nodes: u32, per_node: u32) -> Self {
        let idle = Engine { free_at: 0, atomics: 0 };
        Receivers { engines: vec![idle; nodes as usize * per_node as usize], per_node }
    }

    #[inline]
    fn at(&mut self, node: u32, engine: u8) -> &mut Engine {
        &mut self.engines[node as usize * self.per_node as usize + usize::from(engine)]
    }

    #[inline]
    pub(super) fn room(&mut self, timing: &Timing, node: u32, engine: u8, atomic: bool, now: u64) -> Room {
        let at = self.at(node, engine);
        match atomic {
            true if at.atomics >= timing.engine_room => Room::AfterService,
            false if at.free_at > now => Room::At(at.free_at),
            _ => Room::Now,
        }
    }

    /// Takes an atomic.
    #[inline]
    pub(super) fn take_atomic(&mut self, node: u32, engine: u8) {
        self.at(node, engine).atomics += 1;
    }

    /// Takes a data packet that occupies the engine for `occupancy` picoseconds.
    #[inline]
    pub(super) fn take_data(&mut self, node: u32, engine: u8, now: u64, occupancy: u64) {
        self.at(node, engine).free_at = now.saturating_add(occupancy);
    }

    /// Releases the place of an operation that the atomic unit has finished.
    #[inline]
    pub(super) fn release_atomic(&mut self, node: u32, engine: u8) {
        let at = self.at(node, engine);
        at.atomics = at.atomics.saturating_sub(1);
    }
}

/// The atomic unit of every node: one server behind all receive engines.
///
/// It serves the engines round robin, and each engine's atomics first come, first served. With `k`
/// engines that have an atomic queued or in service, an atomic takes `s (sigma + (1 - sigma) / k)`:
/// a share sigma of the work (the bus lock) is serial, and the rest overlaps between engines
/// (Amdahl). With one engine this is `s`. Atomics on memory of the poster's own node take the same
/// path.
#[derive(Debug)]
pub(super) struct AtomicUnits {
    /// The units by node, created when the node's memory is first the target of an atomic.
    units: Vec<Option<Box<Unit>>>,
    engines: u32,
}

#[derive(Debug)]
struct Unit {
    /// Operation in service, or [`NONE`].
    serving: u32,
    /// The engine served last.
    last: usize,
    /// The queued operations of each engine.
    queues: Box<[Line]>,
    /// Whether a `Door` event is pending.
    door: bool,
}

impl AtomicUnits {
    pub(super) fn new(nodes: u32, engines: u32) -> Self {
        AtomicUnits { units: (0..nodes).map(|_| None).collect(), engines }
    }

    fn unit(&mut self, node: u32) -> &mut Unit {
        let engines = self.engines as usize;
        self.units[node as usize].get_or_insert_with(|| {
            Box::new(Unit { serving: NONE, last: 0, queues: vec![Line::EMPTY; engines].into(), door: false })
        })
    }

    /// Queues an operation, whose `at` is the time at which it reaches the unit's entrance, and
    /// starts the unit if it is idle.
    #[inline]
    pub(super) fn queue(
        &mut self,
        timing: &Timing,
        operations: &mut Operations,
        clock: &mut Clock,
        node: u32,
        slot: u32,
    ) {
        let unit = self.unit(node);
        let engine = usize::from(operations.get(slot).engine);
        unit.queues[engine].push(operations, slot);
        if unit.serving == NONE {
            unit.start(timing, operations, clock, node);
        }
    }

    /// Returns the operation that is finished now.
    #[inline]
    pub(super) fn finish(&mut self, node: u32) -> u32 {
        core::mem::replace(&mut self.unit(node).serving, NONE)
    }

    /// Starts the next operation of an idle unit.
    #[inline]
    pub(super) fn start(&mut self, timing: &Timing, operations: &Operations, clock: &mut Clock, node: u32) {
        self.unit(node).start(timing, operations, clock, node);
    }

    /// Handles a `Door` event.
    pub(super) fn at_door(&mut self, timing: &Timing, operations: &Operations, clock: &mut Clock, node: u32) {
        let unit = self.unit(node);
        unit.door = false;
        if unit.serving == NONE {
            unit.start(timing, operations, clock, node);
        }
    }
}

impl Unit {
    /// Starts the next operation if one is at the entrance. Schedules an event for the end of its
    /// service, or for the next check.
    fn start(&mut self, timing: &Timing, operations: &Operations, clock: &mut Clock, node: u32) {
        let now = clock.now();
        let engines = self.queues.len();
        let (mut chosen, mut busy, mut soonest) = (None, 0, u64::MAX);
        for turn in 1..=engines {
            let mut engine = self.last + turn;
            if engine >= engines {
                engine -= engines;
            }
            let Some(head) = self.queues[engine].head() else { continue };
            busy += 1;
            let at = operations.get(head).at;
            soonest = soonest.min(at);
            if chosen.is_none() && at <= now {
                chosen = Some(engine);
            }
        }
        match chosen {
            Some(engine) => {
                self.last = engine;
                self.serving = self.queues[engine].pop(operations).unwrap_or(NONE);
                // The head is in the cache already: last time it was the one after the head.
                if let Some(head) = self.queues[engine].head() {
                    let next = operations.get(head).next;
                    prefetch(operations.get(if next == NONE { head } else { next }));
                }
                clock.push(now.saturating_add(timing.service[busy - 1]), EventKind::Served, node);
            }
            // With a single engine nothing can overtake the head, so serve it from the time at
            // which it arrives there.
            None if engines == 1 && busy == 1 => {
                self.serving = self.queues[0].pop(operations).unwrap_or(NONE);
                clock.push(soonest.saturating_add(timing.service[0]), EventKind::Served, node);
            }
            None if busy > 0 && !self.door => {
                self.door = true;
                clock.push(soonest, EventKind::Door, node);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    /// The longest gap of a machine, after each byte of a long command.
    #[test]
    fn a_command_may_take_all_of_virtual_time() {
        let platform = Platform::fx100().with("max_transfer", 1).and_then(|it| it.with("send_gap", 1_000_000_000_000));
        let timing = Timing::new(&platform.unwrap(), 1).unwrap();
        for bytes in [32 << 20, 1 << 40, u64::MAX] {
            let mut engines = SendEngines::new(1, 1);
            assert_eq!(engines.take(&timing, 0, 0, 5, bytes), 5, "{bytes} bytes");
            assert_eq!(engines.take(&timing, 0, 0, 5, 1), u64::MAX, "after {bytes} bytes");
        }
    }
}
