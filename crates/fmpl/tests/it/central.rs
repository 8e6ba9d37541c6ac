//! Collectives at a counter of member 0.

use crate::harness::{everywhere, read};
use fmpl::{Algorithm, Choice, Collective, Communicator, Fmpl, FmplError, Op, Options, Rule};
use rdma_fabric::{Atomics, Fabric, ProgramResult, join::now};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

const KINDS: [Collective; 3] = [Collective::Barrier, Collective::Broadcast, Collective::Allreduce];

fn central() -> Options {
    let rules = KINDS.map(|kind| Rule::new(kind, Algorithm::Central));
    Options::default().collectives(Choice::By(rules.into_iter().collect()))
}

/// Sums of few elements: with their header in one line of a row and of a result, of a row only, in several pieces, and
/// one element too long. The bits are those of a function, which always takes the path with waits.
async fn sums(comm: &Communicator) -> ProgramResult<()> {
    let (fabric, me) = (comm.fabric(), comm.me());
    let all = comm.buffer::<f64>(25)?;
    for elements in [1, 2, 3, 6, 7, 24, 25] {
        let some = all.slice(0..elements)?;
        let mine: Vec<f64> = (0..elements).map(|n| 0.1 * (n + 1) as f64 / (me + 1) as f64).collect();
        fabric.write(&some, &mine)?;
        comm.allreduce(&some, Op::Sum).await?;
        let sum = read(comm, &some, elements)?;
        fabric.write(&some, &mine)?;
        comm.allreduce_with(&some, |mine: &mut [f64], theirs| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        })
        .await?;
        let bits = |all: &[f64]| all.iter().map(|element| element.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&sum), bits(&read(comm, &some, elements)?), "{elements} elements of {}", comm.len());
        let exact = (1..=comm.len()).map(|member| 0.1 / member as f64).sum::<f64>();
        assert!((sum[0] - exact).abs() < 1e-9, "{} of {exact}", sum[0]);
    }
    Ok(())
}

/// More broadcasts than there are slots, of all roots, between barriers and sums, short and long.
async fn rounds(comm: &Communicator) -> ProgramResult<()> {
    let (fabric, me, members) = (comm.fabric(), comm.me(), comm.len());
    let (one, long) = (comm.buffer::<i32>(1)?, comm.buffer::<i32>(100)?);
    for round in 0..200 {
        let root = round / 30 % members;
        fabric.write(&one, &[if me == root { round as i32 } else { 0 }])?;
        comm.broadcast(&one, root).await?;
        assert_eq!(read(comm, &one, 1)?, [round as i32], "round {round} of {members}");
        if round % 40 == me {
            fabric.sleep(Duration::from_micros(50)).await;
            comm.barrier().await?;
        } else if round % 40 < members {
            comm.barrier().await?;
        }
        if round % 25 == 0 {
            // The longest one beside its flag, the shortest one behind it, and one in pieces.
            for elements in [14, 15, 40] {
                let some = long.slice(0..elements)?;
                let sent: Vec<i32> = (0..elements as i32).map(|n| n + round as i32).collect();
                fabric.write(&some, if me == root { &sent[..] } else { &[-1; 40][..elements] })?;
                comm.broadcast(&some, root).await?;
                assert_eq!(read(comm, &some, elements)?, sent, "round {round} of {members}");
            }
            sums(comm).await?;
            fabric.write(&long, &[me as i32 + 1; 100])?;
            comm.allreduce(&long, Op::Sum).await?;
            let sum = (members * (members + 1) / 2) as i32;
            assert_eq!(read(comm, &long, 100)?, [sum; 100]);
            comm.broadcast(&long, root).await?;
            fabric.write(&one, &[me as i32])?;
            comm.allreduce_with(&one, |mine: &mut [i32], theirs| mine[0] = mine[0].max(theirs[0])).await?;
        }
    }
    Ok(())
}

#[test]
fn short_collectives_meet_at_a_counter() {
    for members in [1, 2, 3, 5, 8] {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let mut fmpl = Fmpl::init_with(&fabric, central()).await?;
            let has_atomics = fabric.caps().atomics != Atomics::None;
            for (kind, bytes, short) in [
                (Collective::Barrier, 0, true),
                (Collective::Broadcast, 192, true),
                (Collective::Allreduce, 193, false),
            ] {
                let expected = if has_atomics && short { Algorithm::Central } else { Algorithm::Tree };
                assert_eq!(fmpl.world().algorithm(kind, bytes)?, expected, "{kind:?}");
            }
            rounds(fmpl.world()).await?;
            let me = fabric.rank().index() as u64;
            // The tree.
            let some = fmpl.create(Some(me % 2), 20 - me).await?.expect("all join one");
            rounds(&some).await?;
            some.finish().await?;
            Ok(fmpl.finalize().await?)
        });
    }
}

/// Members pass other lengths; both kinds continue afterwards.
#[test]
fn lengths_that_differ_are_named() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, central()).await?;
        let (world, me) = (fmpl.world(), fabric.rank().index());
        for elements in [2, 1000] {
            let span = world.buffer::<i32>(if me == 2 { elements } else { 1 })?;
            let sum = world.allreduce(&span, Op::Sum).await;
            assert!(matches!(sum, Err(FmplError::CountMismatch { .. })), "{sum:?}");
            if world.algorithm(Collective::Broadcast, 8)? == Algorithm::Central {
                let copy = world.broadcast(&span, 1).await;
                assert_eq!(matches!(copy, Err(FmplError::CountMismatch { .. })), me == 2, "{copy:?}");
            }
        }
        world.barrier().await?;
        Ok(fmpl.finalize().await?)
    });
}

/// The release of another member may arrive after the word that this one has left.
#[test]
fn a_member_that_leaves_ends_no_earlier_collective() {
    for seed in 0..40 {
        let job = Job::new(&Platform::fx100(), 4).seed(seed).jitter(Duration::from_micros(30));
        let run = job.run(&async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init_with(&fabric, central()).await?;
            let (world, me) = (fmpl.world(), fabric.rank().index());
            world.barrier().await?;
            if me == 1 {
                assert_eq!(now(world.barrier()), None);
            }
            assert_eq!(world.barrier().await, Err(FmplError::MemberLeft { member: 1 }));
            // Another member that ends before all have this error may be named instead.
            fabric.sleep(Duration::from_millis(1)).await;
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Member 0 has the counter.
#[test]
fn a_member_that_leaves_at_a_counter_is_named() {
    for leaver in [0, 1, 3] {
        for drops in [false, true] {
            let outs = Job::new(&Platform::fx100(), 4).run(&async |fabric: Fabric| -> ProgramResult<()> {
                let fmpl = Fmpl::init_with(&fabric, central()).await?;
                let (world, me) = (fmpl.world(), fabric.rank().index());
                world.barrier().await?;
                if me != leaver {
                    fabric.sleep(Duration::from_millis(1)).await;
                } else if drops {
                    // It ends without another call.
                    return Ok(());
                } else {
                    let left = fabric.before(fabric.now() + Duration::from_micros(100), world.barrier()).await;
                    assert_eq!(left, None);
                }
                for round in 0..3 {
                    let met = world.barrier().await;
                    // The leaver had arrived at the first one.
                    let may_meet = round == 0 && me != leaver && !drops;
                    assert!(
                        may_meet && met.is_ok() || matches!(met, Err(FmplError::MemberLeft { .. })),
                        "{met:?}, {leaver} {drops}"
                    );
                }
                Ok(())
            });
            outs.expect("no rank fails");
        }
    }
}
