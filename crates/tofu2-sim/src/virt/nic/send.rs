//! Send engines: commands of one engine go out one after the other.

use super::super::platform::Timing;

/// When each engine of each node is free to take the next command, in picoseconds.
#[derive(Debug)]
pub(in super::super) struct SendEngines {
    free_at: Vec<u64>,
    engines: u32,
}

impl SendEngines {
    pub(in super::super) fn new(nodes: u32, engines: u32) -> Self {
        SendEngines { free_at: vec![0; nodes as usize * engines as usize], engines }
    }

    /// Takes a command with `bytes` of payload, cut into transfers of at most the machine's limit; returns when the engine starts on it.
    #[inline]
    pub(in super::super) fn take(&mut self, timing: &Timing, node: u32, engine: u32, now: u64, bytes: u64) -> u64 {
        let further = if bytes > timing.max_transfer { (bytes - 1) / timing.max_transfer * timing.gap } else { 0 };
        self.occupy(node, engine, now, further + timing.gap.max(timing.payload(bytes)))
    }

    /// Takes a command that occupies the engine for so long; returns when the engine starts on it.
    #[inline]
    pub(in super::super) fn occupy(&mut self, node: u32, engine: u32, now: u64, picos: u64) -> u64 {
        let free_at = &mut self.free_at[node as usize * self.engines as usize + engine as usize];
        let start = now.max(*free_at);
        *free_at = start.saturating_add(picos);
        start
    }
}
