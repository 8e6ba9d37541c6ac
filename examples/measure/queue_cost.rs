//! The cost of control queues over shared memory, compared with the plain fabric: `cargo example
//! queue_cost --release`.
//!
//! Two processes (threads with `--threads`); each figure is the smallest of many samples, in ns.
//!
//! * `put + notice`: one 8-byte put with a notice that the other rank takes; the cost to the
//!   posting rank alone.
//! * `one way`: half a round trip of puts with notices, both ranks running.
//! * `release`: rank 0 puts with SPS; the command of rank 1's session queue that this releases puts
//!   8 bytes to rank 0, which waits for them.

use rdma_fabric::{
    Deps, Fabric, Group, ProgramResult, Rank,
    control_queue::{Command, Inline, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use std::{process::ExitCode, time::Instant};
use tofu2_sim::shm::{Launcher, Threads, block_on, run_rank_with};

const MEMORY: Stadd = Stadd::fixed(1);
/// The number of operations in a sample, fewer than a receive queue holds.
const TIMES: u64 = 1000;
const SAMPLES: usize = 300;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    let code = match argument.as_deref() {
        Some("rank") => tofu2_sim::shm::from_env()
            .ok()
            .flatten()
            .map_or(1, |endpoint| i32::from(run_rank_with(endpoint, |fabric| block_on(measure(fabric))).is_err())),
        Some("--threads") => {
            i32::from(Threads::new(2).ranks_per_node(1).run_with(|fabric| block_on(measure(fabric))).is_err())
        }
        _ => {
            let program = std::env::current_exe().expect("own path");
            Launcher::new(2).ranks_per_node(1).command(program, ["rank"]).run().unwrap_or(1)
        }
    };
    ExitCode::from(code as u8)
}

fn name(rank: u32, engine: u8) -> QueueId {
    QueueId::new(Rank::new(rank), engine, 0, 0)
}

async fn measure(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let me = fabric.rank().number();
    let other = Rank::new(1 - me);
    let region = fabric.alloc_symmetric(4096).await?;
    let at = |mode, engine| QueueSpec { number: Some(0), ..QueueSpec::new(mode).on(engine).checked(false) };
    let queue = fabric.queues().open(at(QueueMode::Normal, 0))?;
    let session = fabric.queues().open(at(QueueMode::Session, 1))?;
    queue.register_fixed(&region, 1)?;
    session.register_fixed(&region, 1)?;
    world.barrier().await?;
    let span = fabric.remote_span::<u64>(region.at(other, 64), 1)?;
    let put = |value| Command::PutInline { to: name(other.number(), 0), bytes: Inline::word(value), at: MEMORY + 64 };
    let from_memory = Command::put(name(other.number(), 0), MEMORY + 128, MEMORY + 64, 8);

    // The cost to the poster.
    let mut least = [f64::MAX; 3];
    for _ in 0..SAMPLES {
        for (form, least) in least.iter_mut().enumerate() {
            if me == 0 {
                let start = Instant::now();
                for value in 0..TIMES {
                    match form {
                        0 => drop(fabric.put_notify(&span, [value], value).await?),
                        1 => queue.try_post(Posting::new(put(value)).remote(value as u8)).map_err(|_| "refused")?,
                        _ => queue.try_post(Posting::new(from_memory).remote(value as u8)).map_err(|_| "refused")?,
                    }
                }
                *least = least.min(start.elapsed().as_nanos() as f64 / TIMES as f64);
            }
            world.barrier().await?;
            if me == 1 {
                for _ in 0..TIMES {
                    match form {
                        0 => drop(fabric.next_notice(Deps::One(other)).await?),
                        _ => drop(queue.next_notice(Deps::One(other)).await?),
                    }
                }
            }
            world.barrier().await?;
        }
    }
    let [raw, inline, memory] = least;

    // Round trips, for the time of one way.
    let mut one_way = [f64::MAX; 2];
    for _ in 0..SAMPLES / 3 {
        for (form, least) in one_way.iter_mut().enumerate() {
            world.barrier().await?;
            let start = Instant::now();
            for value in 0..TIMES {
                let post = async || -> ProgramResult<()> {
                    match form {
                        0 => drop(fabric.put_notify(&span, [value], value).await?),
                        _ => queue.try_post(Posting::new(put(value)).remote(value as u8)).map_err(|_| "refused")?,
                    }
                    Ok(())
                };
                if me == 0 {
                    post().await?;
                }
                match form {
                    0 => drop(fabric.next_notice(Deps::One(other)).await?),
                    _ => drop(queue.next_notice(Deps::One(other)).await?),
                }
                if me == 1 {
                    post().await?;
                }
            }
            *least = least.min(start.elapsed().as_nanos() as f64 / (2 * TIMES) as f64);
        }
    }

    // A put that releases rank 1's put to rank 0.
    let word = region.word::<u64>(&fabric, 1024)?;
    let mut release = f64::MAX;
    for sample in 0..SAMPLES as u64 {
        if me == 1 {
            for value in 1..=TIMES {
                let bytes = Inline::word(sample * TIMES + value);
                let command = Command::PutInline { to: name(0, 0), bytes, at: MEMORY + 1024 };
                session.try_post(command.into()).map_err(|_| "refused")?;
            }
        }
        world.barrier().await?;
        if me == 0 {
            let start = Instant::now();
            for value in 1..=TIMES {
                let command = Command::PutInline { to: name(1, 1), bytes: Inline::word(value), at: MEMORY + 2048 };
                queue.try_post(Posting::new(command).sps(1)).map_err(|_| "refused")?;
                let wanted = sample * TIMES + value;
                fabric.wait_until(&word, Deps::One(other), |seen| seen >= wanted).await?;
            }
            release = release.min(start.elapsed().as_nanos() as f64 / TIMES as f64);
        }
        world.barrier().await?;
    }
    if me == 0 {
        println!("put + notice, poster: fabric {raw:.1}, queue (inline) {inline:.1}, queue (from memory) {memory:.1}");
        println!("put + notice, one way: fabric {:.1}, queue {:.1}", one_way[0], one_way[1]);
        println!("release: {release:.1}");
    }
    Ok(())
}
