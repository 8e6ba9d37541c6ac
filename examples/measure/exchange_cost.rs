//! The cost of a persistent exchange over shared memory: `cargo example exchange_cost --release`.
//!
//! Ranks are threads in a periodic ring; times are those of the fastest of many batches.
//! * One rank that exchanges with itself: the processor's work alone.
//! * Two ranks, each of which is both neighbours of the other; start and wait with nothing in
//!   between. For comparison, half of a word's round trip.
//! * Two ranks that compute between start and wait: the step less the computing, and the wait
//!   alone; then with the other rank late by twice that time. If one rank's calls take longer, its
//!   CPU has done the copying.
//! * Creating an exchange with 26 neighbours on four ranks.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options, Request};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tofu2_sim::shm::Threads;

const ROUNDS: u32 = 100;
const BATCHES: usize = 1_000;
const FORMS: [Form; 3] = [Form::Fast, Form::Mrc, Form::Cpu];

/// Creates an exchange of all ranks on a periodic ring.
async fn on_a_ring(fabric: &Fabric, form: Form, bytes: usize) -> ProgramResult<(Neighbourhood, Request)> {
    let group = Group::world(fabric).await?;
    let topology = Cartesian::new(&[group.len()], &[true])?.topology(group.me());
    let mut hood = Neighbourhood::new(group, topology).await?;
    let (send, receive) = (Buffer::<u8>::new(fabric, 2 * bytes)?, Buffer::<u8>::new(fabric, 2 * bytes)?);
    let request = hood.alltoall_init(&send, &receive, bytes, &Options::form(form)).await?;
    Ok((hood, request))
}

/// Returns the nanoseconds of an exchange in the fastest batch.
async fn exchange(fabric: Fabric, form: Form, bytes: usize) -> ProgramResult<f64> {
    let (mut hood, mut request) = on_a_ring(&fabric, form, bytes).await?;
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            request.start().await?;
            request.wait().await?;
        }
        best = best.min(nanos(begun) / f64::from(ROUNDS));
    }
    hood.group_mut().barrier().await?;
    Ok(best)
}

/// The best times of an exchange with computing in it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Overlapped {
    /// The start.
    start: f64,
    /// The wait.
    wait: f64,
    /// The whole step without the computing.
    step: f64,
}

/// Measures an exchange in which both ranks compute for `compute` and rank 1 is late by `late`.
async fn overlapped(
    fabric: Fabric,
    form: Form,
    bytes: usize,
    compute: Duration,
    late: Duration,
) -> ProgramResult<Overlapped> {
    let (mut hood, mut request) = on_a_ring(&fabric, form, bytes).await?;
    let mut best = Overlapped { start: f64::INFINITY, wait: f64::INFINITY, step: f64::INFINITY };
    for _ in 0..300 {
        hood.group_mut().barrier().await?;
        if fabric.rank().index() == 1 {
            spin(late);
        }
        let begun = Instant::now();
        request.start().await?;
        let started = nanos(begun);
        let computed = spin(compute);
        let waiting = Instant::now();
        request.wait().await?;
        let (waited, all) = (nanos(waiting), nanos(begun));
        best.start = best.start.min(started);
        best.wait = best.wait.min(waited);
        best.step = best.step.min(all - computed);
    }
    hood.group_mut().barrier().await?;
    Ok(best)
}

/// Returns the microseconds of creating an exchange with 26 neighbours, with blocks of 1 KiB.
async fn making(fabric: Fabric, form: Form) -> ProgramResult<f64> {
    let group = Group::world(&fabric).await?;
    let grid = Cartesian::new(&[2, 2, 1], &[true, true, true])?;
    let topology = grid.moore(group.me());
    let mut hood = Neighbourhood::new(group, topology).await?;
    let send = Buffer::<u8>::new(&fabric, 26 << 10)?;
    let receive = Buffer::<u8>::new(&fabric, 26 << 10)?;
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        hood.group_mut().barrier().await?;
        let begun = Instant::now();
        let request = hood.alltoall_init(&send, &receive, 1 << 10, &Options::form(form)).await?;
        best = best.min(nanos(begun) * 1e-3);
        hood.group_mut().barrier().await?;
        drop(request);
    }
    Ok(best)
}

fn nanos(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e9
}

/// Keeps the CPU busy for `time`. Returns the time actually taken, in nanoseconds.
fn spin(time: Duration) -> f64 {
    let begun = Instant::now();
    while begun.elapsed() < time {
        core::hint::spin_loop();
    }
    nanos(begun)
}

/// Returns the nanoseconds of a word's round trip between two threads, in the fastest of many
/// batches.
fn ping_pong() -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let lines = Arc::new([Line(AtomicU64::new(0)), Line(AtomicU64::new(0))]);
    let turns = u64::from(ROUNDS) * BATCHES as u64;
    let other = std::thread::spawn({
        let lines = lines.clone();
        move || {
            for turn in 1..=turns {
                while lines[0].0.load(Acquire) < turn {
                    core::hint::spin_loop();
                }
                lines[1].0.store(turn, Release);
            }
        }
    });
    let (mut best, mut turn) = (f64::INFINITY, 0);
    for _ in 0..BATCHES {
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            turn += 1;
            lines[0].0.store(turn, Release);
            while lines[1].0.load(Acquire) < turn {
                core::hint::spin_loop();
            }
        }
        best = best.min(nanos(begun) / f64::from(ROUNDS));
    }
    other.join().expect("it only counts");
    best
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let alone = std::env::args().any(|argument| argument == "--alone");
    for ranks in if alone { &[1][..] } else { &[1, 2][..] } {
        if *ranks == 2 {
            println!("a word one way: {:.0} ns", ping_pong() / 2.0);
        }
        println!("{ranks} ranks\n{:>8} {:>10} {:>10} {:>10}   ns an exchange", "bytes", "fast", "mrc", "cpu");
        for bytes in [0, 8, 1024, 8192, 65536] {
            let mut row = format!("{bytes:8}");
            for form in FORMS {
                let ran = Threads::new(*ranks).run(&async |fabric| exchange(fabric, form, bytes).await)?;
                row += &format!(" {:10.0}", ran.into_iter().fold(0.0, f64::max));
            }
            println!("{row}");
        }
    }
    if alone {
        return Ok(());
    }
    let compute = Duration::from_micros(50);
    for late in [Duration::ZERO, 2 * compute] {
        println!("64 KiB, computing {compute:?}, rank 1 late by {late:?}; ns at rank 0 and rank 1");
        for form in FORMS {
            let ran = Threads::new(2).run(&async |fabric| overlapped(fabric, form, 65536, compute, late).await)?;
            let both = |part: fn(&Overlapped) -> f64| format!("{:8.0} {:8.0}", part(&ran[0]), part(&ran[1]));
            let (start, wait, step) = (both(|at| at.start), both(|at| at.wait), both(|at| at.step));
            println!("{form:>8}  start {start}   wait {wait}   all but the computing {step}");
        }
    }
    for form in FORMS {
        let ran = Threads::new(4).run(&async |fabric| making(fabric, form).await)?;
        println!(
            "making an exchange with 26 neighbours on 4 ranks, {form}: {:.0} µs",
            ran.into_iter().fold(0.0, f64::max)
        );
    }
    Ok(())
}
