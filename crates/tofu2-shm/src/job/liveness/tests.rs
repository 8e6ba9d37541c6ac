use super::*;
use crate::{
    job::{control::Plan, holder::Holder},
    waiting::block_on,
};
use std::time::Instant;

const DEAD: Rank = Rank::new(1);

fn job() -> Arc<Job> {
    let plan = Plan { ranks: 3, ranks_per_node: 3, heap_bytes: layout::PAGE, start_ns: 0 };
    let job = Job::of_threads(plan).unwrap();
    (0..3).for_each(|rank| job.publish(Rank::new(rank), State::Running));
    job
}

/// Checks the state that the other ranks must find after the reaper has acted.
fn assert_published(job: &Job, changes: u64) {
    assert!(job.is_lost(DEAD));
    assert_eq!(job.control.state(1), State::Lost);
    assert!(job.control.has_ended(1));
    assert!(job.control.changes() > changes, "nobody would look again");
    assert_eq!(job.control.first_lost(), Some(1));
    assert_eq!(job.outlook(Rank::new(0), &Deps::All), Err(FabricError::PeerLost { rank: DEAD }));
}

/// A rank that publishes its own loss may be killed after any of the stores that this takes.
#[test]
fn a_loss_half_told_is_told_by_the_reaper() {
    let steps: [&dyn Fn(&Job); 4] = [
        &|_| (),
        &|job| job.segments[1].word(layout::LOST).store(1, SeqCst),
        &|job| _ = job.control.control_record(1, layout::RECORD_STATE).fetch_max(State::Lost as u64, SeqCst),
        &|job| _ = job.control.word(layout::FIRST_LOST).compare_exchange(0, 2, SeqCst, Relaxed),
    ];
    for done in 1..=steps.len() {
        let job = job();
        let changes = job.control.changes();
        steps[..done].iter().for_each(|step| step(&job));
        job.ended(DEAD, false, true);
        assert_published(&job, changes);
    }
}

/// A rank that publishes that it has left may be killed before any rank is woken, or right
/// afterwards.
#[test]
fn who_is_killed_while_leaving_is_lost() {
    for told in [false, true] {
        let job = job();
        let changes = job.control.changes();
        if told {
            job.publish(DEAD, State::Left);
        } else {
            job.control.control_record(1, layout::RECORD_STATE).fetch_max(State::Left as u64, SeqCst);
        }
        job.ended(DEAD, false, true);
        assert_published(&job, changes);
    }
}

#[test]
fn who_ends_well_after_leaving_is_not_lost() {
    let job = job();
    job.publish(DEAD, State::Left);
    job.ended(DEAD, true, true);
    assert!(!job.is_lost(DEAD));
    assert_eq!(job.outlook(Rank::new(0), &Deps::One(DEAD)), Err(FabricError::PeersLeft));
}

#[test]
fn a_attached_process_leaves_by_ending_well() {
    for (holder, well, error) in [
        (Holder::Attached, true, FabricError::PeersLeft),
        (Holder::Attached, false, FabricError::PeerLost { rank: DEAD }),
        (Holder::Somebody, true, FabricError::PeerLost { rank: DEAD }),
    ] {
        let job = job();
        assert!(job.control.take(1, holder) && !job.control.take(1, holder));
        let changes = job.control.changes();
        job.ended(DEAD, well, true);
        assert!(job.control.has_ended(1) && job.control.changes() > changes);
        assert_eq!(job.outlook(Rank::new(0), &Deps::One(DEAD)), Err(error), "{holder:?}, well: {well}");
    }
}

/// An attached process that has left by itself, and then ends badly, is lost like any rank.
#[test]
fn a_attached_process_that_left_still_has_to_end_well() {
    let job = job();
    job.control.take(1, Holder::Attached);
    let changes = job.control.changes();
    job.publish(DEAD, State::Left);
    job.ended(DEAD, false, true);
    assert_published(&job, changes);
}

#[test]
fn memory_of_a_process_that_is_gone_is_stale_unless_the_rank_is_lost() {
    let (gone, region) = (FabricError::PeerLost { rank: DEAD }, RegionKey { index: 1, generation: 1 });
    let stale = FabricError::StaleRegion { rank: DEAD, region };
    for (holder, state, error) in [
        (Holder::Attached, State::Running, &stale),
        (Holder::Attached, State::Left, &stale),
        (Holder::Attached, State::Lost, &gone),
        (Holder::Somebody, State::Running, &gone),
        (Holder::Somebody, State::Left, &stale),
    ] {
        let job = job();
        job.control.take(1, holder);
        job.control.advance(1, state);
        assert_eq!(job.unreached(gone.clone(), region), *error, "{holder:?} {state:?}");
        assert_eq!(job.control.first_lost(), (*error == gone).then_some(1));
    }
}

#[test]
fn who_started_the_job_says_whether_it_is_oversubscribed() {
    let cpus = block_on::cpus();
    for (ranks, oversubscribed) in [(1, false), (cpus, false), (cpus + 1, true)] {
        let plan = Plan { ranks, ranks_per_node: ranks, heap_bytes: 1 << 16, start_ns: 0 };
        let job = Job::of_threads(plan).unwrap();
        assert_eq!(job.oversubscribed, oversubscribed, "{ranks} ranks on {cpus} CPUs");
        // A bound rank sees fewer CPUs; the stored word is used, not the rank's own count.
        job.control.word(layout::OVERSUBSCRIBED).store(u64::from(!oversubscribed), Relaxed);
        let found = Job::new(job.control.clone(), plan, Box::default(), Instant::now());
        assert_eq!(found.oversubscribed, !oversubscribed);
    }
}
