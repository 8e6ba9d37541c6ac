//! The time at which the data moves, in virtual time.

use onesided::{
    Group, ProgramResult, Rank,
    prdma::{Buffer, Cartesian, Form, Neighbourhood, Options},
};
use rdma_fabric::Fabric;
use serde_json::Value;
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

/// The bytes of each block; no other transfer of the run has as many.
const BYTES: usize = 4096;
/// Twenty times the duration of an exchange of that size.
const T: Duration = Duration::from_micros(100);

/// Starts an exchange of two members, the second of which starts 2 T later. Both compute until 4 T.
/// Returns the subsequent waiting time of this member, in nanoseconds.
async fn overlapped(fabric: Fabric, form: Form) -> ProgramResult<u64> {
    let group = Group::world(&fabric).await?;
    let (me, line) = (group.rank(group.me())?, Cartesian::new(&[2], &[false])?.topology(group.me()));
    let mut hood = Neighbourhood::new(group, line).await?;
    let (send, receive) = (Buffer::<u8>::new(&fabric, 2 * BYTES)?, Buffer::<u8>::new(&fabric, 2 * BYTES)?);
    let mut request = hood.alltoall_init(&send, &receive, BYTES, &Options::form(form)).await?;
    hood.group_mut().barrier().await?;
    if me == Rank::new(1) {
        fabric.compute(2 * T).await;
    }
    request.start().await?;
    fabric.compute(if me == Rank::new(1) { 2 * T } else { 4 * T }).await;
    let begin = fabric.now();
    request.wait().await?;
    let waited = fabric.now() - begin;
    hood.group_mut().barrier().await?;
    Ok(waited.as_nanos() as u64)
}

/// A slice of a timeline: its name, its node, its beginning and its end, in microseconds.
struct Slice {
    name: String,
    node: u64,
    begin: f64,
    end: f64,
}

fn slices(lines: &str) -> Vec<Slice> {
    let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line.trim_end_matches(',')).ok());
    let slice = |event: Value| {
        let begin = event["ts"].as_f64()?;
        Some(Slice {
            name: event["name"].as_str()?.to_owned(),
            node: event["pid"].as_u64()?,
            begin,
            end: begin + event["dur"].as_f64()?,
        })
    };
    events.filter_map(slice).collect()
}

/// Returns the waiting times of both members, and whether the data was moved while both computed.
fn run(form: Form) -> (Vec<u64>, bool) {
    checks::watchdog::watch_test();
    let job = Job::new(&Platform::fx100(), 2).timeline(100_000, onesided::Time::ZERO);
    let run = job.run(&async |fabric| overlapped(fabric, form).await).expect("virtual time");
    let mut lines = Vec::new();
    run.timeline.expect("it was asked for").write(&mut lines).expect("into memory");
    let slices = slices(std::str::from_utf8(&lines).expect("JSON"));
    // The last long slice of each node.
    let computes = |node: u64| {
        let mut long = slices
            .iter()
            .filter(|slice| slice.node == node && slice.name == "compute" && slice.end - slice.begin > 190.0);
        long.next_back().unwrap_or_else(|| panic!("node {node} computes"))
    };
    let (zero, one) = (computes(0), computes(1));
    let both = zero.begin.max(one.begin)..zero.end.min(one.end);
    assert!(both.end - both.start > 150.0, "they compute at the same time: {both:?}");
    let data = |to: u64| {
        let name = format!("put {BYTES} B, {} → {to}", 1 - to);
        let arrived = slices.iter().filter(|slice| slice.node == to && slice.name == name);
        arrived.map(|slice| (slice.begin, slice.end)).collect::<Vec<_>>()
    };
    let moved = [data(0), data(1)].concat();
    assert!(moved.len() >= 2, "the timeline shows the data: {moved:?}");
    (run.outs, moved.iter().all(|(begin, end)| both.contains(begin) && both.contains(end)))
}

#[test]
fn data_move_while_both_compute() {
    for form in [Form::Fast, Form::Queues(2), Form::Mrc] {
        let (waited, overlapped) = run(form);
        assert!(overlapped, "{form}: the data move while both compute");
        assert!(waited.iter().all(|nanos| *nanos < 1000), "{form}: {waited:?} ns in wait");
    }
}

/// Without queues the data is not moved while both compute, which shows that the test of forms with
/// queues can fail.
#[test]
fn without_queues_they_wait_for_a_call() {
    let (waited, overlapped) = run(Form::Cpu);
    assert!(!overlapped, "data of a member that is started first move in its wait");
    assert!(waited.iter().any(|nanos| *nanos > 1000), "{waited:?} ns in wait");
}
