//! The barrier, and the number of its messages and stages.

use crate::harness::{everywhere, read, software};
use fmpl::{Fmpl, Op};
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

const SIZES: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16];

#[test]
fn no_member_leaves_a_barrier_before_all_have_entered() {
    for members in SIZES {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            let came = world.buffer::<u64>(members)?;
            for round in 0..members {
                if world.me() == round {
                    world.fabric().sleep(Duration::from_micros(300)).await;
                }
                let mut times = vec![0; members];
                times[world.me()] = world.fabric().now().as_picos();
                world.barrier().await?;
                let left = world.fabric().now().as_picos();
                world.fabric().write(&came, &times)?;
                world
                    .allreduce_with(&came, |mine: &mut [u64], theirs| {
                        mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b)
                    })
                    .await?;
                assert!(read(world, &came, members)?.into_iter().all(|came| came <= left), "round {round}");
            }
            Ok(fmpl.finalize().await?)
        });
    }
}

/// Message numbers in the areas have 16 bits and wrap around.
#[test]
fn seventy_thousand_barriers() {
    Job::new(&Platform::fx100(), 2)
        .run(&async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            for round in 0..70_000 {
                // Messages 3 and 65,539 of both channels. One member is late with its receive.
                if round == 3 || round == 65_538 {
                    let span = world.buffer::<i32>(if round == 3 { 1 } else { 2 })?;
                    world.fabric().write(&span, &vec![round; span.len()])?;
                    world.fabric().sleep(Duration::from_micros(50 - 50 * world.me() as u64)).await;
                    world.allreduce(&span, Op::Sum).await?;
                    assert_eq!(read(world, &span, span.len())?, vec![2 * round; span.len()]);
                }
                world.barrier().await?;
            }
            Ok(fmpl.finalize().await?)
        })
        .expect("no rank fails");
}

/// Returns the puts of one barrier, and its duration in picoseconds, on a machine without jitter.
fn barrier(members: usize) -> (u64, u64) {
    let run = |barriers: u64| {
        let program = async |fabric: Fabric| -> ProgramResult<u64> {
            let fmpl = Fmpl::init_with(&fabric, software()).await?;
            let world = fmpl.world();
            world.barrier().await?;
            let begun = world.fabric().now();
            for _ in 0..barriers {
                world.barrier().await?;
            }
            let took = world.fabric().now().picos_since(begun);
            fmpl.finalize().await?;
            Ok(took)
        };
        let run = Job::new(&Platform::fx100(), members).count_ops(true).run(&program).expect("no rank fails");
        let puts: u64 = run.ops_by_rank.expect("they are counted").iter().map(|ops| ops.puts).sum();
        (puts, run.outs[0] / barriers.max(1))
    };
    let ((without, _), (with, took)) = (run(0), run(100));
    assert_eq!((with - without) % 100, 0);
    ((with - without) / 100, took)
}

/// The depth of the tree is ⌊log2 p⌋; several flags of one member add less than a stage.
#[test]
fn a_barrier_has_one_stage_fewer_unless_the_number_is_a_power_of_two() {
    let stage = barrier(2).1 / 2;
    for members in 2..=16u64 {
        let (puts, took) = barrier(members as usize);
        assert_eq!(puts, 2 * (members - 1), "one flag up and one down for each member but the root");
        let stages = 2 * u64::from(members.ilog2());
        assert!(
            (stages * stage..(stages + 2) * stage).contains(&took),
            "{members} members: {took} ps, {stage} a stage"
        );
    }
}
