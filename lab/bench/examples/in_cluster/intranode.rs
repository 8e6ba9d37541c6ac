//! Operations within a node, measured in turns: another process requests one after another,
//! alternately from this job and from the one to which it is compared.

use crate::{FIRST, SECOND};
use core::hint::black_box;
use onesided::{Group, ProgramResult, lock::RwLock};
use rdma_fabric::{Amo, Deps, Fabric, Region, RemoteSpan, RemoteWord};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::Instant,
};

/// The data of a notice to rank 1: the end, or the number of round trips that follow.
const END: u64 = 0;
const NOTHING: u64 = u64::MAX;

/// Runs the scene. Ranks other than the first two wait in a barrier.
pub(crate) async fn play(fabric: &Fabric, socket: &str) -> ProgramResult<()> {
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(4096).await?;
    let lock = RwLock::symmetric(fabric, SECOND).await?;
    world.barrier().await?;
    if fabric.rank() == FIRST {
        let first = First {
            fabric,
            word: fabric.remote_word(memory.at(SECOND, 0))?,
            span: fabric.remote_span(memory.at(SECOND, 512), 1)?,
            lock,
        };
        first.serve(socket).await?;
    } else if fabric.rank() == SECOND {
        second(fabric, &memory).await?;
    }
    Ok(world.barrier().await?)
}

/// Waits for notices, and answers those that are to be answered.
async fn second(fabric: &Fabric, memory: &Region) -> ProgramResult<()> {
    let back = fabric.remote_span::<u64>(memory.at(FIRST, 512), 1)?;
    loop {
        match fabric.next_notice(Deps::One(FIRST)).await?.data {
            END => return Ok(()),
            NOTHING => {}
            trips => {
                for _ in 0..trips {
                    fabric.next_notice(Deps::One(FIRST)).await?;
                    fabric.put_notify(&back, [1], 1).await?;
                }
            }
        }
    }
}

struct First<'a> {
    fabric: &'a Fabric,
    word: RemoteWord<u64>,
    span: RemoteSpan<u64>,
    lock: RwLock,
}

impl First<'_> {
    /// Executes the requests that arrive as lines on the socket, and answers each with the ns of one operation.
    async fn serve(&self, socket: &str) -> ProgramResult<()> {
        let mut to = UnixStream::connect(socket)?;
        let mut from = BufReader::new(to.try_clone()?);
        loop {
            let mut line = String::new();
            from.read_line(&mut line)?;
            let mut words = line.split_whitespace();
            let (Some(operation), Some(count)) = (words.next(), words.next()) else { break };
            let ns = self.measure(operation, count.parse()?).await?;
            writeln!(to, "{ns}")?;
        }
        Ok(self.fabric.put_notify(&self.span, [1], END).await.map(drop)?)
    }

    async fn measure(&self, operation: &str, count: u64) -> ProgramResult<f64> {
        let Self { fabric, word, span, lock } = self;
        let trip = async || -> ProgramResult<()> {
            fabric.put_notify(span, [1], 1).await?;
            Ok(fabric.next_notice(Deps::One(SECOND)).await.map(drop)?)
        };
        if operation == "notice" {
            // The first ones wake the other rank.
            let early = count / 4 + 1;
            fabric.put_notify(span, [1], early + count).await?;
            for _ in 0..early {
                trip().await?;
            }
        } else {
            fabric.put_notify(span, [1], NOTHING).await?;
        }
        let begun = Instant::now();
        match operation {
            "put" => {
                for turn in 0..count {
                    fabric.put(span, [turn]).await?;
                }
            }
            "fetch-add" => {
                for _ in 0..count {
                    black_box(fabric.atomic(word, Amo::Add(1)).await?);
                }
            }
            "lock" => {
                for _ in 0..count {
                    lock.read().await?.release().await?;
                }
            }
            "notice" => {
                for _ in 0..count {
                    trip().await?;
                }
            }
            other => return Err(format!("there is no `{other}`").into()),
        }
        Ok(begun.elapsed().as_nanos() as f64 / count as f64)
    }
}
