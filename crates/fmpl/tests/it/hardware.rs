//! Collectives in hardware: they have the same results as those in software, and fall back to them.

use crate::harness::{everywhere, pattern, read};
use fmpl::{Algorithm, Choice, Collective, Communicator, Fmpl, FmplError, Op, Options, Rule, Scalar, Table};
use rdma_fabric::{Caps, Fabric, Group, Multicasts, ProgramResult, barrier::ColourBarrier};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

const SIZES: [usize; 9] = [0, 1, 7, 64, 1000, 4095, 65_537, 200_003, 1 << 20];

fn by(choice: Choice) -> Options {
    Options::default().collectives(choice)
}

/// A table where lengths decide.
fn mixed() -> Choice {
    let rules = [
        Rule::new(Collective::Barrier, Algorithm::Colour),
        Rule::new(Collective::Broadcast, Algorithm::Tree).bytes(5..100),
        Rule::new(Collective::Broadcast, Algorithm::Tree).bytes(70_000..300_000),
        Rule::new(Collective::Broadcast, Algorithm::Multicast),
        Rule::new(Collective::Reduce, Algorithm::Gates).bytes(0..17),
        Rule::new(Collective::Allreduce, Algorithm::Gates).bytes(8..1000),
    ];
    Choice::By(rules.into_iter().collect())
}

/// Broadcasts from all roots, in all sizes.
async fn broadcasts(comm: &Communicator, sizes: &[usize]) -> ProgramResult<()> {
    let most = sizes.iter().copied().max().unwrap_or(0);
    let whole = comm.buffer::<u8>(most)?;
    for (n, size) in sizes.iter().enumerate() {
        // Long broadcasts are tried from two roots only.
        let step = if *size > 10_000 { comm.len().max(2) - 1 } else { 1 };
        for root in (0..comm.len()).step_by(step) {
            let span = whole.slice(0..*size)?;
            let sent = pattern(root + 100 * n, *size);
            let mine = if comm.me() == root { sent.clone() } else { vec![0xee; *size] };
            comm.fabric().write(&span, &mine)?;
            comm.broadcast(&span, root).await?;
            assert!(read(comm, &span, *size)? == sent, "{size} bytes from {root} of {}", comm.len());
        }
    }
    Ok(())
}

/// Yields the bits of reductions of all kinds and some lengths, which must be the same for all
/// algorithms.
async fn reductions(comm: &Communicator) -> ProgramResult<Vec<u8>> {
    async fn of<T: Scalar>(
        comm: &Communicator,
        value: impl Fn(usize, usize) -> T,
        all: &mut Vec<u8>,
    ) -> ProgramResult<()> {
        for elements in [0, 1, 2, 3, 4, 6, 7, 20] {
            for op in [Op::Sum, Op::AbsMax, Op::AbsMin] {
                let span = comm.buffer::<T>(elements)?;
                let mine: Vec<T> = (0..elements).map(|n| value(comm.me(), n)).collect();
                comm.fabric().write(&span, &mine)?;
                let root = elements % comm.len();
                comm.reduce(&span, op, root).await?;
                all.extend_from_slice(bytes(&read(comm, &span, elements)?));
                comm.fabric().write(&span, &mine)?;
                comm.allreduce(&span, op).await?;
                all.extend_from_slice(bytes(&read(comm, &span, elements)?));
            }
        }
        Ok(())
    }
    fn bytes<T: Scalar>(values: &[T]) -> &[u8] {
        rdma_fabric::bytemuck::cast_slice(values)
    }
    let mut all = Vec::new();
    let value = |me: usize, n: usize| (me * 7919 + n * 31 + 5) as i32 % 17 - 8;
    of(comm, |me, n| value(me, n).wrapping_mul(1 << 28), &mut all).await?;
    of(comm, |me, n| value(me, n) as f32 / 3.0, &mut all).await?;
    of(comm, |me, n| f64::from(value(me, n)) / 7.0, &mut all).await?;
    of(comm, |me, n| [value(me, n) as f32, value(n, me) as f32], &mut all).await?;
    of(comm, |me, n| [f64::from(value(me, n)), f64::from(value(n, me))], &mut all).await?;
    Ok(all)
}

#[test]
fn broadcasts_from_every_root_in_all_sizes() {
    for members in [1, 2, 3, 5, 8, 9] {
        for choice in [Choice::Measured, mixed(), Choice::Software] {
            for staging in [64, 5000, 64 << 10] {
                if staging == 64 && members % 4 != 0 || choice == Choice::Software && staging > 64 {
                    continue;
                }
                let sizes = if staging == 64 { &SIZES[..6] } else { &SIZES[..] };
                everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
                    let fmpl = Fmpl::init_with(&fabric, by(choice.clone()).staging(staging)).await?;
                    broadcasts(fmpl.world(), sizes).await?;
                    Ok(fmpl.finalize().await?)
                });
            }
        }
    }
}

#[test]
fn reductions_give_the_same_bits_by_any_way() {
    for members in [1, 2, 3, 5, 8, 9] {
        let bits = |choice: &Choice| {
            everywhere(members, &async |fabric: Fabric| -> ProgramResult<Vec<u8>> {
                let fmpl = Fmpl::init_with(&fabric, by(choice.clone())).await?;
                let bits = reductions(fmpl.world()).await?;
                fmpl.finalize().await?;
                Ok(bits)
            })
        };
        let software = bits(&Choice::Software);
        assert!([Choice::Measured, mixed()].iter().all(|choice| bits(choice) == software), "{members} members");
    }
}

/// The world and subsets of it take turns; some subsets are boxes of the network, others are not.
#[test]
fn several_communicators_at_once() {
    for parts in [1, 2, 3] {
        everywhere(9, &async |fabric: Fabric| -> ProgramResult<()> {
            let mut fmpl = Fmpl::init(&fabric).await?;
            let me = fabric.rank().index();
            let near = fmpl.create(Some((me * parts / 9) as u64), me as u64).await?.expect("all join one");
            let far = fmpl.create((me != 4).then_some((me % parts) as u64), 20 - me as u64).await?;
            for round in 0..3 {
                for comm in [Some(&near), far.as_ref(), Some(fmpl.world())].into_iter().flatten() {
                    broadcasts(comm, &[round, 3000, 100_000]).await?;
                    comm.barrier().await?;
                    let span = comm.buffer::<i32>(3)?;
                    fabric.write(&span, &[me as i32, 1, -(me as i32)])?;
                    comm.allreduce(&span, Op::Sum).await?;
                    let sum: i32 = (0..comm.len()).map(|n| comm.rank(n).map_or(0, |rank| rank.index() as i32)).sum();
                    assert_eq!(read(comm, &span, 3)?, [sum, comm.len() as i32, -sum]);
                }
            }
            if let Some(far) = far {
                far.finish().await?;
            }
            near.finish().await?;
            Ok(fmpl.finalize().await?)
        });
    }
}

/// Runs a program on the SR8000.
fn sr8000<T: Send + 'static>(ranks: usize, program: &impl rdma_fabric::Program<Out = T>) -> Vec<T> {
    let job = Job::new(&Platform::sr8000(), ranks).jitter(Duration::from_micros(10)).shuffle_ties(true);
    job.run(program).unwrap_or_else(|error| panic!("{error}")).outs
}

fn ways(comm: &Communicator) -> fmpl::Result<(Algorithm, Algorithm)> {
    Ok((comm.algorithm(Collective::Barrier, 0)?, comm.algorithm(Collective::Broadcast, 8192)?))
}

#[test]
fn without_a_free_colour_software_does_it() {
    sr8000(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init(&fabric).await?;
        let (hardware, software) = ((Algorithm::Colour, Algorithm::Multicast), (Algorithm::Tree, Algorithm::Tree));
        assert_eq!(ways(fmpl.world())?, hardware);
        let mut more = Vec::new();
        for colour in 1..10 {
            let comm = fmpl.create(Some(0), 0).await?.expect("all join it");
            assert_eq!(ways(&comm)?, if colour < 8 { hardware } else { software }, "communicator {colour}");
            more.push(comm);
        }
        for comm in &more {
            broadcasts(comm, &[0, 5000]).await?;
            comm.barrier().await?;
        }
        // A colour is released, and claimed again.
        more.remove(3).finish().await?;
        let comm = fmpl.create(Some(0), 0).await?.expect("all join it");
        assert_eq!(ways(&comm)?, hardware);
        broadcasts(&comm, &[5000]).await?;
        drop((comm, more));
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn gates_come_back_with_their_communicator() {
    let job = Job::new(&Platform::fx100(), 4);
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init(&fabric).await?;
        let mut last = None;
        for _ in 0..5 {
            let mut gates = 0;
            let mut all = Vec::new();
            loop {
                let comm = fmpl.create(Some(0), 0).await?.expect("all join it");
                comm.barrier().await?;
                let way = comm.algorithm(Collective::Barrier, 0)?;
                assert_eq!(comm.algorithm(Collective::Allreduce, 8)?, way);
                all.push(comm);
                if way == Algorithm::Tree {
                    break;
                }
                gates += 1;
            }
            assert!(gates > 2 && last.is_none_or(|last| last == gates), "{gates}");
            last = Some(gates);
            for comm in all {
                comm.finish().await?;
            }
        }
        Ok(fmpl.finalize().await?)
    };
    job.run(&program).expect("no rank fails");
}

/// Section 4.2 of the paper: the members' nodes have to fill a box.
#[test]
fn only_boxes_of_nodes_have_hardware() {
    sr8000(16, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init(&fabric).await?;
        let me = fabric.rank().index();
        assert_eq!(ways(fmpl.world())?, (Algorithm::Colour, Algorithm::Multicast));
        for members in 2..=16 {
            let Some(comm) = fmpl.create((me < members).then_some(0), me as u64).await? else { continue };
            let fills = members <= 8 || members == 16;
            let expected =
                if fills { (Algorithm::Colour, Algorithm::Multicast) } else { (Algorithm::Tree, Algorithm::Tree) };
            assert_eq!(ways(&comm)?, expected, "{members} members");
            broadcasts(&comm, &[3000]).await?;
            comm.finish().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn hardware_that_is_not_there_is_refused() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, by(Choice::Hardware)).await?;
        let world = fmpl.world();
        let caps = fabric.caps();
        let (multicasts, gates) = (caps.multicasts == Multicasts::Hardware, fabric.gates().limits().start_gates > 0);
        let span = world.buffer::<i32>(7)?;
        fabric.write(&span, &[1; 7])?;
        let refused = |collective| Err(FmplError::NoHardware { collective });
        let or = |there: bool, collective| if there { Ok(()) } else { refused(collective) };
        let few = span.slice(0..6)?;
        for _ in 0..3 {
            assert_eq!(world.barrier().await, or(gates || fabric.barrier_colours() > 0, Collective::Barrier));
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
fn measured_tables_choose_hardware_that_is_faster() {
    let sr8000 = sr8000(2, &async |fabric: Fabric| -> ProgramResult<Caps> { Ok(fabric.caps()) })[0];
    assert!(!Table::measured(&sr8000).rules().is_empty());
    assert!(Table::measured(&Caps::weakest()).rules().is_empty());
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

/// A communicator does not use a colour that the program holds.
#[test]
fn colours_of_the_program_are_left_alone() {
    sr8000(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut group = Group::world(&fabric).await?;
        let mut own = ColourBarrier::claim(&mut group, 0).await?;
        let fmpl = Fmpl::init(&fabric).await?;
        for _ in 0..5 {
            own.start()?;
            fmpl.world().barrier().await?;
            broadcasts(fmpl.world(), &[100]).await?;
            own.wait().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}
