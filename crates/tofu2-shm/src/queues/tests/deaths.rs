//! An executor that dies at each label, with ranks as threads; [`super::killed`] does the same to
//! processes.

use super::*;
use fabric_offload::ControlQueue;
use rdma_fabric::Fabric;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) const DEATH_POINTS: [DeathPoint; 7] = [
    DeathPoint::Claimed,
    DeathPoint::Data,
    DeathPoint::Written,
    DeathPoint::Past,
    DeathPoint::Noticed,
    DeathPoint::Advanced,
    DeathPoint::Completed,
];

pub(crate) const OWNER: Rank = Rank::new(0);
pub(crate) const DIES: Rank = Rank::new(1);
pub(crate) const TARGET: Rank = Rank::new(2);

/// The tag of every rank's memory.
pub(crate) const MEMORY: Stadd = Stadd::fixed(5);

pub(crate) fn name(rank: Rank) -> QueueId {
    QueueId::new(rank, 1, 2, 0)
}

/// A rank's fabric, queue and memory.
pub(crate) struct RankSetup {
    pub(crate) fabric: Fabric,
    pub(crate) queue: fabric_offload::ControlQueue,
    span: LocalSpan<u64>,
    region: Region,
}

impl RankSetup {
    pub(crate) fn new(fabric: Fabric) -> Self {
        let mode = if fabric.rank() == DIES { QueueMode::Normal } else { QueueMode::Session };
        let spec = QueueSpec { number: Some(2), ..QueueSpec::new(mode).on(1).depth(16).checked(true) };
        let queue = ControlQueue::open(&fabric, spec).unwrap();
        assert_eq!(queue.id(), name(fabric.rank()));
        let region = fabric.alloc(4096).unwrap();
        queue.register_fixed(&region, 5).unwrap();
        let span = region.span::<u64>(&fabric, 0, 8).unwrap();
        RankSetup { fabric, queue, span, region }
    }

    /// A word that commands don't write.
    #[cfg(target_os = "linux")]
    pub(crate) fn flag(&self) -> rdma_fabric::LocalWord<u64> {
        self.region.word(&self.fabric, 1024).unwrap()
    }

    fn words(&self) -> [u64; 8] {
        let mut words = [0; 8];
        self.fabric.read(&self.span, &mut words).unwrap();
        words
    }

    /// Posts the owner's two commands for the target, each with all notices or all but the local
    /// one; without it they take the fast path. The first advances the target's queue, where a nop
    /// waits for it.
    pub(crate) fn queue_up(&self, local: bool) {
        self.fabric.write(&self.span, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let put = |words: u32| Command::put(name(TARGET), MEMORY, MEMORY, 8 * words);
        let posting = |command, tag| Posting {
            local_notice: local,
            ..Posting::new(command).tcq(tag).local(tag as u8).remote(tag as u8)
        };
        self.queue.try_post(posting(put(3), 1).sps(1)).unwrap();
        self.queue.try_post(posting(put(8), 2)).unwrap();
    }

    /// Acts as the dying rank: `die` is called at `label` of the owner's first command.
    pub(crate) fn advance(&self, label: DeathPoint, die: impl Fn() + 'static) {
        let mut executing = false;
        hook::set(move |now| {
            // The dying rank's own command is executed first.
            executing |= now == DeathPoint::Claimed;
            if executing && now == label {
                die();
            }
        });
        let nothing = Command::PutInline { to: name(OWNER), bytes: Inline::new(&[]).unwrap(), at: MEMORY };
        self.queue.try_post(Posting::new(nothing).sps(2)).unwrap();
    }
}

/// The status that the owner must receive for its first command.
pub(crate) fn expected(label: DeathPoint) -> Result<(), QueueError> {
    match label {
        DeathPoint::Past | DeathPoint::Noticed | DeathPoint::Advanced => {
            Err(QueueError::Interrupted { queue: name(OWNER), slot: 0 })
        }
        _ => Ok(()),
    }
}

/// The number of notices of the first command that the target receives.
pub(crate) fn told(label: DeathPoint) -> usize {
    usize::from(label != DeathPoint::Past)
}

/// Returns whether the target's nop was released.
fn released(label: DeathPoint) -> bool {
    !matches!(label, DeathPoint::Past | DeathPoint::Noticed)
}

pub(crate) fn check_target(part: &RankSetup, label: DeathPoint) {
    let notices: Vec<_> = core::iter::from_fn(|| part.queue.poll_mrq().unwrap()).map(|notice| notice.edata).collect();
    let first = vec![1; told(label)];
    assert_eq!(notices, [first, vec![2]].concat(), "{label:?}");
    assert_eq!(part.words(), [1, 2, 3, 4, 5, 6, 7, 8], "{label:?}");
    let done: Vec<_> = core::iter::from_fn(|| part.queue.poll_tcq().unwrap()).map(|done| done.tag).collect();
    assert_eq!(done, if released(label) { vec![3] } else { vec![] }, "{label:?}");
}

#[test]
fn whoever_comes_next_finishes_a_command_or_reports_it() {
    for label in DEATH_POINTS {
        // The next executor is the owner, or another rank's advance.
        for (advancer, local) in [(false, false), (false, true), (true, false), (true, true)] {
            let job = job(4 << 20);
            let [owner, dies, target] =
                [OWNER, DIES, TARGET].map(|rank| RankSetup::new(testing::fabric(&job, rank.number())));
            owner.queue_up(local);
            target.queue.try_post(Posting::new(Command::Nop).tcq(3)).unwrap();
            let died = catch_unwind(AssertUnwindSafe(|| dies.advance(label, || panic!("dies on purpose"))));
            assert!(died.is_err(), "{label:?} was not reached");
            hook::set(|_| ());
            // The command is not completed before the death of its executor is known.
            assert!(owner.queue.poll_tcq().unwrap().is_none() || label == DeathPoint::Completed, "{label:?}");
            job.control.set_ended(DIES.index());
            job.publish(DIES, State::Lost);
            if advancer {
                target.queue.try_post(Command::Nop.into()).unwrap();
                let more = Command::PutInline { to: name(OWNER), bytes: Inline::word(0), at: MEMORY + 512 };
                let other = ControlQueue::open(&target.fabric, QueueSpec::new(QueueMode::Normal)).unwrap();
                other.try_post(Posting::new(more).sps(1)).unwrap();
            }
            let all: Vec<Completion> = core::iter::from_fn(|| owner.queue.poll_tcq().unwrap()).collect();
            let expected = [(1, expected(label)), (2, Ok(()))];
            // At this label the first command was reported above.
            let reported = usize::from(label == DeathPoint::Completed && all.len() == 1);
            assert_eq!(
                all.iter().map(|done| (done.tag, done.status)).collect::<Vec<_>>(),
                expected[reported..],
                "{label:?}"
            );
            check_target(&target, label);
            // The local notices: of the first command unless it was interrupted, and of the second.
            let own: Vec<_> = core::iter::from_fn(|| owner.queue.poll_mrq().unwrap()).collect();
            assert!(own.iter().all(|notice| (notice.kind, notice.status) == (MrqKind::LocalPut, Ok(()))));
            let edata: Vec<_> = own.iter().map(|notice| notice.edata).collect();
            let told = if expected[0].1.is_ok() { vec![1, 2] } else { vec![2] };
            assert_eq!(edata, if local { told } else { vec![] }, "{label:?}");
            // Waits that depend on the dead rank must end.
            let wait = block_on(owner.queue.next_notice(Deps::One(DIES)));
            assert_eq!(wait, Err(FabricError::PeerLost { rank: DIES }));
        }
    }
}

#[test]
fn commands_for_a_lost_rank_say_so() {
    let job = job(4 << 20);
    let [owner, dies, target] = [OWNER, DIES, TARGET].map(|rank| RankSetup::new(testing::fabric(&job, rank.number())));
    owner.queue_up(true);
    job.control.set_ended(TARGET.index());
    job.publish(TARGET, State::Lost);
    dies.advance(DeathPoint::Claimed, || ());
    let lost = QueueError::PeerLost(name(TARGET));
    let notices: Vec<_> = core::iter::from_fn(|| owner.queue.poll_mrq().unwrap()).collect();
    assert_eq!(notices.iter().map(|notice| notice.status).collect::<Vec<_>>(), [Err(lost), Err(lost)]);
    let done: Vec<_> = core::iter::from_fn(|| owner.queue.poll_tcq().unwrap()).map(|done| done.status).collect();
    assert_eq!(done, [Ok(()), Ok(())]);
    // The queue of a lost rank no longer executes anything.
    let blocks = Blocks { count: 2, stride: 8 };
    let put = Command::Put { to: name(TARGET), from: MEMORY, at: MEMORY, len: 8, blocks };
    dies.queue.try_post(Posting::new(put).local(9)).unwrap();
    let notices: Vec<_> = core::iter::from_fn(|| dies.queue.poll_mrq().unwrap()).collect();
    assert_eq!(notices.iter().map(|notice| notice.status).collect::<Vec<_>>(), [Err(lost), Err(lost)]);
    assert_eq!(dies.queue.poll_mrq(), Ok(None));
    drop(target);
}

/// Closing waits for the executing rank, unless it has ended.
#[test]
fn a_queue_is_closed_under_a_dead_executor() {
    let job = job(4 << 20);
    let [owner, dies, _target] = [OWNER, DIES, TARGET].map(|rank| RankSetup::new(testing::fabric(&job, rank.number())));
    owner.queue_up(true);
    let died = catch_unwind(AssertUnwindSafe(|| dies.advance(DeathPoint::Data, || panic!("dies on purpose"))));
    assert!(died.is_err());
    hook::set(|_| ());
    job.control.set_ended(DIES.index());
    let RankSetup { queue, .. } = owner;
    assert_eq!(queue.close(), Ok(2));
}

/// The control queues of a dead process are free.
#[test]
fn the_control_queues_of_the_dead_are_taken_over() {
    let plan = Plan { ranks: 2, ranks_per_node: 2, heap_bytes: 4 << 20, start_ns: 0 };
    let job = Job::of_threads(plan).unwrap();
    let [alive, dead] = [0, 1].map(|rank| testing::fabric(&job, rank));
    let spec = QueueSpec { number: Some(7), ..QueueSpec::new(QueueMode::Exclusive).on(3).depth(2) };
    let theirs = ControlQueue::open(&dead, spec).unwrap();
    assert_eq!(ControlQueue::limits(&alive).free, 47, "the ranks of a node share them");
    let refused = ControlQueue::open(&alive, spec).unwrap_err();
    assert!(matches!(refused, FabricError::Queue(error) if matches!(*error, QueueError::InUse(_))));
    job.control.set_ended(1);
    assert_eq!(ControlQueue::limits(&alive).free, 48);
    let mine = ControlQueue::open(&alive, spec).unwrap();
    drop(theirs);
    assert_eq!(ControlQueue::limits(&alive).free, 47, "it gives back only what is its own");
    drop(mine);
    assert_eq!(ControlQueue::limits(&alive).free, 48);
}
