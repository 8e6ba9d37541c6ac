//! Receive engines, as far as the router sees them: whether one takes a packet now.

use super::super::platform::Timing;

/// Whether a receive engine takes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Room {
    Now,
    /// Not before this time, in picoseconds.
    At(u64),
    /// When the atomic unit has finished one of the engine's operations.
    AfterService,
}

/// All receive engines. An engine holds few atomics, so that a busy atomic unit stems the flow in the network; data
/// packets occupy the engine for their length.
#[derive(Debug)]
pub(in super::super) struct Receivers {
    engines: Vec<Engine>,
    per_node: u32,
}

#[derive(Clone, Copy, Debug)]
struct Engine {
    /// When the data packet that is being taken is in.
    free_at: u64,
    /// Atomics held, the one in service included.
    atomics: u8,
}

impl Receivers {
    pub(in super::super) fn new(nodes: u32, per_node: u32) -> Self {
        let idle = Engine { free_at: 0, atomics: 0 };
        Receivers { engines: vec![idle; nodes as usize * per_node as usize], per_node }
    }

    #[inline]
    fn at(&mut self, node: u32, engine: u8) -> &mut Engine {
        &mut self.engines[node as usize * self.per_node as usize + usize::from(engine)]
    }

    #[inline]
    pub(in super::super) fn room(&mut self, timing: &Timing, node: u32, engine: u8, atomic: bool, now: u64) -> Room {
        let at = self.at(node, engine);
        match atomic {
            true if at.atomics >= timing.engine_room => Room::AfterService,
            false if at.free_at > now => Room::At(at.free_at),
            _ => Room::Now,
        }
    }

    /// Takes an atomic.
    #[inline]
    pub(in super::super) fn take_atomic(&mut self, node: u32, engine: u8) {
        self.at(node, engine).atomics += 1;
    }

    /// Takes a data packet that occupies the engine for `occupancy` picoseconds.
    #[inline]
    pub(in super::super) fn take_data(&mut self, node: u32, engine: u8, now: u64, occupancy: u64) {
        self.at(node, engine).free_at = now.saturating_add(occupancy);
    }

    /// The atomic unit has finished one of the engine's operations.
    #[inline]
    pub(in super::super) fn release_atomic(&mut self, node: u32, engine: u8) {
        let at = self.at(node, engine);
        at.atomics = at.atomics.saturating_sub(1);
    }
}
