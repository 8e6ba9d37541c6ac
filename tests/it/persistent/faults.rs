//! Faults in virtual time: a member's node stops at any moment of the iterations, or something is
//! late.

use super::{
    areas::Cut,
    exchange::{Exchange, Spec, all, place},
    shapes::Shape,
};
use onesided::{
    FabricError, Program, ProgramResult, Rank,
    prdma::{Aggregation, Form, Options, PrdmaError},
};
use rdma_fabric::Fabric;
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

const MEMBERS: usize = 5;
const STEPS: u64 = 12;
const FORMS: [Form; 4] = [Form::Fast, Form::Queues(2), Form::Mrc, Form::Cpu];

/// Runs and checks the steps of an exchange. Returns when the first began and the last ended, in
/// nanoseconds, and whether all steps were completed; they may also end with the loss of the last
/// member.
async fn stepping(fabric: Fabric, spec: Spec) -> ProgramResult<(u64, u64, bool)> {
    let (me, members) = place(&fabric);
    let last = members - 1;
    let mut hood = all(&fabric, &spec.shape).await?;
    let mut exchange = Exchange::new(&mut hood, &spec).await?;
    let survivors = hood.group_mut().split((me != last).then_some(0), me as u64).await?;
    hood.group_mut().barrier().await?;
    let begin = fabric.now().as_picos() / 1000 + 1;
    let ended = exchange.steps(STEPS).await;
    if let Err(error) = &ended {
        let lost = PrdmaError::Fabric(FabricError::PeerLost { rank: Rank::new(last as u32) });
        if error.downcast_ref::<PrdmaError>() != Some(&lost) {
            return Err(format!("{}, member {me}: {error}", exchange.request.form()).into());
        }
    }
    let end = fabric.now().as_picos() / 1000;
    if let Some(mut survivors) = survivors {
        survivors.barrier().await?;
    }
    Ok((begin, end, ended.is_ok()))
}

/// Returns a job of five members, two on each node if blocks travel by node.
fn job(aggregation: Aggregation, seed: u64) -> Job<'static> {
    checks::watchdog::watch_test();
    let job =
        Job::new(&Platform::fx100(), MEMBERS).seed(seed).jitter(Duration::from_micros(seed)).shuffle_ties(seed > 0);
    if aggregation == Aggregation::None { job } else { job.ranks_per_node(2) }
}

/// Returns the node of a rank.
fn node(aggregation: Aggregation, rank: u64) -> u64 {
    if aggregation == Aggregation::None { rank } else { rank / 2 }
}

/// Returns the times at which the steps of a job without faults begin and end.
fn span(job: &Job<'_>, program: &impl Program<Out = (u64, u64, bool)>) -> (u64, u64) {
    let outs = job.run(program).expect("nothing goes wrong").outs;
    assert!(outs.iter().all(|(_, _, whole)| *whole), "{outs:?}");
    (outs.iter().map(|(begin, ..)| *begin).max().unwrap_or(0), outs.iter().map(|(_, end, _)| *end).min().unwrap_or(0))
}

/// Stops the last member's node at 60 moments of the steps. All others end, those in `unconcerned`
/// with all their steps completed; in total, members receive the loss more than `least` times.
fn stop_the_last(shape: &Shape, aggregation: Aggregation, unconcerned: &[usize], least: usize) {
    let last = MEMBERS - 1;
    for (form, seed) in FORMS.into_iter().flat_map(|form| [(form, 0), (form, 2)]) {
        let options = Options { aggregation, ..Options::form(form) };
        let program = async |fabric| stepping(fabric, Spec { options, ..Spec::new(shape.clone(), form) }).await;
        let (begin, end) = span(&job(aggregation, seed), &program);
        let mut told = 0;
        for number in 0..60 {
            let at = begin + (end - begin) * number / 60;
            let faults = format!("{at}.000 node-stop node={}\n", node(aggregation, last as u64));
            let ran = job(aggregation, seed).faults(faults.parse().expect("a fault")).run_through(&program);
            let (run, failure) = ran.unwrap_or_else(|error| panic!("{form}, seed {seed}, stop at {at} ns: {error}"));
            let whole: Vec<Option<bool>> =
                run.outs.iter().map(|out| out.as_ref().map(|(_, _, whole)| *whole)).collect();
            let what = format!("{form}, seed {seed}, stop at {at} ns: {whole:?}, {failure:?}");
            assert!(whole[..last].iter().all(Option::is_some) && whole[last].is_none(), "{what}");
            assert!(unconcerned.iter().all(|rank| whole[*rank] == Some(true)), "{what}");
            told += whole[..last].iter().filter(|whole| **whole == Some(false)).count();
        }
        assert!(told > least, "{form}: a member that stops in the middle is missed: {told}");
    }
}

/// The neighbours of the member that stops receive an error, and members without an edge to it
/// complete all their steps.
#[test]
fn a_node_stops_at_any_moment() {
    // 0 and 1 exchange with 4, 2 with 3.
    let shape = Shape::graph(&[vec![4], vec![4], vec![3], vec![2], vec![0, 1]]);
    stop_the_last(&shape, Aggregation::None, &[2, 3], 100);
}

/// The last member is alone on its node, represents it, and exchanges with both others.
#[test]
fn a_node_stops_at_any_moment_of_an_exchange_by_node() {
    let shape = Shape::graph(&[vec![4, 2], vec![4], vec![4], vec![4], vec![0, 1, 2, 3]]);
    stop_the_last(&shape, Aggregation::by_node(), &[], 200);
}

/// Late credit, completions, queues and links change no byte, and no member waits forever.
fn are_late(aggregation: Aggregation) {
    let shape = Shape::graph(&[vec![1, 2, 1], vec![0, 0, 3], vec![2, 0, 4], vec![1, 4], vec![2, 3]]);
    for form in FORMS {
        let options = Options { aggregation, ..Options::form(form) };
        let program = async |fabric| {
            stepping(fabric, Spec { receives: Cut::Column, options, ..Spec::new(shape.clone(), form) }).await
        };
        let (begin, end) = span(&job(aggregation, 1), &program);
        let mut struck = 0;
        for number in 0..30 {
            let (at, rank) = (begin + (end - begin) * number / 30, number % MEMBERS as u64);
            let other = (rank + 1) % MEMBERS as u64;
            let faults = format!(
                "{at}.000 late-credit rank={rank} by=3000\n{at}.000 late-completion rank={other} by=5000\n\
                 {at}.000 queue-stall rank={other} engine=0 number=0 lasts=4000\n\
                 {at}.000 link-slow from={} to={} extra=700 lasts=9000\n",
                node(aggregation, rank),
                node(aggregation, other)
            );
            let ran = job(aggregation, 1).faults(faults.parse().expect("faults")).run_through(&program);
            let (run, failure) = ran.unwrap_or_else(|error| panic!("{form}: {error}\n{faults}"));
            assert!(failure.is_none(), "{form}: {failure:?}\n{faults}");
            let whole = run.outs.iter().all(|out| out.is_some_and(|(_, _, whole)| whole));
            assert!(whole, "{form}: {:?}\n{faults}", run.outs);
            struck += run.faults.expect("there were faults").struck.iter().filter(|struck| **struck).count();
        }
        // Without queues there is only the link.
        assert!(struck > if form == Form::Cpu { 0 } else { 30 }, "{form}: the faults met something: {struck}");
    }
}

#[test]
fn late_credit_and_late_queues_change_nothing() {
    are_late(Aggregation::None);
}

#[test]
fn late_credit_and_late_queues_change_nothing_by_node() {
    are_late(Aggregation::by_node());
}
