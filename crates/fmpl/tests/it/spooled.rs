//! Messages that wait in their sender's memory.

use crate::harness::{everywhere, pattern, read};
use fmpl::{Fmpl, Options, Spooled};
use rdma_fabric::{Fabric, Group, ProgramResult, join::join};
use std::time::Duration;

#[test]
fn everyone_sends_first() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(2 << 20, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(200_000)?;
        let others: Vec<usize> = (0..3).filter(|other| *other != world.me()).collect();
        for to in &others {
            for n in 0..3 {
                world.send(&pattern(world.me() + n, 200_000), *to, n % 2).await?;
            }
        }
        for from in others {
            for n in [1, 0, 2] {
                assert_eq!(world.recv(&buffer, from, n % 2).await?.bytes, 200_000);
                assert!(read(world, &buffer, 200_000)? == pattern(from + n, 200_000), "message {n} of {from}");
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// Without a spool, sends from registered memory continue while their rank receives.
#[test]
fn everyone_begins_to_send_first() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let me = world.me();
        let bodies = [world.buffer::<u8>(200_000)?, world.buffer::<u8>(200_000)?, world.buffer::<u8>(200_000)?];
        let buffer = world.buffer::<u8>(200_000)?;
        let others: Vec<usize> = (0..3).filter(|other| *other != me).collect();
        let mut sends = Vec::new();
        for (n, body) in bodies.iter().enumerate() {
            world.fabric().write(body, &pattern(me + n, 200_000))?;
            for to in &others {
                sends.push(world.isend(body, *to, n).await?);
            }
        }
        for from in others {
            for n in [1, 0, 2] {
                assert_eq!(world.recv(&buffer, from, n).await?.bytes, 200_000);
                assert!(read(world, &buffer, 200_000)? == pattern(from + n, 200_000), "message {n} of {from}");
            }
        }
        for send in sends {
            send.wait().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn messages_with_one_index_arrive_in_order_spooled_or_not() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 16, Duration::from_micros(5))).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(8)?;
        for n in 0..200u64 {
            if world.me() == 0 {
                if n % 7 == 0 {
                    world.fabric().sleep(Duration::from_micros(20)).await;
                }
                world.send(&[n; 8][..1 + n as usize % 8], 1, 0).await?;
            } else {
                if n % 5 == 0 {
                    world.fabric().sleep(Duration::from_micros(25)).await;
                }
                let received = world.recv(&buffer, 0, 0).await?;
                let elements = 1 + n as usize % 8;
                assert_eq!((received.bytes / 8, read(world, &buffer, elements)?), (elements, vec![n; elements]));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// The receiver must not need the sender, which makes no call for a second.
#[test]
fn a_sender_may_compute_as_long_as_it_likes() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 16, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(5000)?;
        let begun = world.fabric().now();
        if world.me() == 0 {
            for index in 0..2 {
                world.send(&pattern(index, 5000), 1, index).await?;
                world.send(&pattern(index + 5, 50), 1, index).await?;
            }
            world.send(&[1u8], 1, 2).await?;
            world.send_any(&[2u8], 1, 0).await?;
            world.fabric().sleep(Duration::from_secs(1)).await;
            let Spooled { received, waiting } = world.check_spool().await?;
            assert!(received >= 4 && waiting == 0, "{received} received, {waiting} waiting");
        } else {
            // By then, all others are in the spool.
            world.recv(&buffer, 0, 2).await?;
            assert_eq!(world.recv_any(&buffer, 0).await?.bytes, 1);
            for index in [1, 0] {
                world.recv(&buffer, 0, index).await?;
                assert!(read(world, &buffer, 5000)? == pattern(index, 5000));
                assert_eq!(world.recv(&buffer, 0, index).await?.bytes, 50);
                assert!(read(world, &buffer, 50)? == pattern(index + 5, 50));
            }
            assert!(world.fabric().now() - begun < Duration::from_millis(900), "the receiver waited for the sender");
        }
        Ok(fmpl.finalize().await?)
    });
}

/// It never fits into the spool, so it waits elsewhere, regardless of the other messages sent in
/// the meantime.
#[test]
fn a_message_for_any_receiver_may_be_longer_than_the_spool() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(512, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(5000)?;
        if world.me() == 0 {
            let (any, named) = (pattern(0, 520), pattern(1, 4000));
            let (any, named) = join(world.send_any(&any, 1, 0), world.send(&named, 1, 0)).await;
            any.and(named)?;
        } else {
            assert_eq!(world.irecv_any_index(&buffer, 0).await?.wait().await?.bytes, 4000);
            assert!(read(world, &buffer, 4000)? == pattern(1, 4000));
            assert_eq!(world.recv_any(&buffer, 0).await?.bytes, 520);
            assert!(read(world, &buffer, 520)? == pattern(0, 520));
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_spool_that_is_full_makes_sends_wait() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(5000)?;
        // The longest message doesn't fit at all, so its receive must be posted first.
        let sizes = [1000, 3000, 2000, 64, 5000, 4096, 10];
        for (n, bytes) in sizes.into_iter().enumerate() {
            if world.me() == 0 {
                world.send(&pattern(n, bytes), 1, n % 3).await?;
            } else {
                world.fabric().sleep(Duration::from_micros(100)).await;
                assert_eq!(world.recv(&buffer, 0, n % 3).await?.bytes, bytes);
                assert!(read(world, &buffer, bytes)? == pattern(n, bytes));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// A send that finds no room continues when any message has left the spool, not only the oldest.
#[test]
fn whatever_leaves_the_spool_makes_room() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(128, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(64)?;
        match world.me() {
            0 => {
                world.send(&[1u8; 64], 1, 0).await?;
                world.send_any(&[2u8; 64], 2, 0).await?;
                world.send_any(&[3u8; 64], 2, 0).await?;
            }
            // Member 1 takes the first message last.
            1 => {
                world.recv(&buffer, 2, 0).await?;
                world.recv(&buffer, 0, 0).await?;
                assert_eq!(read(world, &buffer, 1)?, [1]);
            }
            _ => {
                for value in [2, 3] {
                    world.recv_any(&buffer, 0).await?;
                    assert_eq!(read(world, &buffer, 1)?, [value]);
                }
                world.send(&[0u8], 1, 0).await?;
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// Without a spool, as many messages are buffered as receives of any index are posted.
#[test]
fn sends_to_receives_of_any_index_need_no_spool() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffers = [world.buffer::<usize>(1)?, world.buffer::<usize>(1)?, world.buffer::<usize>(1)?];
        for n in 0..20 {
            if world.me() == 0 {
                for index in [2, 2, 5] {
                    world.send(&[10 * n + index], 1, index).await?;
                }
            } else {
                let first = world.irecv_any_index(&buffers[0], 0).await?;
                let second = world.irecv_any_index(&buffers[1], 0).await?;
                let at = world.irecv(&buffers[2], 0, 5).await?;
                // Each of the other messages has a receive, but these are not awaited yet.
                at.wait().await?;
                assert_eq!((first.wait().await?.index, second.wait().await?.index), (2, 2));
                for (buffer, index) in buffers.iter().zip([2, 2, 5]) {
                    assert_eq!(read(world, buffer, 1)?, [10 * n + index]);
                }
                // The sender may not have seen this receive before it is dropped, because it posts
                // no header.
                drop(world.irecv_any_index(&buffers[0], 0).await?);
            }
            world.barrier().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

/// A slow receiver of any index does not make its sender's memory grow.
#[test]
fn a_full_spool_makes_sends_to_a_receiver_of_any_index_wait() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(64, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(300)?;
        for n in 0..40 {
            if world.me() == 0 {
                world.send(&pattern(n, 300), 1, 0).await?;
            } else {
                let received = world.irecv_any_index(&buffer, 0).await?;
                world.fabric().sleep(Duration::from_micros(50)).await;
                received.wait().await?;
                assert!(read(world, &buffer, 300)? == pattern(n, 300));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// The sender's memory stays small, and the messages stay in the caches.
#[test]
fn a_patient_sender_stays_near_its_receiver() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let patient = Options::default().spool(0, Duration::ZERO).growing(Duration::from_secs(60));
        let fmpl = Fmpl::init_with(&fabric, patient).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(1000)?;
        for n in 0..200 {
            if world.me() == 0 {
                world.send(&pattern(n, 1000), 1, 0).await?;
                let Spooled { waiting, .. } = world.check_spool().await?;
                assert!(waiting <= 2, "{waiting} wait");
            } else {
                fabric.sleep(Duration::from_micros(if n % 10 == 0 { 100 } else { 0 })).await;
                world.recv(&buffer, 0, 0).await?;
                assert!(read(world, &buffer, 1000)? == pattern(n, 1000));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn patience_is_lost_once_with_a_receiver_that_stands_still() {
    const MESSAGES: usize = 50;
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let patience = Duration::from_millis(20);
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(0, Duration::ZERO).growing(patience)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(8)?;
        let mut both = Group::world(&fabric).await?;
        if world.me() == 0 {
            let begun = fabric.now();
            for n in 0..MESSAGES {
                world.send(&[n as u8], 1, n % 3).await?;
            }
            let taken = fabric.now() - begun;
            assert!(taken >= patience && taken < patience * MESSAGES as u32 / 2, "{taken:?}");
            both.barrier().await?;
            world.all_fetched().await?;
        } else {
            both.barrier().await?;
            for n in 0..MESSAGES {
                world.recv(&buffer, 0, n % 3).await?;
                assert_eq!(read(world, &buffer, 1)?, [n as u8]);
            }
        }
        Ok(fmpl.finalize().await?)
    });
}
