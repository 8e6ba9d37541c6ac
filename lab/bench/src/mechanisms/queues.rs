//! The cost of control queues over shared memory, compared with the plain fabric, between two processes; each
//! figure is the smallest of many samples.
//!
//! * `put + notice`: one 8-byte put with a notice that the other rank takes; the cost to the
//!   posting rank alone.
//! * `one way`: half a round trip of puts with notices, both ranks running.
//! * `release`: rank 0 puts with SPS; the command of rank 1's session queue that this releases puts
//!   8 bytes to rank 0, which waits for them.

use crate::{
    output::{Context, Output},
    outside::{
        bare::Bare,
        job::{self, Provider, Size, Task},
    },
    sheet::{Sheet, ns},
};
use clap::Args;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank};
use repro::progress::Progress;
use serde::{Deserialize, Serialize};
use std::{error::Error, process::ExitCode, sync::Arc, time::Instant};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Fabric of the ranks.
    #[arg(long, value_enum, default_value = "shm")]
    fabric: Provider,
    /// A hundredth of the samples: a smoke test.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

const MEMORY: Stadd = Stadd::fixed(1);
/// The number of operations in a sample, fewer than a receive queue holds.
const TIMES: u64 = 1000;
const SAMPLES: usize = 300;

const LABELS: [&str; 6] = [
    "put + notice, poster: fabric",
    "put + notice, poster: queue, inline",
    "put + notice, poster: queue, from memory",
    "put + notice, one way: fabric",
    "put + notice, one way: queue",
    "release",
];

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let samples = if options.quick { SAMPLES / 100 } else { SAMPLES };
    options.output.sheets(Context::new("queues", options.fabric.name(), options.quick), |steps| {
        steps.expect(1);
        steps.begin("two ranks");
        let size = Size { ranks_per_node: Some(1), ..Size::of(2) };
        let measured = job::run(&Plan { samples }, options.fabric, size, &Progress::silent(), |_| None)?;
        let mut sheet = Sheet::new("The least of all samples", ["what", "time"]);
        for (label, figure) in LABELS.into_iter().zip(measured[0]) {
            sheet.row([label.into(), ns(figure)]);
        }
        Ok(vec![sheet])
    })
}

/// The plan of the job, sent to both ranks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    samples: usize,
}

impl Task for Plan {
    const NAME: &'static str = "queues";
    type Out = [f64; 6];

    async fn measure(self, fabric: Fabric, _: &Arc<Bare>) -> ProgramResult<[f64; 6]> {
        measure(&fabric, self.samples).await
    }
}

fn name(rank: u32, engine: u8) -> QueueId {
    QueueId::new(Rank::new(rank), engine, 0, 0)
}

/// Returns the figures at rank 0, in the order of [`LABELS`].
async fn measure(fabric: &Fabric, samples: usize) -> ProgramResult<[f64; 6]> {
    let mut world = Group::world(fabric).await?;
    let me = fabric.rank().number();
    let other = Rank::new(1 - me);
    let region = fabric.alloc_symmetric(4096).await?;
    let at = |mode, engine| QueueSpec { number: Some(0), ..QueueSpec::new(mode).on(engine).checked(false) };
    let queue = ControlQueue::open(fabric, at(QueueMode::Normal, 0))?;
    let session = ControlQueue::open(fabric, at(QueueMode::Session, 1))?;
    queue.register_fixed(&region, 1)?;
    session.register_fixed(&region, 1)?;
    world.barrier().await?;
    let span = fabric.remote_span::<u64>(region.at(other, 64), 1)?;
    let put = |value| Command::PutInline { to: name(other.number(), 0), bytes: Inline::word(value), at: MEMORY + 64 };
    let from_memory = Command::put(name(other.number(), 0), MEMORY + 128, MEMORY + 64, 8);

    // The cost to the poster.
    let mut least = [f64::MAX; 3];
    for _ in 0..samples {
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
    for _ in 0..samples / 3 {
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
    let word = region.word::<u64>(fabric, 1024)?;
    let mut release = f64::MAX;
    for sample in 0..samples as u64 {
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
    Ok([raw, inline, memory, one_way[0], one_way[1], release])
}
