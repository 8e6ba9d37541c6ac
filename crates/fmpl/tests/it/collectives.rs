//! Collectives against a serial oracle.

use crate::harness::{everywhere, read, software};
use fmpl::{Communicator, Fmpl, Op, Options, Spooled};
use rdma_fabric::{Fabric, LocalSpan, ProgramResult};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

const SIZES: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16];

/// Returns the elements that member `me` contributes.
fn given(me: usize, elements: usize) -> impl Iterator<Item = f64> {
    (0..elements).map(move |n| {
        (1.0 + (me * 7919 + n * 104_729) as f64 % 1000.0) / 3.0 * if (me + n).is_multiple_of(3) { -1.0 } else { 1.0 }
    })
}

/// Combines in the order of the tree: blocks of 2^k members, from the root on.
fn combined<T: Clone>(members: usize, root: usize, given: impl Fn(usize) -> T, combine: &impl Fn(T, T) -> T) -> T {
    fn below<T: Clone>(range: std::ops::Range<usize>, leaf: &impl Fn(usize) -> T, combine: &impl Fn(T, T) -> T) -> T {
        let mut result = leaf(range.start);
        let (mut at, mut length) = (range.start + 1, 1);
        while at < range.end {
            let end = (at + length).min(range.end);
            result = combine(result, below(at..end, leaf, combine));
            (at, length) = (end, 2 * length);
        }
        result
    }
    below(0..members, &|number| given((number + root) % members), combine)
}

fn sums(members: usize, root: usize, elements: usize) -> Vec<u64> {
    let all: Vec<Vec<f64>> = (0..members).map(|me| given(me, elements).collect()).collect();
    let one = |n: usize| combined(members, root, |me| all[me][n], &|mine, theirs| mine + theirs).to_bits();
    (0..elements).map(one).collect()
}

fn bits(comm: &Communicator, span: &LocalSpan<f64>) -> fmpl::Result<Vec<u64>> {
    Ok(read(comm, span, span.len())?.into_iter().map(f64::to_bits).collect())
}

#[test]
fn a_broadcast_reaches_all_from_every_root() {
    for members in SIZES {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            for (root, elements) in (0..members).flat_map(|root| [0, 1, 1000].map(|elements| (root, elements))) {
                let span = world.buffer::<f64>(elements)?;
                if world.me() == root {
                    world.fabric().write(&span, &given(root, elements).collect::<Vec<_>>())?;
                }
                world.broadcast(&span, root).await?;
                assert!(
                    read(world, &span, elements)? == given(root, elements).collect::<Vec<_>>(),
                    "{root} {elements}"
                );
            }
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn a_reduction_gives_the_bits_of_its_tree_at_every_root() {
    for members in SIZES {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            for (root, elements) in (0..members).flat_map(|root| [0, 1, 1000].map(|elements| (root, elements))) {
                let span = world.buffer::<f64>(elements)?;
                let mine: Vec<_> = given(world.me(), elements).collect();
                world.fabric().write(&span, &mine)?;
                world.reduce(&span, Op::Sum, root).await?;
                match world.me() == root {
                    true => assert!(bits(world, &span)? == sums(members, root, elements), "{root} {elements}"),
                    false => assert!(read(world, &span, elements)? == mine, "only the root's buffer changes"),
                }
            }
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn an_allreduce_gives_all_the_same_bits() {
    for members in SIZES {
        let outs = everywhere(members, &async |fabric: Fabric| -> ProgramResult<Vec<u64>> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            let mut all = Vec::new();
            for elements in [0, 1, 1000] {
                let span = world.buffer::<f64>(elements)?;
                world.fabric().write(&span, &given(world.me(), elements).collect::<Vec<_>>())?;
                world.allreduce(&span, Op::Sum).await?;
                all.extend(bits(world, &span)?);
            }
            fmpl.finalize().await?;
            Ok(all)
        });
        let expected = [sums(members, 0, 0), sums(members, 0, 1), sums(members, 0, 1000)].concat();
        assert!(outs.iter().all(|out| *out == expected), "{members}");
    }
}

#[test]
fn long_buffers_go_whole() {
    buffers_go_whole(&[(2, 1), (5, 3), (9, 0)], 30_000);
}

#[test]
#[ignore = "long: weekly"]
fn longer_buffers_go_whole() {
    buffers_go_whole(&[(2, 1), (5, 3), (9, 0), (16, 7)], 100_000);
}

fn buffers_go_whole(groups: &[(usize, usize)], elements: usize) {
    for &(members, root) in groups {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            let span = world.buffer::<i32>(elements)?;
            let value = |me: usize, n: usize| ((me + 1) * (n + 1) * 40_503) as i32;
            world.fabric().write(&span, &(0..elements).map(|n| value(world.me(), n)).collect::<Vec<_>>())?;
            world.reduce(&span, Op::Sum, root).await?;
            let sum = |n: usize| (0..members).fold(0i32, |sum, me| sum.wrapping_add(value(me, n)));
            let expected: Vec<_> = (0..elements).map(sum).collect();
            if world.me() == root {
                assert!(read(world, &span, elements)? == expected);
            }
            world.broadcast(&span, root).await?;
            assert!(read(world, &span, elements)? == expected);
            world.allreduce(&span, Op::AbsMax).await?;
            assert!(read(world, &span, elements)? == expected);
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn all_types_and_operations() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
        let world = fmpl.world();
        let me = world.me() as i32;
        macro_rules! check {
            ($type:ty, $value:expr, $($op:ident: $expected:expr),*) => {$({
                let span = world.buffer::<$type>(300)?;
                world.fabric().write(&span, &[$value; 300])?;
                world.allreduce(&span, Op::$op).await?;
                assert_eq!(read(world, &span, 300)?, [$expected; 300], "{} {:?}", stringify!($type), Op::$op);
            })*};
        }
        // 3, −2, 1, 0, −1, 2
        let value = (3 - me) * if me % 2 == 0 { 1 } else { -1 };
        check!(i32, value, Sum: 3, AbsMax: 3, AbsMin: 0);
        check!(f32, value as f32 + 0.5, Sum: 6.0, AbsMax: 3.5, AbsMin: 0.5);
        check!(f64, f64::from(value) - 0.5, Sum: 0.0, AbsMax: 2.5, AbsMin: 0.5);
        check!([f32; 2], [value as f32, me as f32], Sum: [3.0, 15.0], AbsMax: [2.0, 5.0], AbsMin: [3.0, 0.0]);
        check!([f64; 2], [f64::from(me), -1.0], Sum: [15.0, -6.0], AbsMax: [5.0, -1.0], AbsMin: [0.0, -1.0]);
        assert_eq!(world.check_spool().await?, Spooled { received: 0, waiting: 0 });
        Ok(fmpl.finalize().await?)
    });
}

/// Affine maps x → a·x + b: composition is associative but not commutative.
#[test]
fn functions_see_members_in_order() {
    for members in [1, 2, 5, 8, 9, 13] {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            type Affine = [u64; 2];
            let then = |one: Affine, two: Affine| {
                [one[0].wrapping_mul(two[0]), two[0].wrapping_mul(one[1]).wrapping_add(two[1])]
            };
            let compose = |mine: &mut [Affine], theirs: &[Affine]| {
                assert_eq!((mine.len(), theirs.len()), (700, 700), "all at once");
                mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = then(*mine, *theirs));
            };
            let value = |me: usize, n: usize| [(3 * me + 5 + n) as u64, (me + 2 * n + 1) as u64];
            let span = world.buffer::<Affine>(700)?;
            let mine: Vec<_> = (0..700).map(|n| value(world.me(), n)).collect();
            let expected = |root: usize| -> Vec<_> {
                let members = (0..members).map(|number| (number + root) % members);
                (0..700).map(|n| members.clone().map(|me| value(me, n)).reduce(then).expect("a member")).collect()
            };
            for root in [0, members - 1, members / 2] {
                world.fabric().write(&span, &mine)?;
                world.reduce_with(&span, compose, root).await?;
                let expected = if world.me() == root { expected(root) } else { mine.clone() };
                assert!(read(world, &span, 700)? == expected, "root {root}");
            }
            world.fabric().write(&span, &mine)?;
            world.allreduce_with(&span, compose).await?;
            assert!(read(world, &span, 700)? == expected(0));
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn collectives_follow_each_other_without_mixing() {
    for (members, seed) in [(2, 1), (3, 2), (6, 3), (9, 4), (13, 5)] {
        everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            let me = world.me();
            let (whole, user) = (world.buffer::<i32>(400)?, world.buffer::<i32>(1)?);
            let mut random: u64 = seed;
            for round in 0..60 {
                let mut next = |below: usize| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) as usize % below
                };
                let (kind, root, elements, late) = (next(5), next(members), next(400), next(members));
                // One member is late, another one ahead.
                if late == me {
                    world.fabric().sleep(Duration::from_micros(70)).await;
                }
                let span = whole.slice(0..elements)?;
                let value = |me: usize| (round * 100 + me) as i32;
                let total = (0..members).map(value).sum::<i32>();
                world.fabric().write(&span, &vec![value(me); elements])?;
                let expected = match kind {
                    0 => {
                        // Messages of the program are in flight during the barriers.
                        let receiving = world.irecv(&user, (me + 1) % members, 0).await?;
                        world.barrier().await?;
                        world.send(&[value(me)], (me + members - 1) % members, 0).await?;
                        world.barrier().await?;
                        receiving.wait().await?;
                        assert_eq!(read(world, &user, 1)?, [value((me + 1) % members)]);
                        value(me)
                    }
                    1 => world.broadcast(&span, root).await.map(|()| value(root))?,
                    2 => {
                        world.reduce(&span, Op::Sum, root).await.map(|()| if me == root { total } else { value(me) })?
                    }
                    3 => world.allreduce(&span, Op::Sum).await.map(|()| total)?,
                    _ => world.allreduce(&span, Op::AbsMin).await.map(|()| value(0))?,
                };
                assert_eq!(read(world, &span, elements)?, vec![expected; elements], "seed {seed}, round {round}");
            }
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn a_group_has_collectives_of_its_own() {
    everywhere(7, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init(&fabric).await?;
        let me = fmpl.world().me();
        let group = fmpl.create(Some((me % 2) as u64), (10 - me) as u64).await?.expect("all join one");
        let (wide, narrow) = (fmpl.world().buffer::<i32>(3)?, group.buffer::<i32>(3)?);
        fabric.write(&wide, &[1; 3])?;
        fabric.write(&narrow, &[me as i32; 3])?;
        group.allreduce(&narrow, Op::Sum).await?;
        fmpl.world().allreduce(&wide, Op::Sum).await?;
        assert_eq!(read(&group, &narrow, 3)?, [if me % 2 == 0 { 2 + 4 + 6 } else { 1 + 3 + 5 }; 3]);
        assert_eq!(read(fmpl.world(), &wide, 3)?, [7; 3]);
        group.finish().await?;
        Ok(fmpl.finalize().await?)
    });
}

/// Its bandwidth is that of a link, divided by ⌈log2 p⌉.
#[test]
fn a_broadcast_takes_as_long_as_the_sends_of_its_root() {
    let took = |members: usize| {
        let program = async |fabric: Fabric| -> ProgramResult<u64> {
            let fmpl = Fmpl::init_with(&fabric, software()).await?;
            let world = fmpl.world();
            let span = world.buffer::<u8>(1 << 20)?;
            world.broadcast(&span, 0).await?;
            world.barrier().await?;
            let begun = world.fabric().now();
            world.broadcast(&span, 0).await?;
            world.barrier().await?;
            let took = world.fabric().now().picos_since(begun);
            fmpl.finalize().await?;
            Ok(took)
        };
        Job::new(&Platform::fx100(), members).run(&program).expect("no rank fails").outs[0]
    };
    let one = took(2) as f64;
    for members in 3..=16usize {
        let (sends, times) = (f64::from(members.next_power_of_two().ilog2()), took(members) as f64 / one);
        assert!((sends - times).abs() < 0.2, "{members} members: as long as {times} sends");
    }
}
