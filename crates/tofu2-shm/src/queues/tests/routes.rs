//! The next short put notices changes behind a cached route, both on a queue that executes its
//! commands immediately and on a session queue, where the executor caches the route, and the
//! command itself from the second time on.

use super::*;
use fabric_offload::ControlQueue;
use rdma_fabric::Fabric;

const TAG: u8 = 5;
const AT: Stadd = Stadd::fixed(TAG);

/// A rank's fabric, queue and memory.
struct Side {
    fabric: Fabric,
    queue: ControlQueue,
    region: Region,
}

/// Opens a queue with credit for everything that the tests post.
fn open(fabric: &Fabric, mode: QueueMode) -> ControlQueue {
    let ahead = if mode == QueueMode::Session { 63 } else { 0 };
    let spec = QueueSpec { number: Some(2), ..QueueSpec::new(mode).on(1).depth(64).ahead(ahead) };
    ControlQueue::open(fabric, QueueSpec { mrq_depth: 8, ..spec }).unwrap()
}

impl Side {
    fn new(job: &Arc<Job>, rank: u32, mode: QueueMode) -> Self {
        let fabric = testing::fabric(job, rank);
        let (queue, region) = (open(&fabric, mode), fabric.alloc(4096).unwrap());
        queue.register_fixed(&region, TAG).unwrap();
        Side { fabric, queue, region }
    }

    /// Returns the word at the start of a region of this rank.
    fn word(&self, region: &Region) -> u64 {
        let mut word = [0];
        self.fabric.read(&region.span::<u64>(&self.fabric, 0, 1).unwrap(), &mut word).unwrap();
        word[0]
    }

    fn post(&self, posting: Posting) -> Result<(), QueueError> {
        self.queue.try_post(posting).unwrap();
        match self.queue.poll_tcq() {
            Ok(None) => Ok(()),
            Err(FabricError::Queue(error)) => Err(*error),
            other => panic!("{other:?}"),
        }
    }

    /// Puts a word at the start of the memory that has the tag on the other rank's queue.
    fn put(&self, to: &QueueId, value: u64) -> Result<(), QueueError> {
        self.post(Command::PutInline { to: *to, bytes: Inline::word(value), at: AT }.into())
    }

    /// Returns whether the route to the memory is cached and nothing has changed.
    fn knows(&self, to: QueueId) -> bool {
        let job = inner(&self.fabric).job();
        match self.queue.spec().mode {
            QueueMode::Session => {
                inner(&self.fabric).own_queues().cached().unwrap().routes.known(job, to, AT, 8).is_some()
            }
            _ => below(&self.queue).poster.lock().routes.known(job, to, AT, 8).is_some(),
        }
    }
}

/// Returns the number of commands of a rank's session queue that it knows.
fn known(side: &Side) -> usize {
    inner(&side.fabric).own_queues().cached().unwrap().known.count(side.queue.id())
}

/// The modes of the poster's queue.
const MODES: [QueueMode; 2] = [QueueMode::Normal, QueueMode::Session];

/// Returns poster and target after two puts, so that the poster has the route.
fn sides(mode: QueueMode) -> (Arc<Job>, Side, Side, QueueId) {
    let job = job(1 << 20);
    let (poster, target) = (Side::new(&job, 0, mode), Side::new(&job, 1, QueueMode::Normal));
    let to = target.queue.id();
    assert!(!poster.knows(to));
    for value in 1..=2 {
        assert_eq!(poster.put(&to, value), Ok(()));
        assert_eq!(target.word(&target.region), value);
        assert!(poster.knows(to));
    }
    assert_eq!(known(&poster), usize::from(mode == QueueMode::Session));
    (job, poster, target, to)
}

#[test]
fn a_queue_that_was_closed_or_opened_anew() {
    for (_job, poster, mut target, to) in MODES.map(sides) {
        let closed = target.queue;
        assert_eq!(closed.close(), Ok(0));
        assert_eq!(poster.put(&to, 3), Err(QueueError::NotOpen(to)));
        target.queue = open(&target.fabric, QueueMode::Normal);
        assert_eq!(target.queue.id(), to);
        assert_eq!(poster.put(&to, 4), Err(QueueError::NoSuchTag { queue: to, stadd: AT }));
        let other = target.fabric.alloc(64).unwrap();
        target.queue.register_fixed(&other, TAG).unwrap();
        for value in 5..8 {
            assert_eq!(poster.put(&to, value), Ok(()));
            assert_eq!((target.word(&target.region), target.word(&other)), (2, value));
        }
    }
}

#[test]
fn a_tag_given_back_or_given_anew() {
    for (_job, poster, target, to) in MODES.map(sides) {
        target.queue.deregister(AT).unwrap();
        assert_eq!(poster.put(&to, 3), Err(QueueError::NoSuchTag { queue: to, stadd: AT }));
        target.queue.register_fixed(&target.region, TAG).unwrap();
        assert_eq!([4, 5].map(|value| poster.put(&to, value)), [Ok(()); 2]);
        assert!(poster.knows(to));
        // The poster sees both changes at the same time: the tag's word has its old value again.
        target.queue.deregister(AT).unwrap();
        let other = target.fabric.alloc(64).unwrap();
        target.queue.register_fixed(&other, TAG).unwrap();
        assert_eq!(poster.put(&to, 6), Ok(()));
        assert_eq!((target.word(&target.region), target.word(&other)), (5, 6));
        let past = Command::PutInline { to, bytes: Inline::word(7), at: AT + 60 };
        assert!(matches!(poster.post(past.into()), Err(QueueError::OutOfBounds { registered: 64, .. })));
    }
}

#[test]
fn memory_made_read_only() {
    for (_job, poster, target, to) in MODES.map(sides) {
        target.queue.set_read_only(AT, true).unwrap();
        assert_eq!([3, 3].map(|value| poster.put(&to, value)), [Err(QueueError::ReadOnly { queue: to, stadd: AT }); 2]);
        target.queue.set_read_only(AT, false).unwrap();
        assert_eq!((poster.put(&to, 4), target.word(&target.region)), (Ok(()), 4));
    }
}

#[test]
fn a_region_that_is_gone() {
    for (_job, poster, target, to) in MODES.map(sides) {
        drop(target.region);
        assert_eq!([3, 3].map(|value| poster.put(&to, value)), [Err(QueueError::Stale { queue: to, stadd: AT }); 2]);
        // Its entry in the table is reused, and perhaps its memory as well.
        let other = target.fabric.alloc(4096).unwrap();
        assert_eq!(poster.put(&to, 4), Err(QueueError::Stale { queue: to, stadd: AT }));
        drop(other);
    }
}

#[test]
fn a_rank_that_is_lost() {
    for (job, poster, _target, to) in MODES.map(sides) {
        job.publish(to.rank(), State::Lost);
        assert_eq!([3, 3].map(|value| poster.put(&to, value)), [Err(QueueError::PeerLost(to)); 2]);
    }
}

#[test]
fn a_queue_that_has_stopped() {
    for (_job, poster, target, to) in MODES.map(sides) {
        let put = |value| Command::PutInline { to, bytes: Inline::word(value), at: AT };
        for value in 0..8 {
            assert_eq!(poster.post(Posting::new(put(value)).remote(1)), Ok(()));
        }
        let full = Err(QueueError::MrqOverflow { queue: to, depth: 8 });
        assert_eq!(poster.post(Posting::new(put(8)).remote(1)), full);
        assert_eq!(poster.put(&to, 9), Err(QueueError::Stopped(to)));
        assert_eq!(target.word(&target.region), 7);
    }
}

#[test]
fn own_memory_that_was_given_back() {
    for (_job, poster, target, to) in MODES.map(sides) {
        poster.fabric.write(&poster.region.span::<u64>(&poster.fabric, 64, 1).unwrap(), &[11]).unwrap();
        let put = || poster.post(Command::put(to, AT + 64, AT, 8).into());
        assert_eq!([put(), put(), put()], [Ok(()); 3]);
        assert_eq!(target.word(&target.region), 11);
        poster.queue.deregister(AT).unwrap();
        assert_eq!(put(), Err(QueueError::NoSuchTag { queue: poster.queue.id(), stadd: AT + 64 }));
        poster.queue.register_fixed(&poster.region, TAG).unwrap();
        assert_eq!([put(), put()], [Ok(()); 2]);
        let Side { fabric, queue, region } = poster;
        drop(region);
        queue.try_post(Command::put(to, AT + 64, AT, 8).into()).unwrap();
        let stale = QueueError::Stale { queue: queue.id(), stadd: AT + 64 };
        assert_eq!(queue.poll_tcq(), Err(stale.into()));
        drop(fabric);
    }
}

/// Long puts are known like short ones, and also notice changes.
#[test]
fn long_puts_that_are_known() {
    let (_job, poster, target, to) = sides(QueueMode::Session);
    let put = || poster.post(Command::put(to, AT + 64, AT, 1000).into());
    for value in 1..=4 {
        poster.fabric.write(&poster.region.span::<u64>(&poster.fabric, 64, 1).unwrap(), &[value]).unwrap();
        assert_eq!((put(), target.word(&target.region)), (Ok(()), value));
    }
    assert_eq!(known(&poster), 2);
    target.queue.deregister(AT).unwrap();
    assert_eq!(put(), Err(QueueError::NoSuchTag { queue: to, stadd: AT }));
    target.queue.register_fixed(&target.region, TAG).unwrap();
    poster.queue.deregister(AT).unwrap();
    assert_eq!(put(), Err(QueueError::NoSuchTag { queue: poster.queue.id(), stadd: AT + 64 }));
    poster.queue.register_fixed(&poster.region, TAG).unwrap();
    assert_eq!((put(), put(), known(&poster)), (Ok(()), Ok(()), 2));
}

/// A queue that is opened anew under the same id does not know its predecessor's commands.
#[test]
fn commands_of_a_queue_that_was_opened_anew() {
    let (_job, poster, _target, to) = sides(QueueMode::Session);
    let Side { fabric, queue, region } = poster;
    let name = queue.id();
    assert_eq!(queue.close(), Ok(0));
    let poster = Side { queue: open(&fabric, QueueMode::Session), fabric, region };
    assert_eq!((poster.queue.id(), known(&poster)), (name, 0));
    assert_eq!(poster.put(&to, 3), Ok(()));
    let put = Command::put(to, AT + 64, AT, 8);
    assert_eq!(poster.post(put.into()), Err(QueueError::NoSuchTag { queue: name, stadd: AT + 64 }));
}

/// Returns the provider's queue below a queue.
fn below(queue: &ControlQueue) -> &super::super::queue::Queue {
    let queue: &dyn std::any::Any = queue.provider();
    queue.downcast_ref().unwrap()
}
