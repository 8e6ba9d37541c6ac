//! Events of a replay.

use crate::clock::Timed;

/// Either an operation starts or its message arrives, or a class of operations tries again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// Picoseconds.
    time: u64,
    /// The operation or, of a class, the rank.
    pub(super) subject: u32,
    /// The class, or [`NO_CLASS`].
    class: u32,
}

const NO_CLASS: u32 = u32::MAX;

const _: () = assert!(size_of::<Event>() == 16);

impl Event {
    #[inline]
    pub(super) fn start(time: u64, operation: u32) -> Self {
        Event { time, subject: operation, class: NO_CLASS }
    }

    #[inline]
    pub(super) fn retry(time: u64, rank: u32, class: u32) -> Self {
        Event { time, subject: rank, class }
    }

    /// Returns the class that tries again.
    #[inline]
    pub(super) fn class(&self) -> Option<u32> {
        (self.class != NO_CLASS).then_some(self.class)
    }
}

impl Timed for Event {
    #[inline]
    fn time(&self) -> u64 {
        self.time
    }

    #[inline]
    fn at(self, time: u64) -> Self {
        Event { time, ..self }
    }
}
