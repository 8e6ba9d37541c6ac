//! The atomic unit of a node: one server behind all receive engines.
//!
//! It serves the engines round robin and each first come, first served. With `k` engines that have an atomic queued or in
//! service, one takes `s (sigma + (1 - sigma) / k)`: a share sigma of the work (the bus lock) is serial, the rest overlaps
//! between engines (Amdahl). With one engine that is `s`. Atomics on memory of the own node take the same way.

use super::super::{
    op::{Line, NONE, Slab},
    platform::Timing,
    prefetch::prefetch,
};

#[derive(Debug)]
pub(in super::super) struct AtomicUnits {
    /// By node; made when the node's memory is first the target of an atomic.
    units: Vec<Option<Box<Unit>>>,
    engines: u32,
}

#[derive(Debug)]
struct Unit {
    /// Operation in service, or [`NONE`].
    serving: u32,
    /// Engine served last.
    last: usize,
    /// By engine.
    queues: Box<[Line]>,
    /// A `Door` event is pending.
    door: bool,
}

/// What an idle unit does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Next {
    /// It serves an operation until this time.
    Serves { until: u64 },
    /// Look again at this time, when an operation is at the door.
    Door { at: u64 },
    /// Nothing to do, or somebody will look anyway.
    Nothing,
}

impl AtomicUnits {
    pub(in super::super) fn new(nodes: u32, engines: u32) -> Self {
        AtomicUnits { units: (0..nodes).map(|_| None).collect(), engines }
    }

    fn unit(&mut self, node: u32) -> &mut Unit {
        let engines = self.engines as usize;
        self.units[node as usize].get_or_insert_with(|| {
            Box::new(Unit { serving: NONE, last: 0, queues: vec![Line::EMPTY; engines].into(), door: false })
        })
    }

    /// Queues an operation, whose `at` says when it is at the door, and starts the unit if it is idle.
    #[inline]
    pub(in super::super) fn queue(&mut self, timing: &Timing, slab: &mut Slab, node: u32, slot: u32, now: u64) -> Next {
        let unit = self.unit(node);
        let engine = usize::from(slab.get(slot).engine);
        unit.queues[engine].push(slab, slot);
        if unit.serving == NONE { unit.start(timing, slab, now) } else { Next::Nothing }
    }

    /// The operation that is finished now.
    #[inline]
    pub(in super::super) fn finish(&mut self, node: u32) -> u32 {
        core::mem::replace(&mut self.unit(node).serving, NONE)
    }

    /// Starts the next operation of an idle unit.
    #[inline]
    pub(in super::super) fn start(&mut self, timing: &Timing, slab: &Slab, node: u32, now: u64) -> Next {
        self.unit(node).start(timing, slab, now)
    }

    /// A `Door` event has come.
    pub(in super::super) fn at_door(&mut self, timing: &Timing, slab: &Slab, node: u32, now: u64) -> Next {
        let unit = self.unit(node);
        unit.door = false;
        if unit.serving == NONE { unit.start(timing, slab, now) } else { Next::Nothing }
    }
}

impl Unit {
    fn start(&mut self, timing: &Timing, slab: &Slab, now: u64) -> Next {
        let engines = self.queues.len();
        let (mut chosen, mut busy, mut soonest) = (None, 0, u64::MAX);
        for step in 1..=engines {
            let mut engine = self.last + step;
            if engine >= engines {
                engine -= engines;
            }
            let Some(head) = self.queues[engine].head() else { continue };
            busy += 1;
            let at = slab.get(head).at;
            soonest = soonest.min(at);
            if chosen.is_none() && at <= now {
                chosen = Some(engine);
            }
        }
        match chosen {
            Some(engine) => {
                self.last = engine;
                self.serving = self.queues[engine].pop(slab).unwrap_or(NONE);
                // The next one is there: it was the one after the next the last time.
                if let Some(head) = self.queues[engine].head() {
                    let next = slab.get(head).next;
                    prefetch(slab.get(if next == NONE { head } else { next }));
                }
                Next::Serves { until: now.saturating_add(timing.service[busy - 1]) }
            }
            // With a single engine nothing can overtake the head: serve it from when it will be there.
            None if engines == 1 && busy == 1 => {
                self.serving = self.queues[0].pop(slab).unwrap_or(NONE);
                Next::Serves { until: soonest.saturating_add(timing.service[0]) }
            }
            None if busy > 0 && !self.door => {
                self.door = true;
                Next::Door { at: soonest }
            }
            None => Next::Nothing,
        }
    }
}
