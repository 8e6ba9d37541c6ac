//! Lengths that differ, missing hardware, and members that leave or die.

use super::{broadcasts, by, mixed, sr8000};
use crate::harness::everywhere;
use fabric_offload::barrier::{ColourBarrier, GateUnit};
use fmpl::{Algorithm, Choice, Collective, Fmpl, FmplError, Op, Options};
use rdma_fabric::{Fabric, Group, Multicasts, ProgramResult};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

#[test]
fn hardware_that_is_not_there_is_refused() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, by(Choice::Hardware)).await?;
        let world = fmpl.world();
        let caps = fabric.caps();
        let (multicasts, gates) =
            (caps.multicasts == Multicasts::Hardware, GateUnit::of(&fabric).limits().start_gates > 0);
        let span = world.buffer::<i32>(7)?;
        fabric.write(&span, &[1; 7])?;
        let refused = |collective| Err(FmplError::NoHardware { collective });
        let or = |there: bool, collective| if there { Ok(()) } else { refused(collective) };
        let few = span.slice(0..6)?;
        for _ in 0..3 {
            assert_eq!(world.barrier().await, or(gates || ColourBarrier::colours(&fabric) > 0, Collective::Barrier));
            assert_eq!(world.broadcast(&span, 1).await, or(multicasts, Collective::Broadcast));
            assert_eq!(world.allreduce(&few, Op::Sum).await, or(gates, Collective::Allreduce));
            assert_eq!(world.reduce(&few, Op::AbsMin, 2).await, or(gates, Collective::Reduce));
            assert_eq!(world.allreduce(&span, Op::Sum).await, refused(Collective::Allreduce));
            assert_eq!(world.reduce_with(&few, |_: &mut [i32], _| (), 0).await, refused(Collective::Reduce));
        }
        assert_eq!(world.reduction_algorithm::<i32>(true, Op::Sum, 6).is_ok(), gates);
        assert!(world.reduction_algorithm::<f64>(true, Op::Sum, 1).is_err());
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn lengths_that_differ_by_hardware() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, by(mixed()).staging(256)).await?;
        let (world, me) = (fmpl.world(), fabric.rank().index());
        let (hardware, gates) = (
            world.algorithm(Collective::Broadcast, 0)? == Algorithm::Multicast,
            world.algorithm(Collective::Reduce, 0)? == Algorithm::Gates,
        );
        let span = world.buffer::<i32>(1000)?;
        let differ =
            |member, bytes, other, other_bytes| Err(FmplError::CountMismatch { member, bytes, other, other_bytes });
        // By multicast or by the tree, as announced by the root; the other member's length would
        // select the other algorithm.
        for (root, one, others) in [(2, 0, 10), (2, 1000, 10), (0, 10, 1000), (1, 100, 10), (5, 700, 900)] {
            for odd in [(root + 1) % 6, root] {
                let elements = if me == odd { one } else { others };
                let outcome = world.broadcast(&span.slice(0..elements)?, root).await;
                let bytes = if odd == root { one } else { others } * 4;
                if hardware && world.algorithm(Collective::Broadcast, bytes)? == Algorithm::Multicast {
                    let expected = if elements * 4 == bytes { Ok(()) } else { differ(root, bytes, me, elements * 4) };
                    assert_eq!(outcome, expected, "{odd} gives {one}, others {others}");
                } else if me == odd {
                    assert!(matches!(outcome, Err(FmplError::CountMismatch { .. })), "{outcome:?}");
                }
                world.broadcast(&span, root).await?;
            }
        }
        // In the unit, at both sides of its limits, and in the tree alone.
        for (one, others) in [(3, 4), (2, 6), (6, 2), (300, 5), (5, 300), (300, 400)] {
            let odd = others % 6;
            let part = span.slice(0..if me == odd { one } else { others })?;
            let other = usize::from(odd == 0);
            let expected = if one > others {
                differ(odd, 4 * one, other, 4 * others)
            } else {
                differ(other, 4 * others, odd, 4 * one)
            };
            for _ in 0..2 {
                let outcome = world.allreduce(&part, Op::AbsMax).await;
                match gates {
                    true => assert_eq!(outcome, expected, "{odd} gives {one}, others {others}"),
                    false => assert!(matches!(outcome, Err(FmplError::CountMismatch { .. })), "{outcome:?}"),
                }
            }
            world.allreduce(&span, Op::Sum).await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_member_that_leaves_a_hardware_collective_is_named() {
    for leaver in 0..4 {
        for broadcast in [false, true] {
            let program = async |fabric: Fabric| -> ProgramResult<()> {
                let fmpl = Fmpl::init_with(&fabric, Options::default().staging(1000)).await?;
                let (world, me) = (fmpl.world(), fabric.rank().index());
                let span = world.buffer::<u8>(100_000)?;
                broadcasts(world, &[10, 5000]).await?;
                let collective = async || match broadcast {
                    true => world.broadcast(&span, 1).await,
                    false => world.barrier().await,
                };
                if me == leaver {
                    assert_eq!(fabric.before(fabric.now() + Duration::from_micros(7), collective()).await, None);
                    fabric.sleep(Duration::from_millis(1)).await;
                } else {
                    fabric.sleep(Duration::from_micros(20)).await;
                    let outcome = collective().await;
                    // It may have entered the barrier.
                    assert!(outcome.is_ok() && !broadcast || matches!(outcome, Err(FmplError::MemberLeft { .. })));
                }
                for _ in 0..3 {
                    assert!(matches!(world.barrier().await, Err(FmplError::MemberLeft { .. })));
                    assert!(matches!(world.broadcast(&span, 0).await, Err(FmplError::MemberLeft { .. })));
                }
                Ok(fmpl.finalize().await?)
            };
            sr8000(4, &program);
            if !broadcast {
                Job::new(&Platform::fx100(), 4).run(&program).expect("no rank fails");
            }
        }
    }
}

#[test]
fn the_death_of_a_member_ends_a_hardware_collective() {
    for (platform, broadcast) in [(Platform::fx100(), false), (Platform::sr8000(), false), (Platform::sr8000(), true)] {
        for lost in 0..4 {
            let program = async |fabric: Fabric| -> ProgramResult<()> {
                let mut all = Group::world(&fabric).await?;
                let survivors = all.split((fabric.rank().index() != lost).then_some(0), 0).await?;
                let fmpl = Fmpl::init_with(&fabric, Options::default().staging(1000)).await?;
                let world = fmpl.world();
                let span = world.buffer::<u8>(100_000)?;
                broadcasts(world, &[10, 5000]).await?;
                world.barrier().await?;
                let Some(mut survivors) = survivors else {
                    fabric.sleep(Duration::from_micros(20)).await;
                    return Err("lost".into());
                };
                let begun = fabric.now();
                let outcome = match broadcast {
                    true => world.broadcast(&span, (lost + 1) % 4).await,
                    false => world.barrier().await,
                };
                // It may have released its hardware before it was lost.
                assert!(
                    matches!(outcome, Err(FmplError::MemberLeft { .. } | FmplError::Fabric(_))),
                    "{outcome:?} without {lost}"
                );
                assert!(fabric.now().picos_since(begun) < 10_000_000_000, "within 10 ms");
                assert!(world.barrier().await.is_err());
                survivors.barrier().await?;
                Ok(())
            };
            let job = Job::new(&platform, 4).jitter(Duration::from_micros(5)).shuffle_ties(true);
            let (run, _) = job.run_through(&program).unwrap_or_else(|error| panic!("{error}"));
            let ended: Vec<bool> = run.outs.iter().map(Option::is_some).collect();
            assert_eq!(ended, (0..4).map(|rank| rank != lost).collect::<Vec<_>>());
        }
    }
}
