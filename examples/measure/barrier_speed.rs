//! Measures the time of barriers, the barrier unit's and the group's own: between two threads on
//! this machine (wall-clock time, the shortest of many samples), and in virtual time from 2 ranks
//! up.
//!
//! `cargo example barrier_speed --release [most ranks, 4096]`

use rdma_fabric::{
    Fabric, Group, ProgramResult, Time,
    barrier::{Barrier, GraphShape},
};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// The number of barriers in a wall-clock sample.
const REPEATS: u64 = 1_000;
const SAMPLES: usize = 200;

/// Returns the shortest time that a barrier took, in picoseconds.
async fn on_wall_clock(fabric: Fabric, unit: bool) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = Barrier::new(&mut world).await?;
    let mut least = u64::MAX;
    for _ in 0..SAMPLES {
        let begun = fabric.now();
        for _ in 0..REPEATS {
            if unit {
                barrier.start()?;
                barrier.wait().await?;
            } else {
                world.barrier().await?;
            }
        }
        least = least.min(fabric.now().picos_since(begun) / REPEATS);
    }
    world.barrier().await?;
    Ok(least)
}

/// Returns the picoseconds that a barrier takes when all ranks arrive at the same time: the unit's,
/// and the group's.
async fn in_virtual_time(fabric: Fabric, shape: GraphShape) -> ProgramResult<(u64, u64)> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = Barrier::with_shape(&mut world, shape).await?;
    fabric.sleep_until(Time::from_picos(10_000_000_000)).await;
    let begun = fabric.now();
    barrier.start()?;
    barrier.wait().await?;
    let unit = fabric.now().picos_since(begun);
    fabric.sleep_until(Time::from_picos(20_000_000_000)).await;
    let begun = fabric.now();
    world.barrier().await?;
    Ok((unit, fabric.now().picos_since(begun)))
}

fn main() -> Result<(), tofu2_sim::JobError> {
    let most = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4096);
    println!("Two threads, wall clock, least of {SAMPLES} samples of {REPEATS} barriers:");
    for (name, unit) in [("group", false), ("unit", true)] {
        let least =
            Threads::new(2).run(&async |fabric| on_wall_clock(fabric, unit).await)?.into_iter().min().unwrap_or(0);
        println!("{name:>8} {:8.1} ns", least as f64 / 1e3);
    }
    println!("\nFX100 in virtual time, one rank a node; time of a gate not calibrated:");
    println!("| ranks | unit, recursive doubling, us | unit, ring, us | group's own, us |\n|---|---|---|---|");
    let platform = Platform::fx100();
    let micros = |picos: u64| format!("{:.2}", picos as f64 / 1e6);
    let mut ranks = 2;
    while ranks <= most {
        let slowest = |shape| -> Result<(u64, u64), tofu2_sim::JobError> {
            let outs = Job::new(&platform, ranks).run(&async |fabric| in_virtual_time(fabric, shape).await)?.outs;
            let most = |of: fn(&(u64, u64)) -> u64| outs.iter().map(of).max().unwrap_or(0);
            Ok((most(|out| out.0), most(|out| out.1)))
        };
        let (unit, group) = slowest(GraphShape::RecursiveDoubling)?;
        let ring = if ranks <= 256 { micros(slowest(GraphShape::Ring)?.0) } else { "–".to_owned() };
        println!("| {ranks} | {} | {ring} | {} |", micros(unit), micros(group));
        ranks *= 2;
    }
    Ok(())
}
