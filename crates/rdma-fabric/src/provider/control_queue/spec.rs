//! The specification of queues, their limits, and their pointers.

/// The mode in which a control queue is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueMode {
    /// Commands run in order, as they are posted. Several such queues may share one CQ of the
    /// hardware.
    Normal,
    /// Commands run in order, as they are posted. The queue does not share its CQ.
    Exclusive,
    /// Commands wait until the session offset (*scheduling pointer*) has passed their slots. The
    /// queue does not share its CQ.
    Session,
}

/// The options for opening a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// The queue's mode.
    pub mode: QueueMode,
    /// The RDMA engine (TNI); `None` means the engine with the fewest open queues.
    pub engine: Option<u8>,
    /// The CQ of that engine; `None` means any free one. Only together with `engine`.
    pub number: Option<u8>,
    /// Slots of the transmit order queue, a power of two. One of them always stays free.
    pub depth: u32,
    /// Entries of the message receive queue, a power of two.
    pub mrq_depth: u32,
    /// The number of slots by which the session offset is initially ahead.
    pub initial_offset: u32,
    /// Whether it is an error when hardware would silently lose something: a session offset that is
    /// a whole ring ahead ([`super::QueueError::CreditOverrun`]), or an advance that this queue
    /// posts with a command that can't advance anything, or for a queue that has no session offset
    /// ([`super::QueueError::CreditIgnored`]). The default is true in builds with debug assertions.
    pub checked: bool,
}

impl QueueSpec {
    /// Opens in `mode` on any engine, with 2048 slots and 2048 notices.
    pub const fn new(mode: QueueMode) -> Self {
        QueueSpec {
            mode,
            engine: None,
            number: None,
            depth: 2048,
            mrq_depth: 2048,
            initial_offset: 0,
            checked: cfg!(debug_assertions),
        }
    }

    /// Opens on this engine.
    pub const fn on(mut self, engine: u8) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Opens with this many slots.
    pub const fn depth(mut self, slots: u32) -> Self {
        self.depth = slots;
        self
    }

    /// Opens with the session offset this many slots ahead.
    pub const fn ahead(mut self, slots: u32) -> Self {
        self.initial_offset = slots;
        self
    }

    /// Opens with the checking mode on or off.
    pub const fn checked(mut self, checked: bool) -> Self {
        self.checked = checked;
        self
    }
}

/// The limits of a provider's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueLimits {
    /// RDMA engines (TNIs) of a node.
    pub engines: u8,
    /// CQs of each engine.
    pub queues_per_engine: u8,
    /// Normal queues that may share a CQ.
    pub contexts: u8,
    /// Queues that this rank may still open at this moment.
    pub free: u32,
    /// The largest number of slots, and of notices, that a queue can have.
    pub most_depth: u32,
    /// The longest put or get that is one command, in bytes. Longer ones are
    /// [`super::QueueError::Limit`].
    pub longest: u32,
    /// Number of fixed steering tags; tags from 0 to below this are fixed.
    pub fixed_tags: u32,
    /// Whether a STADD of one queue has the same meaning on the rank's other queues. Tofu2 lacks
    /// this; the ACP paper calls for it.
    pub shared_address_space: bool,
}

impl QueueLimits {
    /// The limits of a provider without control queues.
    pub const NONE: QueueLimits =
        QueueLimits { contexts: 0, most_depth: 0, longest: 0, fixed_tags: 0, ..QueueLimits::new(0, 0) };

    /// Creates the limits of a provider with this many engines and queues on each.
    #[must_use]
    pub const fn new(engines: u8, queues_per_engine: u8) -> Self {
        QueueLimits {
            engines,
            queues_per_engine,
            contexts: 8,
            free: engines as u32 * queues_per_engine as u32,
            most_depth: 1 << 16,
            longest: (1 << 24) - 1,
            fixed_tags: 256,
            shared_address_space: false,
        }
    }
}

/// The state of a transmit order queue: positions count slots from the queue's opening and never
/// wrap; the ring index is the position modulo the depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointers {
    /// The next slot that will be executed.
    pub read: u64,
    /// The next slot to which a command will be written.
    pub write: u64,
    /// The session offset: slots before it may be executed. Equals `write` for queues without one.
    pub scheduled: u64,
}
