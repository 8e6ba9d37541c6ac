//! Collectives that cannot give all members the requested result.

use crate::harness::{everywhere, read, software, survivors};
use fmpl::{Communicator, Fmpl, FmplError, Op};
use rdma_fabric::{
    Atomics, Fabric, FabricError, Group, LocalSpan, ProgramResult, Rank,
    join::{join, now},
};
use std::time::Duration;

fn differ(member: usize, bytes: usize, other: usize, other_bytes: usize) -> fmpl::Result<()> {
    Err(FmplError::CountMismatch { member, bytes, other, other_bytes })
}

/// Checks that later collectives are not affected.
async fn all_well(world: &Communicator, span: &LocalSpan<i32>) -> fmpl::Result<()> {
    let me = world.me() as i32;
    for root in 0..world.len() {
        world.fabric().write(span, &vec![me; span.len()])?;
        world.broadcast(span, root).await?;
        assert_eq!(read(world, span, span.len())?, vec![root as i32; span.len()]);
    }
    world.allreduce(span, Op::Sum).await?;
    world.barrier().await
}

#[test]
fn a_broadcast_tells_those_below_that_lengths_differ() {
    everywhere(8, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, software()).await?;
        let world = fmpl.world();
        let me = world.me();
        let span = world.buffer::<i32>(12)?;
        for (odd, elements) in [(4, 12), (4, 0), (6, 9), (7, 11), (0, 8)] {
            let length = if me == odd { elements } else { 10 };
            world.fabric().write(&span, &[me as i32; 12])?;
            let outcome = world.broadcast(&span.slice(0..length)?, 0).await;
            // Their parents in the tree of member 0.
            let (told, expected) = match odd {
                0 => (true, differ(0, 32, if me == 0 { 4 } else { [4, 1, 2, 2, 4, 4, 4, 4][me] }, 40)),
                _ => {
                    let parent = odd & (odd - 1);
                    (me == parent || me >= odd, differ(parent, 40, odd, 4 * elements))
                }
            };
            assert_eq!(outcome, if told { expected } else { Ok(()) }, "member {me}; {odd} gives {elements}");
            let values = if told && me != odd & odd.saturating_sub(1) { me as i32 } else { 0 };
            assert_eq!(read(world, &span, 10)?, [values; 10]);
            all_well(world, &span).await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_reduction_tells_those_on_the_way_that_lengths_differ() {
    everywhere(8, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, software()).await?;
        let world = fmpl.world();
        let me = world.me();
        let span = world.buffer::<i32>(12)?;
        for (odd, elements) in [(7, 12), (7, 0), (5, 9)] {
            let length = if me == odd { elements } else { 10 };
            let part = span.slice(0..length)?;
            let outcome = world.reduce(&part, Op::Sum, 0).await;
            let on_the_way = [0, 4, odd].contains(&me) || odd == 7 && me == 6;
            let expected = differ(odd, 4 * elements, odd & (odd - 1), 40);
            assert_eq!(
                outcome,
                if on_the_way { expected.clone() } else { Ok(()) },
                "member {me}; {odd} gives {elements}"
            );
            all_well(world, &span).await?;
            assert_eq!(world.allreduce(&part, Op::AbsMin).await, expected, "all get the same");
            all_well(world, &span).await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_collective_that_is_dropped_ends_all_collectives() {
    for members in [2, 3, 8] {
        for leaver in 0..members {
            everywhere(members, &async |fabric: Fabric| -> ProgramResult<()> {
                let fmpl = Fmpl::init(&fabric).await?;
                let world = fmpl.world();
                let span = world.buffer::<i32>(5)?;
                all_well(world, &span).await?;
                if world.me() == leaver {
                    assert_eq!(now(world.allreduce(&span, Op::Sum)), None);
                    for other in (0..members).filter(|other| *other != leaver) {
                        world.send(&[1], other, 1).await?;
                    }
                    for other in (0..members).filter(|other| *other != leaver) {
                        world.recv(&span, other, 1).await?;
                    }
                } else {
                    world.recv(&span, leaver, 1).await?;
                    // The messages that the leaving member had sent may suffice for it to complete.
                    let _ = world.allreduce(&span, Op::Sum).await;
                    world.send(&[1], leaver, 1).await?;
                }
                let left = Err(FmplError::MemberLeft { member: leaver });
                for root in 0..3 {
                    assert_eq!(world.allreduce(&span, Op::Sum).await, left);
                    assert_eq!(world.barrier().await, left);
                    let _ = world.broadcast(&span, root % members).await;
                }
                // Messages are not affected.
                let receiving = world.irecv(&span, (world.me() + 1) % members, 0).await?;
                world.send(&[1], (world.me() + members - 1) % members, 0).await?;
                receiving.wait().await?;
                Ok(fmpl.finalize().await?)
            });
        }
    }
}

#[test]
fn a_member_that_ends_without_a_collective_is_named() {
    for leaver in 0..6 {
        everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
            let mut world = Group::world(&fabric).await?;
            let stay = world.split((fabric.rank().index() != leaver).then_some(0), 0).await?;
            let fmpl = Fmpl::init(&fabric).await?;
            let span = fmpl.world().buffer::<i32>(5)?;
            all_well(fmpl.world(), &span).await?;
            if let Some(mut stay) = stay {
                let left = Err(FmplError::MemberLeft { member: leaver });
                assert_eq!(fmpl.world().allreduce(&span, Op::Sum).await, left);
                assert_eq!(fmpl.world().barrier().await, left);
                stay.barrier().await?;
            }
            Ok(())
        });
    }
}

#[test]
fn the_loss_of_a_member_is_reported_to_all() {
    for lost in 0..7 {
        let told = survivors(7, &async |fabric: Fabric| -> ProgramResult<Vec<FmplError>> {
            let mut world = Group::world(&fabric).await?;
            let survivors = world.split((fabric.rank().index() != lost).then_some(0), 0).await?;
            let fmpl = Fmpl::init(&fabric).await?;
            let span = fmpl.world().buffer::<i32>(5)?;
            all_well(fmpl.world(), &span).await?;
            let Some(mut survivors) = survivors else {
                // Until all others are through with the last barrier.
                for other in (0..7).filter(|other| *other != lost) {
                    fmpl.world().recv(&span, other, 0).await?;
                }
                return Err("lost".into());
            };
            // The loss may end it as well.
            let _ = fmpl.world().send(&[1], lost, 0).await;
            let mut errors = Vec::new();
            errors.extend(fmpl.world().allreduce(&span, Op::Sum).await.err());
            errors.extend(fmpl.world().barrier().await.err());
            errors.extend(fmpl.world().broadcast(&span, 3).await.err());
            // The memory of all must outlive its users.
            survivors.barrier().await?;
            // The lost member drops its communicator just before it is lost.
            let dropped = FmplError::MemberLeft { member: lost };
            let loss = FmplError::Fabric(FabricError::PeerLost { rank: Rank::new(lost as u32) });
            Ok(errors.into_iter().map(|error| if error == dropped { loss.clone() } else { error }).collect())
        });
        for (member, errors) in told.into_iter().enumerate() {
            let error = FmplError::Fabric(FabricError::PeerLost { rank: Rank::new(lost as u32) });
            assert_eq!(errors, (member != lost).then(|| vec![error; 3]), "member {member} without {lost}");
        }
    }
}

#[test]
fn one_collective_at_a_time() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let span = world.buffer::<i32>(5)?;
        if world.me() == 0 {
            let (first, second) = join(world.barrier(), world.broadcast(&span, 0)).await;
            assert_eq!((first, second), (Ok(()), Err(FmplError::CollectiveInUse)));
        } else {
            world.fabric().sleep(Duration::from_millis(3)).await;
            world.barrier().await?;
        }
        all_well(world, &span).await?;
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn members_without_room_for_their_neighbours_stop_all() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, software().peers(2)).await?;
        let world = fmpl.world();
        if world.fabric().caps().atomics == Atomics::None {
            // Without atomics, each member has an area for every other one.
            return Ok(fmpl.finalize().await?);
        }
        let span = world.buffer::<i32>(5)?;
        for _ in 0..3 {
            let outcome = world.allreduce(&span, Op::Sum).await;
            assert!(
                matches!(outcome, Err(FmplError::TooManyPeers { peers: 2, .. } | FmplError::MemberLeft { .. })),
                "{outcome:?}"
            );
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_root_that_is_no_member_is_refused_at_once() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let span = world.buffer::<i32>(1)?;
        let refused = Err(FmplError::NoSuchMember { member: 3, members: 3 });
        assert_eq!(world.broadcast(&span, 3).await, refused);
        assert_eq!(world.reduce(&span, Op::Sum, 3).await, refused);
        // The misuse of a single member as well.
        if world.me() == 1 {
            assert_eq!(world.reduce_with(&span, |_: &mut [i32], _| (), 3).await, refused);
        }
        world.allreduce(&span, Op::Sum).await?;
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn the_loss_of_a_rank_disturbs_no_group_that_it_is_not_in() {
    let done = survivors(5, &async |fabric: Fabric| -> ProgramResult<bool> {
        let mut fmpl = Fmpl::init(&fabric).await?;
        let group = fmpl.create((fabric.rank().index() != 1).then_some(0), 0).await?;
        let Some(group) = group else {
            // The other members have their own group.
            let told = fmpl.world().buffer::<u8>(1)?;
            for other in [0, 2, 3, 4] {
                fmpl.world().recv(&told, other, 0).await?;
            }
            return Err("lost".into());
        };
        let span = group.buffer::<i32>(70)?;
        all_well(&group, &span).await?;
        let _ = fmpl.world().send(&[1u8], 1, 0).await;
        for _ in 0..20 {
            fabric.sleep(Duration::from_micros(300)).await;
            all_well(&group, &span).await?;
        }
        let lost = fmpl.world().barrier().await;
        group.barrier().await?;
        Ok(matches!(lost, Err(FmplError::Fabric(FabricError::PeerLost { .. }))))
    });
    assert_eq!(done, [Some(true), None, Some(true), Some(true), Some(true)]);
}
