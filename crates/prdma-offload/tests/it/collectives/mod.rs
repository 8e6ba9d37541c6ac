//! Barriers, broadcasts and allreduces.

mod failures;
mod timing;

use crate::{disturbed, fx100};
use checks::jobs::threads;
use core::time::Duration;
use fabric_offload::ControlQueue;
use prdma_offload::{Buffer, Collectives, Form, Options, Pipeline, Request, Shape};
use rdma_fabric::{Fabric, Group, Program, ProgramResult};

const FORMS: [Form; 3] = [Form::Fast, Form::Mrc, Form::Cpu];

const SIZES: [usize; 7] = [1, 2, 3, 4, 5, 8, 13];

async fn collectives(fabric: &Fabric) -> prdma_offload::Result<Collectives> {
    Collectives::new(Group::world(fabric).await?).await
}

/// Delays one member at this point, a different one each time.
async fn dawdle(fabric: &Fabric, k: u64, place: u64, n: usize) {
    if (k * 7 + place * 3) % n as u64 == fabric.rank().index() as u64 && k % 3 == place {
        fabric.compute(Duration::from_micros(40)).await;
    }
}

async fn barriers(fabric: Fabric, form: Form, times: u64) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let (me, n) = (all.group().me(), all.group().len());
    let began = all.group_mut().memory(8).await?;
    let mut barrier = all.barrier_init(&Options::form(form)).await?;
    for k in 1..=times {
        dawdle(&fabric, k, 0, n).await;
        fabric.store(&fabric.local_word(began.at(fabric.rank(), 0)?)?, k)?;
        barrier.start().await?;
        dawdle(&fabric, k, 1, n).await;
        if k % 2 == 0 {
            barrier.test().await?;
        }
        barrier.wait().await?;
        for other in [(me + 1) % n, (me + n / 2) % n] {
            let word = fabric.remote_word::<u64>(began.at(all.group().rank(other)?, 0)?)?;
            let there = fabric.get_word(&word).await?;
            assert!(there >= k, "{form}: member {me} left barrier {k}, and {other} is in {there}");
        }
    }
    all.group_mut().barrier().await?;
    Ok(())
}

async fn broadcasts(fabric: Fabric, form: Form, pipeline: Pipeline, len: usize, times: u64) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let (me, n) = (all.group().me(), all.group().len());
    let root = n / 3;
    let buffer = Buffer::<u32>::new(&fabric, len + n + 1)?;
    // Each at a different offset of its buffer.
    let mut request = all.broadcast_init(root, &buffer, me, len, pipeline, &Options::form(form)).await?;
    for k in 1..=times as u32 {
        dawdle(&fabric, k.into(), 0, n).await;
        let data: Vec<u32> = (0..len as u32).map(|at| k << 16 | at).collect();
        if me == root {
            buffer.write(me, &data)?;
        }
        request.start().await?;
        dawdle(&fabric, k.into(), 1, n).await;
        request.wait().await?;
        let mut got = vec![0; len];
        buffer.read(me, &mut got)?;
        assert_eq!(got, data, "{form} {pipeline:?}: member {me} in {k}");
        // No member writes here again before the next start.
        dawdle(&fabric, k.into(), 2, n).await;
        buffer.read(me, &mut got)?;
        assert_eq!(got, data, "{form} {pipeline:?}: member {me} after {k}");
    }
    assert_eq!(buffer.to_vec()?[..me].iter().chain(&buffer.to_vec()?[me + len..]).max(), Some(&0));
    all.group_mut().barrier().await?;
    Ok(())
}

/// Not commutative: folding in a different order yields a different result.
fn chained(a: f64, b: f64) -> f64 {
    a * 0.7 + b
}

async fn allreduces(fabric: Fabric, form: Form, len: usize, times: u64) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let (me, n) = (all.group().me(), all.group().len());
    let (send, receive) = (Buffer::<f64>::new(&fabric, len + 1)?, Buffer::<f64>::new(&fabric, len + 1)?);
    let mut request = all.allreduce_init(&send, &receive, len, chained, &Options::form(form)).await?;
    // With more threads than this, there are fewer than four queues for each.
    assert!(request.form() == form || n > 12, "{form} of {n} is {}", request.form());
    let value = |member: usize, k: u64, at: usize| (member * 1000 + at) as f64 / (k + 3) as f64;
    for k in 1..=times {
        dawdle(&fabric, k, 0, n).await;
        send.write(0, &(0..len).map(|at| value(me, k, at)).collect::<Vec<_>>())?;
        request.start().await?;
        dawdle(&fabric, k, 1, n).await;
        request.wait().await?;
        let mut got = vec![0.0; len];
        receive.read(0, &mut got)?;
        let fold = |at| (1..n).fold(value(0, k, at), |all, member| chained(all, value(member, k, at)));
        assert!((0..len).all(|at| got[at].to_bits() == fold(at).to_bits()), "{form}: member {me} in {k}");
    }
    all.group_mut().barrier().await?;
    Ok(())
}

/// In virtual time 100 iterations with and without disorder; on threads fewer if there are many.
fn everywhere<P: Program<Out = ()>>(members: usize, program: impl Fn(u64) -> P) {
    threads(members).run(&program(if members > 2 { 10 } else { 100 })).unwrap();
    let program = program(100);
    fx100(members).ranks_per_node(1).run(&program).unwrap();
    let shuffled = disturbed(members, 20);
    shuffled.run(&program).unwrap();
}

#[test]
fn a_barrier_holds_all_until_the_last_enters() {
    for members in SIZES {
        for form in FORMS {
            everywhere(members, |times| async move |fabric| barriers(fabric, form, times).await);
        }
    }
}

#[test]
fn a_broadcast_brings_the_roots_data_to_all() {
    for members in SIZES {
        for form in FORMS {
            for (shape, segments, len) in [(Shape::Binomial, 1, 5), (Shape::Binomial, 4, 22), (Shape::Chain, 5, 23)] {
                everywhere(members, |times| {
                    async move |fabric| broadcasts(fabric, form, Pipeline { shape, segments }, len, times).await
                });
            }
        }
    }
    everywhere(5, |times| async move |fabric| broadcasts(fabric, Form::Fast, Pipeline::default(), 0, times).await);
}

#[test]
fn an_allreduce_has_the_same_bits_everywhere() {
    for members in (1..=9).chain([13]) {
        for form in FORMS {
            everywhere(members, |times| async move |fabric| allreduces(fabric, form, 9, times).await);
        }
    }
    everywhere(3, |times| async move |fabric| allreduces(fabric, Form::Mrc, 0, times).await);
    everywhere(3, |times| async move |fabric| allreduces(fabric, Form::Fast, 0, times).await);
}

/// All compute after start; returns the number of queues of each member's requests, and the longest
/// wait.
async fn offloaded(fabric: Fabric, form: Form) -> ProgramResult<([u32; 3], u64)> {
    let mut all = collectives(&fabric).await?;
    let options = Options::form(form);
    let buffer = Buffer::<u64>::new(&fabric, 512)?;
    let (send, receive) = (Buffer::<u64>::new(&fabric, 8)?, Buffer::<u64>::new(&fabric, 8)?);
    send.write(0, &[fabric.rank().index() as u64; 8])?;
    let free = || ControlQueue::limits(&fabric).free;
    let mut frees = vec![free()];
    let mut requests: Vec<Request> = Vec::new();
    requests.push(all.barrier_init(&options).await?);
    frees.push(free());
    let pipeline = Pipeline { shape: Shape::Binomial, segments: 4 };
    requests.push(all.broadcast_init(0, &buffer, 0, 512, pipeline, &options).await?);
    frees.push(free());
    requests.push(all.allreduce_init(&send, &receive, 8, u64::wrapping_add, &options).await?);
    frees.push(free());
    let mut longest = 0;
    for k in 1..=3 {
        if all.group().me() == 0 {
            buffer.write(0, &[k; 512])?;
        }
        for request in &mut requests {
            request.start().await?;
        }
        fabric.compute(Duration::from_millis(1)).await;
        let done = fabric.now();
        for request in &mut requests {
            request.wait().await?;
        }
        longest = longest.max((fabric.now() - done).as_nanos() as u64);
        assert_eq!(buffer.to_vec()?, [k; 512]);
        let n = all.group().len() as u64;
        assert_eq!(receive.to_vec()?, [n * (n - 1) / 2; 8]);
    }
    all.group_mut().barrier().await?;
    Ok(([0, 1, 2].map(|at| frees[at] - frees[at + 1]), longest))
}

#[test]
fn after_start_no_cpu_is_needed_and_queues_are_as_many_as_promised() {
    for members in [2, 5, 8, 13, 32] {
        for form in [Form::Fast, Form::Mrc] {
            let job = fx100(members).ranks_per_node(1);
            let outcome = job.run(&async |fabric| offloaded(fabric, form).await).unwrap();
            let steps = members.next_power_of_two().trailing_zeros();
            for (member, (queues, longest)) in outcome.outs.into_iter().enumerate() {
                assert!(longest < 1000, "{form}: the waits of member {member} of {members} take {longest} ns");
                assert_eq!(queues[0], if form == Form::Fast && steps > 1 { steps } else { 1 });
                assert_eq!(queues[2], queues[0], "an allreduce has as many queues as a barrier");
                match form {
                    Form::Fast if members > 2 => assert!((1..=steps).contains(&queues[1]), "{queues:?}"),
                    _ => assert_eq!(queues[1], 1),
                }
            }
        }
    }
}

/// Without a CPU, nothing moves in the CPU form: this validates the test above.
async fn by_cpu(fabric: Fabric) -> ProgramResult<u64> {
    let mut all = collectives(&fabric).await?;
    let mut barrier = all.barrier_init(&Options::form(Form::Cpu)).await?;
    barrier.start().await?;
    fabric.compute(Duration::from_millis(1)).await;
    let done = fabric.now();
    barrier.wait().await?;
    Ok((fabric.now() - done).as_nanos() as u64)
}

#[test]
fn without_queues_the_cpus_are_needed() {
    let outcome = fx100(8).ranks_per_node(1).run(&by_cpu).unwrap();
    assert!(outcome.outs.iter().max() > Some(&1000), "{:?}", outcome.outs);
}
