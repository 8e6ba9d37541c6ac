//! Messages whose receives are posted.

use crate::harness::{everywhere, pattern, read};
use fmpl::{Fmpl, Options, Received};
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;

const SIZES: [usize; 9] = [0, 1, 8, 63, 64, 65, 1000, 4096, 300_000];

#[test]
fn a_message_arrives_whatever_its_length() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(300_000)?;
        for round in 0..2 {
            for (seed, bytes) in SIZES.into_iter().enumerate() {
                let index = seed % 3;
                if world.me() == round {
                    world.send(&pattern(seed, bytes), 1 - round, index).await?;
                } else {
                    let received = world.recv(&buffer, round, index).await?;
                    assert_eq!(received, Received { from: round, index, bytes });
                    assert!(read(world, &buffer, bytes)? == pattern(seed, bytes), "{bytes} bytes");
                }
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn receives_are_posted_in_any_order_and_waited_for_in_any_order() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let (me, next, before) = (world.me(), (world.me() + 1) % 3, (world.me() + 2) % 3);
        for round in 0..5usize {
            let buffers: Vec<_> = (0..8).map(|_| world.buffer::<u64>(2)).collect::<Result<_, _>>()?;
            let mut receiving = Vec::new();
            for n in 0..8 {
                let index = (n * 3 + round) % 8;
                receiving.push((index, world.irecv(&buffers[index], before, index).await?));
            }
            for n in 0..8 {
                let index = (n * 5 + round) % 8;
                world.send(&[(100 * me + index) as u64, round as u64], next, index).await?;
            }
            while !receiving.is_empty() {
                let (index, posted) = receiving.swap_remove(round % receiving.len());
                assert_eq!(posted.wait().await?, Received { from: before, index, bytes: 16 });
                assert_eq!(read(world, &buffers[index], 2)?, [(100 * before + index) as u64, round as u64]);
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn all_exchange_without_waiting_for_each_other() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let mine = world.buffer::<u64>(1000)?;
        world.fabric().write(&mine, &[world.me() as u64; 1000])?;
        for round in 0..3 {
            let mut sending = Vec::new();
            for to in 0..4 {
                sending.push(world.isend(&mine, to, round % 2).await?);
            }
            let theirs = world.buffer::<u64>(1000)?;
            // No member waits for its sends before it has received everything.
            for from in (0..4).rev() {
                assert_eq!(world.recv(&theirs, from, round % 2).await?.bytes, 8000);
                assert_eq!(read(world, &theirs, 1000)?, [from as u64; 1000]);
            }
            for sending in sending {
                sending.wait().await?;
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn messages_of_two_communicators_never_meet() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
        let me = fmpl.world().me();
        let none = fmpl.create((me < 2).then_some(7), 0).await?;
        assert_eq!(none.is_some(), me < 2);
        let half = fmpl.create(Some((me % 2) as u64), (10 - me) as u64).await?.expect("all join one");
        assert_eq!((half.len(), half.me()), (2, 1 - me / 2), "numbered by the order given");
        let (in_world, in_half) = (fmpl.world().buffer::<u64>(1)?, half.buffer::<u64>(1)?);
        let other = (me + 2) % 4;
        fmpl.world().send(&[1u64], other, 0).await?;
        half.send(&[2u64], 1 - half.me(), 0).await?;
        half.recv(&in_half, 1 - half.me(), 0).await?;
        fmpl.world().recv(&in_world, other, 0).await?;
        assert_eq!((read(&half, &in_half, 1)?, read(fmpl.world(), &in_world, 1)?), (vec![2], vec![1]));
        half.finish().await?;
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_receive_that_was_dropped_loses_its_message_and_no_other() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        if world.me() == 0 {
            for n in 0..4u64 {
                world.send(&[n], 1, 0).await?;
            }
        } else {
            drop(world.irecv(&buffer, 0, 0).await?);
            for n in 1..4 {
                world.recv(&buffer, 0, 0).await?;
                assert_eq!(read(world, &buffer, 1)?, [n]);
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_send_to_oneself_needs_a_receive_or_a_spool() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(100, Duration::from_millis(1))).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u32>(3)?;
        for posted in [true, false, true] {
            let before = if posted { Some(world.irecv(&buffer, 0, 1).await?) } else { None };
            world.send(&[3u32, 1, 4], 0, 1).await?;
            let received = match before {
                Some(receiving) => receiving.wait().await?,
                None => world.recv(&buffer, 0, 1).await?,
            };
            assert_eq!((received.bytes, read(world, &buffer, 3)?), (12, vec![3, 1, 4]));
        }
        Ok(fmpl.finalize().await?)
    });
}
