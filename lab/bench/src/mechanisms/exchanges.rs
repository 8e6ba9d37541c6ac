//! The cost of a persistent exchange over shared memory.
//!
//! Ranks are threads in a periodic ring; times are those of the fastest of many batches.
//! * One rank that exchanges with itself: the processor's work alone.
//! * Two ranks, each of which is both neighbours of the other; start and wait with nothing in
//!   between. For comparison, half of a word's round trip.
//! * Two ranks that compute between start and wait: the step less the computing, and the wait
//!   alone; then with the other rank late by twice that time. If one rank's calls take longer, its
//!   CPU has done the copying.
//! * Creating an exchange with 26 neighbours on four ranks.

use crate::{
    output::{Context, Output, Steps},
    sheet::{Entry, Sheet, ns},
    statistics::greatest,
};
use clap::Args;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options as Exchange, Request};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{
    error::Error,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use tofu2_sim::shm::Threads;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only the rank that exchanges with itself.
    #[arg(long)]
    alone: bool,
    /// A hundredth of the batches: a smoke test.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let parts = if options.quick { 100 } else { 1 };
    options.output.sheets(Context::new("exchanges", "threads", options.quick), |steps| {
        let mut sheets = vec![together(1, 1000 / parts, steps)?];
        if !options.alone {
            sheets.extend([together(2, 1000 / parts, steps)?, computing(300 / parts, steps)?, creating(steps)?]);
        }
        Ok(sheets)
    })
}

fn forms() -> [String; 3] {
    FORMS.map(|form| form.to_string())
}

/// Measures exchanges among `ranks` with nothing in between, in so many batches.
fn together(ranks: usize, batches: u32, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let title = match ranks {
        1 => "An exchange of a rank with itself".to_owned(),
        _ => format!("An exchange of {ranks} ranks; a word takes {:.0} ns one way", ping_pong(batches) / 2.0),
    };
    let mut sheet = Sheet::new(title, ["bytes".to_owned()].into_iter().chain(forms()));
    steps.expect(5);
    for bytes in [0, 8, 1024, 8192, 65536] {
        steps.begin(format_args!("{ranks} ranks, {bytes} B"));
        let mut row = vec![Entry::from(bytes)];
        for form in FORMS {
            let ran = Threads::new(ranks).run(&async |fabric| exchange(fabric, form, bytes, batches).await)?;
            row.push(ns(greatest(ran).unwrap_or(f64::NAN)));
        }
        sheet.row(row);
    }
    Ok(sheet)
}

/// Measures exchanges of 64 KiB in which ranks compute.
fn computing(times: u32, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let compute = Duration::from_micros(50);
    let title = format!("64 KiB, computing {compute:?}; rank 0, rank 1");
    let columns = ["rank 1 late by", "form", "start 0", "start 1", "wait 0", "wait 1", "rest 0", "rest 1"];
    let mut sheet = Sheet::new(title, columns);
    steps.expect(2);
    for late in [Duration::ZERO, 2 * compute] {
        steps.begin(format_args!("computing, rank 1 late by {late:?}"));
        for form in FORMS {
            let program = async |fabric| overlapped(fabric, form, 65536, compute, late, times).await;
            let ran = Threads::new(2).run(&program)?;
            let both = |part: fn(&Overlapped) -> f64| [ns(part(&ran[0])), ns(part(&ran[1]))];
            let (start, wait, step) = (both(|at| at.start), both(|at| at.wait), both(|at| at.step));
            let case = [format!("{late:?}").into(), form.to_string().into()];
            sheet.row(case.into_iter().chain(start).chain(wait).chain(step));
        }
    }
    Ok(sheet)
}

/// Measures the creation of exchanges.
fn creating(steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new("Making an exchange with 26 neighbours on 4 ranks", forms());
    let mut row = Vec::new();
    steps.expect(1);
    steps.begin("making exchanges");
    for form in FORMS {
        let ran = Threads::new(4).run(&async |fabric| making(fabric, form).await)?;
        row.push(ns(greatest(ran).unwrap_or(f64::NAN)));
    }
    sheet.row(row);
    Ok(sheet)
}

const ROUNDS: u32 = 100;
const FORMS: [Form; 3] = [Form::Fast, Form::Mrc, Form::Cpu];

/// Creates an exchange of all ranks on a periodic ring.
async fn on_a_ring(fabric: &Fabric, form: Form, bytes: usize) -> ProgramResult<(Neighbourhood, Request)> {
    let group = Group::world(fabric).await?;
    let topology = Cartesian::new(&[group.len()], &[true])?.topology(group.me());
    let mut hood = Neighbourhood::new(group, topology).await?;
    let (send, receive) = (Buffer::<u8>::new(fabric, 2 * bytes)?, Buffer::<u8>::new(fabric, 2 * bytes)?);
    let request = hood.alltoall_init(&send, &receive, bytes, &Exchange::form(form)).await?;
    Ok((hood, request))
}

/// Returns the nanoseconds of an exchange in the fastest batch.
async fn exchange(fabric: Fabric, form: Form, bytes: usize, batches: u32) -> ProgramResult<f64> {
    let (mut hood, mut request) = on_a_ring(&fabric, form, bytes).await?;
    let mut best = f64::INFINITY;
    for _ in 0..batches {
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
    times: u32,
) -> ProgramResult<Overlapped> {
    let (mut hood, mut request) = on_a_ring(&fabric, form, bytes).await?;
    let mut best = Overlapped { start: f64::INFINITY, wait: f64::INFINITY, step: f64::INFINITY };
    for _ in 0..times {
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

/// Returns the nanoseconds of creating an exchange with 26 neighbours, with blocks of 1 KiB.
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
        let request = hood.alltoall_init(&send, &receive, 1 << 10, &Exchange::form(form)).await?;
        best = best.min(nanos(begun));
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
fn ping_pong(batches: u32) -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let lines = Arc::new([Line(AtomicU64::new(0)), Line(AtomicU64::new(0))]);
    let turns = u64::from(ROUNDS) * u64::from(batches);
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
    for _ in 0..batches {
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
