//! [`Mode::Split`]: one helper orders, and sends requests from its control queue to that of the other
//! rank's helper, which serves. The queues are modelled over words ([`queued`]).

use super::*;
use fabric_offload::ControlQueue;

const MODE: Mode = Mode::Split;

fn all(preemptions: usize, delivery: Delivery, job: Job, at_least: usize) {
    print!("{job:?}, {delivery:?}: ");
    check(Some(preemptions), at_least, model(delivery, (job, MODE), None, |_| false));
}

#[test]
fn requests_through_control_queues() {
    all(2, AtPost, Job::Delegated, 1_500);
    all(2, AtFlush, Job::Atomic, 1_500);
}

#[test]
#[ignore = "long: weekly"]
fn requests_through_control_queues_with_more_preemptions() {
    for delivery in [AtPost, AtFlush] {
        all(3, delivery, Job::Delegated, 10_000);
        all(3, delivery, Job::Atomic, 10_000);
    }
}

fn found(job: Job, mutant: AcpMutant, saying: &str) {
    check_fails(Some(2), &[saying], model(AtFlush, (job, MODE), Some(mutant), |_| false));
}

/// A server that takes a notice sees the request. That the notice does not overtake the request on
/// its way is the explorer's to check: here, puts to one rank arrive in order.
#[test]
fn a_server_must_acquire_the_notice() {
    let relaxed =
        |access| matches!(access, Access::Wait(at) | Access::Load(at) if at.rank == SERVER && at.region.index == 0);
    check_fails(Some(2), &["deadlock"], model(AtPost, (Job::Delegated, MODE), None, relaxed));
}

/// A completed operation is visible: a rank that observes the completion sees the bytes.
#[test]
fn completion_must_follow_a_flush() {
    found(Job::Copy, AcpMutant::NotFlushed, "Causality violation");
}

#[test]
fn a_lost_reply_is_found() {
    found(Job::Atomic, AcpMutant::ReplyLost, "deadlock");
}

#[test]
fn a_reply_must_follow_the_work() {
    let mutant = Some(AcpMutant::RepliesFirst);
    check_fails(Some(2), &["Causality violation"], model(AtPost, (Job::Delegated, MODE), mutant, |_| false));
}

/// A rank without peers copies, completes, and finalizes: both helpers have then closed their
/// control queues.
fn finalized(mutant: Option<AcpMutant>) -> impl Fn() + Send + Sync + 'static {
    move || {
        let mut config = Config { cells_per_rank: 1024, ..Config::new(1, AtPost) };
        config.caps.helpers = true;
        let set_up =
            move |loom| async move { Member::begin(loom, Job::Delegated, MODE, mutant).await.expect("set-up") };
        run_after(config, set_up, |_, member| async move {
            let Member { acp, begun, data, over, _notices, .. } = member;
            begun.set(true);
            let copy = acp.copy(data.offset_by(8).expect("inside"), data, 8, Order::None).await.expect("a copy");
            acp.complete(copy).await.expect("complete");
            let fabric = acp.fabric().clone();
            acp.finalize().await.expect("final");
            assert_eq!(ControlQueue::limits(&fabric).free, 2, "a control queue is open");
            (over, _notices)
        });
    }
}

#[test]
fn helpers_close_their_queues() {
    check(Some(2), 270, finalized(None));
}

#[test]
fn closing_must_be_awaited() {
    for mutant in [AcpMutant::RunningNotAwaited, AcpMutant::ListeningNotAwaited] {
        check_fails(Some(2), &["a control queue is open"], finalized(Some(mutant)));
    }
}
