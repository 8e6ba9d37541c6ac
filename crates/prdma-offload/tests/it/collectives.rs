//! Barriers, broadcasts and allreduces.

use crate::{disturbed, fx100};
use checks::jobs::threads;
use core::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use prdma_offload::{Buffer, Collectives, Form, Options, Pipeline, PrdmaError, Request, Shape, Side};
use rdma_fabric::{Fabric, FabricError, Group, Program, ProgramResult, Rank};

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
fn a_barrier_holds_everybody_until_all_have_come() {
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
    let free = || fabric.queues().limits().free;
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

/// Errors of one member are reported to all, and the next call is not affected.
async fn wrong(fabric: Fabric) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let me = all.group().me();
    let buffer = Buffer::<u64>::new(&fabric, 8)?;
    let (options, whole) = (Options::default(), Pipeline::default());
    let odd = me == 1;
    let told = all.broadcast_init(0, &buffer, if odd { 5 } else { 0 }, 4, whole, &options).await.map(drop);
    match odd {
        true => assert!(matches!(told, Err(PrdmaError::OutOfBounds { side: Side::Source, .. })), "{told:?}"),
        false => assert_eq!(told, Err(PrdmaError::ElsewhereFailed)),
    }
    let told = all.broadcast_init(if odd { 9 } else { 0 }, &buffer, 0, 4, whole, &options).await.map(drop);
    match odd {
        true => assert_eq!(told, Err(FabricError::NoSuchRank { rank: Rank::new(9), ranks: 3 }.into())),
        false => assert_eq!(told, Err(PrdmaError::ElsewhereFailed)),
    }
    let told = all.broadcast_init(0, &buffer, 0, if odd { 3 } else { 4 }, whole, &options).await.map(drop);
    assert!(matches!(told, Err(PrdmaError::Disagreement { least: 24, most: 32, .. })), "{told:?}");
    let told = all.allreduce_init(&buffer, &buffer, 4, u64::max, &options).await.map(drop);
    assert!(matches!(told, Err(PrdmaError::Overlap { .. })), "{told:?}");
    let mut barrier = all.barrier_init(&options).await?;
    assert_eq!(barrier.form(), Form::Fast);
    barrier.start().await?;
    assert!(matches!(barrier.start().await, Err(PrdmaError::Active { iteration: 1 })));
    barrier.wait().await?;
    let mut request = all.broadcast_init(0, &buffer, 0, 4, whole, &options).await?;
    request.start().await?;
    let access = buffer.write(0, &[1]);
    assert!(matches!(access, Err(PrdmaError::InUse { .. })), "{access:?}");
    request.wait().await?;
    all.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn errors_are_told_to_all() {
    threads(3).run(&wrong).unwrap();
    fx100(3).run(&wrong).unwrap();
}

/// Queues run out: the next form is the same at all members. A member that drops a request regains
/// its queues.
async fn scarce(fabric: Fabric) -> ProgramResult<Vec<Form>> {
    let mut all = collectives(&fabric).await?;
    let (mut requests, mut forms) = (Vec::new(), Vec::new());
    for _ in 0..40 {
        let request = all.barrier_init(&Options::default()).await?;
        forms.push(request.form());
        requests.push(request);
    }
    for request in &mut requests {
        request.start().await?;
    }
    for request in requests.iter_mut().rev() {
        request.wait().await?;
    }
    all.group_mut().barrier().await?;
    requests.clear();
    all.group_mut().barrier().await?;
    forms.push(all.barrier_init(&Options::default()).await?.form());
    let thrifty = Options { budget: if all.group().me() == 1 { 1 } else { 9 }, ..Options::default() };
    forms.push(all.barrier_init(&thrifty).await?.form());
    Ok(forms)
}

#[test]
fn members_agree_on_thriftier_forms_when_queues_run_out() {
    let outcome = fx100(8).ranks_per_node(3).run(&scarce).unwrap();
    let forms = &outcome.outs[0];
    assert!(outcome.outs.iter().all(|other| other == forms));
    for form in FORMS {
        assert!(forms[..40].contains(&form), "{forms:?}");
    }
    assert!(forms[..40].is_sorted_by_key(|form| FORMS.iter().position(|other| other == form)), "{forms:?}");
    assert_eq!(forms[40..], [Form::Fast, Form::Mrc]);
}

/// Member 2 fails after it has made its requests; the others repeat a wait that was dropped before.
async fn lost(fabric: Fabric, form: Form, told: &'static AtomicUsize) -> ProgramResult<()> {
    let mut all = collectives(&fabric).await?;
    let buffer = Buffer::<u64>::new(&fabric, 8)?;
    let (send, receive) = (Buffer::<u64>::new(&fabric, 8)?, Buffer::<u64>::new(&fabric, 8)?);
    let options = Options::form(form);
    let mut requests = vec![
        all.barrier_init(&options).await?,
        all.broadcast_init(2, &buffer, 0, 8, Pipeline::default(), &options).await?,
        all.allreduce_init(&send, &receive, 8, u64::wrapping_add, &options).await?,
    ];
    for round in 0..3 {
        if round == 2 {
            // A loss before this point would also fail waits of the previous round.
            all.group_mut().barrier().await?;
        }
        if round == 2 && all.group().me() == 2 {
            fabric.sleep(Duration::from_millis(100)).await;
            return Err("this member fails".into());
        }
        for request in &mut requests {
            let started = request.start().await;
            assert!(started.is_ok() || round == 2, "{started:?}");
        }
        for request in &mut requests {
            let at = fabric.now() + Duration::from_micros(1);
            let _ = fabric.before(at, request.wait()).await;
            let waited = request.wait().await;
            if round == 2 {
                // The lost member drops its memory and its queues just before it is lost.
                assert!(waited.is_err(), "{form}: {waited:?}");
                assert!(matches!(request.wait().await, Err(PrdmaError::Broken(_))));
                told.fetch_add(1, Ordering::Relaxed);
            } else {
                waited?;
            }
        }
    }
    Ok(())
}

#[test]
fn the_loss_of_a_member_is_told_to_all() {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    for form in FORMS {
        let job = fx100(6).ranks_per_node(1);
        let error = job.run(&async |fabric| lost(fabric, form, &TOLD).await).unwrap_err().to_string();
        assert!(error.contains("this member fails"), "{form}: {error}");
        assert_eq!(TOLD.swap(0, Ordering::Relaxed), 3 * 5, "{form}, in virtual time");
        let error = threads(6).run(&async |fabric| lost(fabric, form, &TOLD).await).unwrap_err().to_string();
        assert!(error.contains("this member fails"), "{form}: {error}");
        assert_eq!(TOLD.swap(0, Ordering::Relaxed), 3 * 5, "{form}, on threads");
    }
}

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
#[ignore = "seconds, which CI spends"]
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
fn in_a_fast_broadcast_a_late_member_holds_up_only_who_passes_on_to_it() {
    let ends = |form| fx100(8).ranks_per_node(1).run(&async |fabric| one_late(fabric, form).await).unwrap().outs;
    // Member 7 is below 6.
    let late = |ends: Vec<u64>| ends.iter().map(|end| *end >= 1000).collect::<Vec<_>>();
    assert_eq!(late(ends(Form::Fast)), [false, false, false, false, false, false, true, true]);
    assert_eq!(late(ends(Form::Mrc)), [true; 8]);
}
