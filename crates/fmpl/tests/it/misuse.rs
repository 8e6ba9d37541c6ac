//! Calls that fail because of invalid arguments or misuse.

use crate::harness::{everywhere, read};
use fmpl::{Algorithm, Direction, Fmpl, FmplError, Op, Options};
use rdma_fabric::{Fabric, FabricError, ProgramResult};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

#[test]
fn a_message_that_is_too_long_is_an_error_at_both_ends() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let (buffer, long) = (world.buffer::<u64>(2)?, world.buffer::<u64>(4)?);
        let too_long = FmplError::TooLong { from: 0, to: 1, index: 3, bytes: 24, room: 16 };
        for non_blocking in [false, true] {
            if world.me() == 0 {
                let sent = match non_blocking {
                    true => world.isend(&long.slice(0..3)?, 1, 3).await?.wait().await,
                    false => world.send(&[1u64; 3], 1, 3).await,
                };
                match sent {
                    // Offered: its receive was not posted yet.
                    Err(FmplError::TooLong { from: 0, to: 1, index: 3, bytes: 24, room: 0 }) if non_blocking => {}
                    sent => assert_eq!(sent, Err(too_long.clone())),
                }
                world.send(&[7u64, 8], 1, 3).await?;
            } else {
                world.fabric().write(&buffer, &[5, 6])?;
                assert_eq!(world.recv(&buffer, 0, 3).await, Err(too_long.clone()));
                assert_eq!(read(world, &buffer, 2)?, [5, 6], "nothing was written");
                assert_eq!(world.recv(&buffer, 0, 3).await?.bytes, 16);
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_spooled_message_that_is_too_long_is_an_error_at_the_next_poll() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1000, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(16)?;
        if world.me() == 0 {
            world.send(&[1u8; 24], 1, 0).await?;
            world.send(&[2u8; 8], 1, 0).await?;
            world.send(&[3u8; 8], 1, 1).await?;
            world.send(&[4u8; 8], 1, 2).await?;
            let refused = fmpl.finalize().await;
            assert_eq!(refused, Err(FmplError::TooLong { from: 0, to: 1, index: 0, bytes: 24, room: 0 }));
            return Ok(());
        }
        // By then, all others are in the spool.
        world.recv(&buffer, 0, 2).await?;
        let refused = world.recv(&buffer, 0, 0).await;
        assert_eq!(refused, Err(FmplError::TooLong { from: 0, to: 1, index: 0, bytes: 24, room: 16 }));
        assert_eq!((world.recv(&buffer, 0, 0).await?.bytes, read(world, &buffer, 8)?), (8, vec![2; 8]));
        assert_eq!((world.recv(&buffer, 0, 1).await?.bytes, read(world, &buffer, 8)?), (8, vec![3; 8]));
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn what_is_not_there_is_named() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(16)?;
        let no_member = FmplError::NoSuchMember { member: 2, members: 2 };
        assert_eq!(world.send(&[1u8], 2, 0).await, Err(no_member.clone()));
        assert_eq!(world.recv(&buffer, 2, 0).await, Err(no_member.clone()));
        assert_eq!(world.isend(&buffer, 2, 0).await.err(), Some(no_member));
        let no_index = FmplError::NoSuchIndex { index: 8, indices: 8 };
        assert_eq!(world.send(&[1u8], 1, 8).await, Err(no_index.clone()));
        assert_eq!(world.recv(&buffer, 1, 8).await, Err(no_index));
        let other = 1 - world.me();
        let first = world.irecv(&buffer, other, 2).await?;
        let in_use = FmplError::IndexInUse { peer: other, index: 2, direction: Direction::From };
        assert_eq!(world.irecv(&buffer, other, 2).await.err(), Some(in_use));
        let sending = world.isend(&buffer, other, 3).await?;
        let in_use = FmplError::IndexInUse { peer: other, index: 3, direction: Direction::To };
        assert_eq!(world.send(&[1u8], other, 3).await, Err(in_use));
        world.send(&[1u8], other, 2).await?;
        first.wait().await?;
        world.recv(&buffer, other, 3).await?;
        sending.wait().await?;
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_dropped_receive_buffer_is_an_error_at_both_ends() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let kept = world.buffer::<u64>(1)?;
        if world.me() == 0 {
            world.recv(&kept, 1, 1).await?;
            let sent = world.send(&[1u64], 1, 0).await;
            assert!(matches!(sent, Err(FmplError::Fabric(FabricError::StaleRegion { .. }))), "{sent:?}");
            world.send(&[2u64], 1, 0).await?;
        } else {
            let buffer = world.buffer::<u64>(1)?;
            let receiving = world.irecv(&buffer, 0, 0).await?;
            drop(buffer);
            world.send(&[0u64], 0, 1).await?;
            assert_eq!(receiving.wait().await, Err(FmplError::BufferGone { from: 0, index: 0 }));
            world.recv(&kept, 0, 0).await?;
            assert_eq!(read(world, &kept, 1)?, [2]);
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn areas_run_out_where_they_are_claimed() {
    let job = Job::new(&Platform::fx100(), 5);
    job.run(&async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().peers(2).spool(1000, Duration::ZERO)).await?;
        let world = fmpl.world();
        if world.me() == 0 {
            world.send(&[1u8], 1, 0).await?;
            world.send(&[1u8], 2, 0).await?;
            let full = FmplError::TooManyPeers { member: 0, peers: 2 };
            assert_eq!(world.send(&[1u8], 3, 0).await, Err(full));
            world.send(&[1u8], 1, 1).await?;
        } else if world.me() == 1 {
            let buffer = world.buffer::<u8>(1)?;
            world.recv(&buffer, 0, 1).await?;
            world.recv(&buffer, 0, 0).await?;
        } else if world.me() == 2 {
            world.recv(&*world.buffer::<u8>(1)?, 0, 0).await?;
        }
        Ok(fmpl.finalize().await?)
    })
    .expect("no rank fails");
}

#[test]
fn options_out_of_range_are_named() {
    for (options, option) in [
        (Options::default().indices(0), "indices"),
        (Options::default().any_indices(33), "any_indices"),
        (Options::default().peers(0), "peers"),
    ] {
        Job::new(&Platform::fx100(), 1)
            .run(&async |fabric: Fabric| -> ProgramResult<()> {
                let refused = Fmpl::init_with(&fabric, options.clone()).await.err();
                assert!(matches!(refused, Some(FmplError::Option { option: named, .. }) if named == option));
                Ok(())
            })
            .expect("no rank fails");
    }
}

#[test]
fn an_algorithm_is_chosen_for_any_number_of_elements() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        for elements in [usize::MAX, usize::MAX / 4 + 1, 1 << 62, 1 << 40] {
            for to_all in [false, true] {
                assert_eq!(world.reduction_algorithm::<i32>(to_all, Op::Sum, elements)?, Algorithm::Tree);
                assert_eq!(world.reduction_algorithm::<[f64; 2]>(to_all, Op::AbsMax, elements)?, Algorithm::Tree);
            }
        }
        Ok(fmpl.finalize().await?)
    });
}
