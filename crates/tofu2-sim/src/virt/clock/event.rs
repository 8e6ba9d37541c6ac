//! What can happen at a moment: 16 bytes, no closure.

/// What an event is about. The subject is a rank, an operation slot, or a place in a node, as the kind says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(in super::super) enum EventKind {
    /// Poll a rank's task. Subject: rank.
    Resume,
    /// A command or its data has passed the target's receive engine. Subject: operation slot.
    Arrive,
    /// An atomic reaches the door of an idle atomic unit. Subject: node.
    Door,
    /// The atomic unit has finished one operation. Subject: node.
    Served,
    /// A result has reached the poster. Subject: operation slot.
    Complete,
    /// The head packet of an input queue is ready to move. Subject: node; detail: input queue.
    Head,
    /// A link or a receive engine is free again. Subject: node; detail: output.
    Output,
    /// A send engine starts on the next command of a control queue. Subject: queue.
    Start,
    /// A command of a control queue is through its target's receive engine. Subject: flight.
    Reach,
    /// The answer to a command of a control queue has reached its poster. Subject: flight.
    Answer,
    /// A fault begins. Subject: its index.
    Fault,
    /// An advance that was late happens. Subject: its index.
    Credit,
    /// The first half of a put is seen. Subject: operation slot, or flight if the detail is 1.
    Half,
    /// A signal has come to a barrier gate. Subject: gate; detail: its half and life.
    Signal,
    /// A barrier gate has fired. Subject: gate; detail: its half and life.
    Fired,
}

/// A moment and what happens then. The order of equal times is the order of scheduling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Event {
    /// Picoseconds.
    pub(in super::super) time: u64,
    pub(in super::super) subject: u32,
    pub(in super::super) detail: u16,
    pub(in super::super) kind: EventKind,
}

impl Event {
    #[inline]
    pub(super) fn new(time: u64, kind: EventKind, subject: u32, detail: u16) -> Self {
        Event { time, subject, detail, kind }
    }
}

const _: () = assert!(size_of::<Event>() == 16);
