//! Barriers that multicasts release, where no hardware reaches all members.

use super::{broadcasts, by, sr8000};
use crate::harness::{everywhere, read};
use fmpl::{Algorithm, Choice, Collective, Communicator, Fmpl, FmplError, Options, Rule};
use rdma_fabric::{Fabric, Group, Multicasts, ProgramResult};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

/// In each round, another member is late.
async fn rounds(comm: &Communicator, rounds: usize) -> ProgramResult<()> {
    let (fabric, me) = (comm.fabric(), comm.me());
    let came = comm.buffer::<u64>(1)?;
    for round in 0..rounds {
        if round % comm.len() == me {
            fabric.sleep(Duration::from_micros(100)).await;
        }
        let begun = fabric.now().as_picos();
        comm.barrier().await?;
        let left = fabric.now().as_picos();
        fabric.write(&came, &[begun])?;
        comm.allreduce_with(&came, |mine: &mut [u64], theirs| mine[0] = mine[0].max(theirs[0])).await?;
        assert!(read(comm, &came, 1)?[0] <= left, "round {round} of {} members", comm.len());
        // Several in a row.
        comm.barrier().await?;
        comm.barrier().await?;
    }
    Ok(())
}

/// Sections 4.3 and 6.2 of the paper: 9 to 15 nodes.
#[test]
fn no_member_leaves_a_barrier_in_boxes_early() {
    for members in 9..=15 {
        sr8000(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            assert_eq!(world.algorithm(Collective::Barrier, 0)?, Algorithm::Mixed);
            rounds(world, members).await?;
            broadcasts(world, &[100]).await?;
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn it_takes_less_time_than_the_tree() {
    for members in 9..=15 {
        let took = |choice: Choice| {
            let job = Job::new(&Platform::sr8000(), members);
            let outs = job.run(&async move |fabric: Fabric| -> ProgramResult<u64> {
                let fmpl = Fmpl::init_with(&fabric, by(choice.clone())).await?;
                fmpl.world().barrier().await?;
                let begun = fabric.now();
                for _ in 0..4 {
                    fmpl.world().barrier().await?;
                }
                let took = fabric.now().picos_since(begun);
                fmpl.finalize().await?;
                Ok(took)
            });
            outs.expect("no rank fails").outs[0]
        };
        let (mixed, tree) = (took(Choice::Measured), took(Choice::Software));
        assert!(mixed < tree, "{members} members: {mixed} and {tree} ps");
    }
}

/// Threads, where the CPU multicasts; machines without multicasts use the tree.
#[test]
fn a_program_may_select_it_on_any_fabric() {
    let choice = Choice::By([Rule::new(Collective::Barrier, Algorithm::Mixed)].into_iter().collect());
    for members in [1, 2, 3, 5, 9] {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let mut fmpl = Fmpl::init_with(&fabric, by(choice.clone())).await?;
            let expected = match fabric.caps().multicasts {
                Multicasts::Software | Multicasts::Hardware if members > 1 => Algorithm::Mixed,
                _ => Algorithm::Tree,
            };
            assert_eq!(fmpl.world().algorithm(Collective::Barrier, 0)?, expected);
            rounds(fmpl.world(), members).await?;
            // Members that are not neighbours, in another order.
            let me = fabric.rank().index();
            let some = fmpl.create(Some(me as u64 % 2), 20 - me as u64).await?.expect("all join one");
            rounds(&some, 2).await?;
            some.finish().await?;
            Ok(fmpl.finalize().await?)
        });
    }
}

/// The root, a leader, an inner node and leaves.
#[test]
fn a_member_that_leaves_a_barrier_in_boxes_is_named() {
    for leaver in [0, 1, 4, 8, 10] {
        for broadcast in [false, true] {
            sr8000(11, &async |fabric: Fabric| -> ProgramResult<()> {
                let fmpl = Fmpl::init(&fabric).await?;
                let (world, me) = (fmpl.world(), fabric.rank().index());
                let span = world.buffer::<u8>(100)?;
                world.barrier().await?;
                if me == leaver {
                    let left = match broadcast {
                        // A collective in which it has other neighbours.
                        true => fabric.before(fabric.now(), world.broadcast(&span, 3)).await,
                        false => fabric.before(fabric.now() + Duration::from_micros(3), world.barrier()).await,
                    };
                    assert_eq!(left, None);
                } else {
                    fabric.sleep(Duration::from_micros(50)).await;
                }
                for _ in 0..3 {
                    assert!(matches!(world.barrier().await, Err(FmplError::MemberLeft { .. })));
                }
                Ok(fmpl.finalize().await?)
            });
        }
    }
}

#[test]
fn the_death_of_a_member_ends_a_barrier_in_boxes() {
    for lost in [0, 1, 8, 9] {
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let mut all = Group::world(&fabric).await?;
            let survivors = all.split((fabric.rank().index() != lost).then_some(0), 0).await?;
            let fmpl = Fmpl::init_with(&fabric, Options::default()).await?;
            let world = fmpl.world();
            world.barrier().await?;
            world.barrier().await?;
            let Some(mut survivors) = survivors else {
                fabric.sleep(Duration::from_micros(20)).await;
                return Err("lost".into());
            };
            let begun = fabric.now();
            let outcome = world.barrier().await;
            assert!(matches!(outcome, Err(FmplError::MemberLeft { .. } | FmplError::Fabric(_))), "{outcome:?}");
            assert!(fabric.now().picos_since(begun) < 10_000_000_000, "within 10 ms");
            survivors.barrier().await?;
            Ok(())
        };
        let job = Job::new(&Platform::sr8000(), 10).jitter(Duration::from_micros(5)).shuffle_ties(true);
        let (run, _) = job.run_through(&program).unwrap_or_else(|error| panic!("{error}"));
        let ended: Vec<bool> = run.outs.iter().map(Option::is_some).collect();
        assert_eq!(ended, (0..10).map(|rank| rank != lost).collect::<Vec<_>>());
    }
}
