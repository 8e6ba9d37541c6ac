//! [`Mode::CommandQueue`]: one helper orders and serves.

use super::*;

const MODE: Mode = Mode::CommandQueue;
/// The offset of the words of the queue in [`Job::Copy`].
const QUEUE: u64 = DELEGATION + SLOTS + 64;

fn all(preemptions: usize, delivery: Delivery, job: Job, at_least: usize) {
    print!("{job:?}, {delivery:?}: ");
    check(Some(preemptions), at_least, model(delivery, (job, MODE), None, |_| false));
}

#[test]
fn copies_by_a_helper() {
    all(2, AtPost, Job::Copy, 1_000);
    all(1, AtPost, Job::CopyBack, 400);
}

#[test]
fn copies_by_a_helper_at_the_flush() {
    all(2, AtFlush, Job::Copy, 1_000);
    all(1, AtFlush, Job::CopyBack, 400);
}

#[test]
fn copies_served_by_a_helper() {
    all(2, AtPost, Job::Delegated, 1_900);
    all(1, AtFlush, Job::Delegated, 120);
}

#[test]
fn atomics_served_by_a_helper() {
    all(1, AtPost, Job::Atomic, 120);
    all(2, AtFlush, Job::Atomic, 1_000);
}

#[test]
#[ignore = "long: weekly"]
fn with_more_preemptions() {
    for (delivery, bound, at_least) in [(AtPost, 4, 26_000), (AtFlush, 3, 5_000)] {
        all(4, delivery, Job::Copy, 6_300);
        all(3, delivery, Job::CopyBack, 16_000);
        all(bound, delivery, Job::Delegated, at_least);
        all(bound, delivery, Job::Atomic, at_least);
    }
}

fn found(job: Job, mutant: AcpMutant, saying: &str) {
    for delivery in [AtPost, AtFlush] {
        check_fails(Some(2), &[saying], model(delivery, (job, MODE), Some(mutant), |_| false));
    }
}

/// A completed operation is visible: a rank that observes the completion sees the bytes.
#[test]
fn completion_must_follow_a_flush() {
    found(Job::Copy, AcpMutant::NotFlushed, "Causality violation");
    found(Job::CopyBack, AcpMutant::NotFlushed, "Causality violation");
}

#[test]
fn a_lost_reply_is_found() {
    found(Job::Delegated, AcpMutant::ReplyLost, "deadlock");
    found(Job::Atomic, AcpMutant::ReplyLost, "deadlock");
}

#[test]
fn a_reply_must_follow_the_work() {
    // Later, the request has already been executed.
    check_fails(
        Some(2),
        &["Causality violation"],
        model(AtPost, (Job::Delegated, MODE), Some(AcpMutant::RepliesFirst), |_| false),
    );
}

/// The bytes that a command copies are written before the command is issued.
#[test]
fn a_helper_must_acquire_what_is_issued() {
    let relaxed =
        |access| matches!(access, Access::Wait(at) | Access::Load(at) if at.rank == ASKER && at.offset == QUEUE);
    check_fails(Some(2), &["Causality violation"], model(AtPost, (Job::Copy, MODE), None, relaxed));
}

/// When the program has observed the completion, the helper has read the bytes.
#[test]
fn a_program_must_acquire_what_is_complete() {
    let relaxed =
        |access| matches!(access, Access::Wait(at) | Access::Load(at) if at.rank == ASKER && at.offset == QUEUE + 64);
    check_fails(Some(2), &["Causality violation"], model(AtPost, (Job::Copy, MODE), None, relaxed));
}
