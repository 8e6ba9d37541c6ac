//! Arbitration: the choice of the packet that may use an output next.

use super::node::{Packet, Packets, RouterNode};

/// The choice of a router between inputs that request the same output. Tofu's own rule is not
/// published, so compare the results with both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbiter {
    /// One input port after another and, within a port, one queue after another.
    #[default]
    RoundRobin,
    /// The packet that was sent first.
    OldestFirst,
}

/// One decision: the input that may use an output, among those that request it.
pub(super) struct Turn<'a> {
    pub(super) here: &'a RouterNode,
    pub(super) packets: &'a Packets,
    pub(super) arbiter: Arbiter,
    pub(super) output: u8,
}

impl Turn<'_> {
    /// Returns the input queue whose head may go, among those that need a channel in the mask
    /// `room` and whose packet `may` go.
    #[inline]
    pub(super) fn choose(&self, room: u32, mut may: impl FnMut(&Packet) -> bool) -> Option<u8> {
        let here = self.here;
        let output = here.output(self.output);
        let mut oldest: Option<(u64, u8)> = None;
        let mut ports = Cycle::after(output.wanted, output.last_port);
        while let Some(port) = ports.next() {
            let cell = here.cell(self.output, port);
            let mut queues = Cycle::after(cell.requests, cell.last);
            while let Some(number) = queues.next() {
                let queue = here.queue_at(port, number);
                if room >> here.via(queue) & 1 == 0 {
                    continue;
                }
                let Some(head) = here.head(queue) else { continue };
                let packet = self.packets.get(head);
                if !may(packet) {
                    continue;
                }
                match self.arbiter {
                    Arbiter::RoundRobin => return Some(queue),
                    Arbiter::OldestFirst if oldest.is_none_or(|(born, _)| packet.born < born) => {
                        oldest = Some((packet.born, queue));
                    }
                    Arbiter::OldestFirst => {}
                }
            }
        }
        oldest.map(|(_, queue)| queue)
    }
}

/// The set bits of a mask, cyclically, starting after `last`.
struct Cycle {
    first: u32,
    then: u32,
}

impl Cycle {
    #[inline]
    fn after(mask: u32, last: u8) -> Self {
        let later = (!1u32) << last;
        Cycle { first: mask & later, then: mask & !later }
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.first == 0 {
            self.first = core::mem::take(&mut self.then);
        }
        let bit = (self.first != 0).then(|| self.first.trailing_zeros() as u8)?;
        self.first &= self.first - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_start_after_the_last() {
        let all = |mask, last| {
            let mut cycle = Cycle::after(mask, last);
            std::iter::from_fn(|| cycle.next()).collect::<Vec<_>>()
        };
        assert_eq!(all(0b1011, 0), [1, 3, 0]);
        assert_eq!(all(0b1011, 1), [3, 0, 1]);
        assert_eq!(all(0b1011, 3), [0, 1, 3]);
        assert_eq!(all(1 << 31 | 1, 31), [0, 31]);
        assert!(all(0, 5).is_empty());
    }
}
