//! Control queues whose commands are released by a rank of the same node, and go to another node.

use crate::{network, thread_job::ThreadJob};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Deps, Fabric, Group, Program, ProgramResult};
use std::{thread, time::Duration};

const ROUNDS: u64 = 40;
const BYTES: u64 = 6000;

/// Rank 0 releases commands of rank 1, which is on the same node and sleeps; their target is rank
/// 2.
struct Released;

impl Program for Released {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric((BYTES * ROUNDS) as usize + 8).await?;
        let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session))?;
        let sender = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
        let (at, from) = (queue.register_fixed(&region, 1)?, sender.register(&region)?);
        let ids = world.allgather(queue.id().to_bits()).await?;
        let id = |rank: usize| QueueId::from_bits(ids[rank]).ok_or("no queue's bits");
        let piece = |at: Stadd, round| at + BYTES * round;
        let me = fabric.rank().index();
        if me == 1 {
            for round in 0..ROUNDS {
                let len = if round % 2 == 0 { BYTES } else { 100 };
                let put = Command::put(id(2)?, piece(at, round), piece(at, round), len as u32);
                queue.post(Posting::new(put).remote(round as u8).strong_order(), Deps::All).await?;
            }
        }
        world.barrier().await?;
        match me {
            0 => {
                for round in 0..ROUNDS {
                    let own = region.span::<u8>(&fabric, (BYTES * round) as usize, BYTES as usize)?;
                    fabric.write(&own, &[1 + round as u8; BYTES as usize])?;
                    let put = Command::put(id(1)?, piece(from, round), piece(at, round), BYTES as u32);
                    sender.post(Posting::new(put).sps(1), Deps::All).await?;
                }
            }
            1 => {
                thread::sleep(Duration::from_secs(1));
                let all = region.word::<u64>(&fabric, (BYTES * ROUNDS) as usize)?;
                assert_eq!(fabric.load(&all)?, ROUNDS, "what had arrived while this rank slept");
            }
            2 => {
                for round in 0..ROUNDS {
                    assert_eq!(queue.next_notice(Deps::All).await?.edata, round as u8);
                    let len = if round % 2 == 0 { BYTES } else { 100 };
                    let mut bytes = vec![0; len as usize];
                    fabric.read(&region.span::<u8>(&fabric, (BYTES * round) as usize, len as usize)?, &mut bytes)?;
                    assert!(bytes.iter().all(|byte| *byte == 1 + round as u8), "round {round}");
                }
                let all = Command::PutInline { to: id(1)?, bytes: Inline::word(ROUNDS), at: piece(at, ROUNDS) };
                sender.post(Posting::new(all).local(0), Deps::All).await?;
                assert_eq!(sender.next_notice(Deps::All).await?.status, Ok(()));
            }
            _ => {}
        }
        Ok(world.barrier().await?)
    }
}

#[test]
fn a_neighbour_releases_what_goes_to_another_node() {
    ThreadJob::run(&network(2), 4, 2, &Released, "released by a neighbour").unwrap();
}
