//! The tests' fixture: a rank with a normal queue, a session queue, and memory that is registered
//! on both.

use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Fabric, LocalSpan};

/// The number of words of the memory.
pub(crate) const WORDS: usize = 1024;

pub(crate) struct Fixture {
    pub(crate) fabric: Fabric,
    pub(crate) normal: ControlQueue,
    pub(crate) session: ControlQueue,
    /// The memory's address on the normal queue.
    pub(crate) at: Stadd,
    /// The memory's address on the session queue.
    pub(crate) there: Stadd,
    span: LocalSpan<u64>,
    _region: rdma_fabric::Region,
}

pub(crate) fn session_of(depth: u32) -> QueueSpec {
    QueueSpec::new(QueueMode::Session).depth(depth).checked(false)
}

/// Runs `test` as the only rank of a job, with a session queue opened as `spec`.
pub(crate) fn alone_with(spec: QueueSpec, test: impl Fn(&Fixture) + Sync) {
    let run = |fabric: Fabric| {
        test(&Fixture::new(fabric, spec));
        Ok(())
    };
    checks::jobs::threads(1).segment_bytes(16 << 20).run_with(run).expect("a job");
}

pub(crate) fn alone(test: impl Fn(&Fixture) + Sync) {
    alone_with(session_of(2048), test);
}

impl Fixture {
    pub(crate) fn new(fabric: Fabric, spec: QueueSpec) -> Self {
        let region = fabric.alloc(8 * WORDS).unwrap();
        let normal = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal).checked(false)).unwrap();
        let session = ControlQueue::open(&fabric, spec).unwrap();
        let (at, there) = (normal.register(&region).unwrap(), session.register(&region).unwrap());
        let span = region.span::<u64>(&fabric, 0, WORDS).unwrap();
        Fixture { fabric, normal, session, at, there, span, _region: region }
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let mut words = vec![0; WORDS];
        self.fabric.read(&self.span, &mut words).unwrap();
        words
    }

    pub(crate) fn word(&self, index: usize) -> u64 {
        self.words()[index]
    }

    pub(crate) fn set(&self, index: usize, value: u64) {
        let mut words = self.words();
        words[index] = value;
        self.fabric.write(&self.span, &words).unwrap();
    }

    /// Returns a command that stores `value` in word `index`, addressed as on the session queue.
    pub(crate) fn store(&self, index: u64, value: u64) -> Command {
        Command::PutInline { to: self.session.id(), bytes: Inline::word(value), at: self.there + 8 * index }
    }

    /// Returns a command that stores `value` and `value + 1` from word `index` on, which takes two
    /// slots.
    pub(crate) fn store_long(&self, index: u64, value: u64) -> Command {
        let bytes = [value, value + 1].map(u64::to_ne_bytes).concat();
        Command::PutInline { to: self.session.id(), bytes: Inline::new(&bytes).unwrap(), at: self.there + 8 * index }
    }

    /// Advances the session queue by a put of no bytes from the normal queue.
    pub(crate) fn advance(&self, slots: u8) {
        let nothing = Command::put(self.session.id(), self.at, self.there, 0);
        self.normal.try_post(Posting::new(nothing).sps(slots)).unwrap();
    }

    /// Posts to the session queue.
    pub(crate) fn queue(&self, posting: impl Into<Posting>) {
        self.session.try_post(posting.into()).unwrap();
    }

    /// Returns the session queue's read pointer.
    pub(crate) fn read(&self) -> u64 {
        self.session.pointers().read
    }
}

/// Takes all completions of `queue` and returns their tags.
pub(crate) fn completed_tags(queue: &ControlQueue) -> Vec<u64> {
    core::iter::from_fn(|| queue.poll_tcq().unwrap()).map(|done| done.tag).collect()
}
