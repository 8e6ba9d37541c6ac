//! The points in a command's life, each passed at one place of the model.
//!
//! Whoever wants to watch commands, or to disturb them, does it here.

/// A point in a command's life. The order is that of passing, for a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Point {
    /// The CPU has written it into the TOQ.
    Posted,
    /// The send engine has fetched it; the read pointer is behind it.
    Started,
    /// It has left the send engine.
    Sent,
    /// It is over at the poster: its source may be reused, or its result is here.
    Completed,
    /// Its last packet is through the target's receive engine.
    Arrived,
    /// Its effect on the target's memory has happened.
    Visible,
    /// It has advanced the session offset of a queue.
    Released,
}

/// How many commands of control queues got how far. A block of a strided command counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandCounts {
    /// Written into a TOQ.
    pub posted: u64,
    /// Fetched by a send engine.
    pub started: u64,
    /// Left the send engine; those without own memory to read from or write to don't.
    pub sent: u64,
    /// Over at the poster.
    pub completed: u64,
    /// Through the target's receive engine.
    pub arrived: u64,
    /// Their effect on the target's memory has happened.
    pub visible: u64,
    /// Puts that advanced a session offset.
    pub released: u64,
}

/// Passed by every command, point by point.
#[derive(Debug, Default)]
pub(super) struct Life {
    counts: CommandCounts,
}

impl Life {
    /// `commands` of a queue, the first at `_slot`, pass a point at a time in picoseconds.
    #[inline]
    pub(super) fn pass(&mut self, point: Point, _at: u64, _queue: u32, _slot: u64, commands: u32) {
        let counts = &mut self.counts;
        let count = match point {
            Point::Posted => &mut counts.posted,
            Point::Started => &mut counts.started,
            Point::Sent => &mut counts.sent,
            Point::Completed => &mut counts.completed,
            Point::Arrived => &mut counts.arrived,
            Point::Visible => &mut counts.visible,
            Point::Released => &mut counts.released,
        };
        *count += u64::from(commands);
    }

    pub(super) fn counts(&self) -> CommandCounts {
        self.counts
    }
}
