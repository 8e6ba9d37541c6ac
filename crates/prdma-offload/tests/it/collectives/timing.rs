//! Durations of collectives in virtual time.

use super::{FORMS, collectives};
use crate::fx100;
use core::time::Duration;
use prdma_offload::{Buffer, Form, Options, Pipeline, Shape};
use rdma_fabric::{Fabric, ProgramResult};

#[derive(Clone, Copy, Debug)]
enum Timed {
    Barrier,
    Broadcast(Pipeline, usize),
    /// An allreduce of a word.
    Allreduce,
}

/// Nanoseconds of an iteration, at the slowest member.
fn took(members: usize, form: Form, what: Timed) -> u64 {
    let job = fx100(members).ranks_per_node(1);
    job.run(&async |fabric| timed(fabric, form, what).await).unwrap().outs.into_iter().max().unwrap()
}

/// Nanoseconds of an iteration.
async fn timed(fabric: Fabric, form: Form, what: Timed) -> ProgramResult<u64> {
    let mut all = collectives(&fabric).await?;
    let options = Options::form(form);
    let buffer = Buffer::<u8>::new(&fabric, if let Timed::Broadcast(_, bytes) = what { bytes } else { 1 })?;
    let (send, receive) = (Buffer::<u64>::new(&fabric, 1)?, Buffer::<u64>::new(&fabric, 1)?);
    let mut request = match what {
        Timed::Barrier => all.barrier_init(&options).await?,
        Timed::Broadcast(pipeline, bytes) => all.broadcast_init(0, &buffer, 0, bytes, pipeline, &options).await?,
        Timed::Allreduce => all.allreduce_init(&send, &receive, 1, u64::wrapping_add, &options).await?,
    };
    assert_eq!(request.form(), form);
    all.group_mut().barrier().await?;
    let start = fabric.now();
    for _ in 0..20 {
        request.start().await?;
        request.wait().await?;
    }
    let took = fabric.now() - start;
    all.group_mut().barrier().await?;
    Ok(took.as_nanos() as u64 / 20)
}

#[test]
fn more_queues_take_less_time_and_so_does_a_chain_of_segments() {
    for members in [8, 32] {
        let [fast, mrc, cpu] = FORMS.map(|form| took(members, form, Timed::Barrier));
        println!("barrier of {members}: fast {fast} ns, mrc {mrc} ns, cpu {cpu} ns");
        assert!(fast < mrc);
        // With more members, more queues have SELFs, for which the CPU is charged.
        assert!(fast < cpu || members > 8);
        let along = |shape, segments| took(members, Form::Mrc, Timed::Broadcast(Pipeline { shape, segments }, 1 << 20));
        let (whole, parts, chain) = (along(Shape::Binomial, 1), along(Shape::Binomial, 64), along(Shape::Chain, 64));
        println!("1 MiB to {members}: whole {whole} ns, in 64 segments {parts} ns, along a chain {chain} ns");
        assert!(chain < parts.min(whole));
    }
    [8, 64].into_iter().for_each(compare_allreduces);
}

#[test]
#[ignore = "long: weekly"]
fn more_queues_take_less_time_for_many_members() {
    compare_allreduces(512);
}

fn compare_allreduces(members: usize) {
    let [fast, mrc, cpu] = FORMS.map(|form| took(members, form, Timed::Allreduce));
    println!("allreduce of a word of {members}: fast {fast} ns, mrc {mrc} ns, cpu {cpu} ns");
    assert!(fast < mrc);
}

/// The last member starts a millisecond late; returns when the others complete.
async fn one_late(fabric: Fabric, form: Form) -> ProgramResult<u64> {
    let mut all = collectives(&fabric).await?;
    let buffer = Buffer::<u64>::new(&fabric, 64)?;
    let options = Options::form(form);
    let mut request = all.broadcast_init(0, &buffer, 0, 64, Pipeline::default(), &options).await?;
    all.group_mut().barrier().await?;
    let start = fabric.now();
    if all.group().me() + 1 == all.group().len() {
        fabric.compute(Duration::from_millis(1)).await;
    }
    request.start().await?;
    request.wait().await?;
    let took = fabric.now() - start;
    all.group_mut().barrier().await?;
    Ok(took.as_micros() as u64)
}

#[test]
fn a_late_member_delays_only_its_parent_in_a_fast_broadcast() {
    let ends = |form| fx100(8).ranks_per_node(1).run(&async |fabric| one_late(fabric, form).await).unwrap().outs;
    // Member 7 is below 6.
    let late = |ends: Vec<u64>| ends.iter().map(|end| *end >= 1000).collect::<Vec<_>>();
    assert_eq!(late(ends(Form::Fast)), [false, false, false, false, false, false, true, true]);
    assert_eq!(late(ends(Form::Mrc)), [true; 8]);
}
