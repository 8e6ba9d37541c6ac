//! Collectives in hardware: they have the same results as those in software, and fall back to them.

mod any_memory;
mod failures;
mod in_boxes;

use crate::harness::{everywhere, pattern, read};
use fabric_offload::barrier::ColourBarrier;
use fmpl::{Algorithm, Choice, Collective, Communicator, Fmpl, Op, Options, Rule, Scalar, Table};
use rdma_fabric::{Caps, Fabric, Group, ProgramResult};
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

fn broadcast_from_every_root(groups: &[usize], most: usize) {
    let sizes = SIZES.into_iter().filter(|size| *size <= most).collect::<Vec<_>>();
    for &members in groups {
        for choice in [Choice::Measured, mixed(), Choice::Software] {
            for staging in [64, 5000, 64 << 10] {
                if staging == 64 && members % 4 != 0 || choice == Choice::Software && staging > 64 {
                    continue;
                }
                let sizes = if staging == 64 { &sizes[..6] } else { &sizes[..] };
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
fn broadcasts_from_every_root_in_most_sizes() {
    broadcast_from_every_root(&[1, 3, 8], 200_003);
}

#[test]
#[ignore = "long: weekly"]
fn broadcasts_from_every_root_in_all_sizes() {
    broadcast_from_every_root(&[1, 2, 3, 5, 8, 9], 1 << 20);
}

fn reduce_by_any_way(groups: &[usize]) {
    for &members in groups {
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

#[test]
fn reductions_give_the_same_bits_by_any_way() {
    reduce_by_any_way(&[1, 3, 8]);
}

#[test]
#[ignore = "long: weekly"]
fn reductions_of_more_members_give_the_same_bits_by_any_way() {
    reduce_by_any_way(&[2, 5, 9]);
}

#[test]
fn several_communicators_at_once() {
    take_turns(&[3], 2);
}

#[test]
#[ignore = "long: weekly"]
fn more_communicators_at_once() {
    take_turns(&[1, 2, 3], 3);
}

/// The world and subsets of it take turns; some subsets are boxes of the network, others are not.
fn take_turns(parts: &[usize], rounds: usize) {
    for &parts in parts {
        everywhere(9, &async |fabric: Fabric| -> ProgramResult<()> {
            let mut fmpl = Fmpl::init(&fabric).await?;
            let me = fabric.rank().index();
            let near = fmpl.create(Some((me * parts / 9) as u64), me as u64).await?.expect("all join one");
            let far = fmpl.create((me != 4).then_some((me % parts) as u64), 20 - me as u64).await?;
            for round in 0..rounds {
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
        // Multicasts still release a barrier.
        let (hardware, software) = ((Algorithm::Colour, Algorithm::Multicast), (Algorithm::Mixed, Algorithm::Tree));
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
                if fills { (Algorithm::Colour, Algorithm::Multicast) } else { (Algorithm::Mixed, Algorithm::Tree) };
            assert_eq!(ways(&comm)?, expected, "{members} members");
            broadcasts(&comm, &[3000]).await?;
            comm.finish().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn measured_tables_choose_hardware_that_is_faster() {
    let sr8000 = sr8000(2, &async |fabric: Fabric| -> ProgramResult<Caps> { Ok(fabric.caps()) })[0];
    assert!(!Table::measured(&sr8000).rules().is_empty());
    assert!(Table::measured(&Caps::weakest()).rules().is_empty());
}

/// A multicast's copy to its root, which the root does not read, may arrive later than the other copies:
/// the next root must not have written to that buffer before.
#[test]
fn a_late_copy_to_a_root_leaves_later_pieces_alone() {
    for seed in 0..40 {
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let table = [Rule::new(Collective::Broadcast, Algorithm::Multicast)].into_iter().collect();
            let fmpl = Fmpl::init_with(&fabric, by(Choice::By(table)).staging(64)).await?;
            // Pieces of both members in turn.
            for _ in 0..5 {
                broadcasts(fmpl.world(), &[200, 150, 120, 65, 110, 60, 65, 190]).await?;
            }
            Ok(fmpl.finalize().await?)
        };
        let job = Job::new(&Platform::sr8000(), 2).seed(seed).jitter(Duration::from_micros(200));
        job.run(&program).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
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
