//! Receives of any index, or from any sender.

use crate::harness::{everywhere, pattern, read};
use fmpl::{Fmpl, FmplError, Options};
use rdma_fabric::{Fabric, ProgramResult, join::join};
use std::time::Duration;

#[test]
fn any_index_takes_what_no_other_receive_takes() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let (any, at) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
        for round in 0..5u64 {
            if world.me() == 0 {
                // Without a spool these wait for their receives.
                world.send(&[round], 1, 2).await?;
                world.send(&[round + 10], 1, 5).await?;
                world.send(&[round + 20], 1, 2).await?;
            } else {
                let first = world.irecv_any_index(&any, 0).await?;
                let second = world.irecv(&at, 0, 5).await?;
                let received = first.wait().await?;
                assert_eq!((received.index, read(world, &any, 1)?), (2, vec![round]));
                second.wait().await?;
                assert_eq!(read(world, &at, 1)?, [round + 10]);
                let third = world.irecv_any_index(&any, 0).await?.wait().await?;
                assert_eq!((third.index, read(world, &any, 1)?), (2, vec![round + 20]));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn receives_of_any_index_are_served_in_order() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let mine = world.buffer::<u64>(1)?;
        world.fabric().write(&mine, &[9])?;
        let buffers = [world.buffer::<u64>(1)?, world.buffer::<u64>(1)?, world.buffer::<u64>(1)?];
        if world.me() == 0 {
            for n in 0..2u64 {
                world.send(&[n], 1, 2 + n as usize).await?;
                // Messages with different indices may overtake each other in transit.
                world.fabric().sleep(Duration::from_micros(20)).await;
            }
            world.isend(&mine, 1, 4).await?.wait().await?;
        } else {
            let dropped = world.irecv_any_index(&mine, 0).await?;
            let first = world.irecv_any_index(&buffers[0], 0).await?;
            let second = world.irecv_any_index(&buffers[1], 0).await?;
            drop(dropped);
            let (second, first) = join(second.wait(), first.wait()).await;
            assert_eq!((first?.index, second?.index), (2, 3));
            assert_eq!((read(world, &buffers[0], 1)?, read(world, &buffers[1], 1)?), (vec![0], vec![1]));
            assert_eq!(world.irecv_any_index(&buffers[2], 0).await?.wait().await?.index, 4);
            assert_eq!(read(world, &buffers[2], 1)?, [9]);
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn any_index_and_explicit_ones_share_a_spool() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 14, Duration::from_micros(3))).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        let mut next = [0u64; 4];
        for n in 0..120usize {
            let index = n * 7 % 4;
            if world.me() == 0 {
                world.send(&[next[index]], 1, index).await?;
                next[index] += 1;
            } else {
                let received = match n % 3 {
                    0 => world.irecv_any_index(&buffer, 0).await?.wait().await?,
                    // One of those that have not all been received.
                    _ => {
                        let left = (0..4).min_by_key(|index| next[*index]).expect("four");
                        world.recv(&buffer, 0, left).await?
                    }
                };
                assert_eq!(read(world, &buffer, 1)?, [next[received.index]], "index {}", received.index);
                next[received.index] += 1;
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// A server: each of the other members sends several requests; none is lost or duplicated.
#[test]
fn a_server_receives_from_all() {
    for spool in [false, true] {
        everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
            let options = Options::default();
            let options = if spool { options.spool(1 << 14, Duration::ZERO) } else { options };
            let fmpl = Fmpl::init_with(&fabric, options).await?;
            let world = fmpl.world();
            let (buffer, answer) = (world.buffer::<u8>(500)?, world.buffer::<usize>(1)?);
            if world.me() > 0 {
                for n in 0..20 {
                    world.send_any(&pattern(n, 100 * world.me() + n), 0, 1).await?;
                    world.recv(&answer, 0, n % 3).await?;
                    assert_eq!(read(world, &answer, 1)?, [n]);
                }
                return Ok(fmpl.finalize().await?);
            }
            let mut heard = [0; 4];
            for _ in 0..60 {
                let received = world.recv_any(&buffer, 1).await?;
                let n = heard[received.from];
                assert_eq!((received.index, received.bytes), (1, 100 * received.from + n));
                assert!(read(world, &buffer, received.bytes)? == pattern(n, received.bytes));
                world.send(&[n], received.from, n % 3).await?;
                heard[received.from] += 1;
            }
            assert_eq!(heard, [0, 20, 20, 20]);
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn messages_to_unknown_senders_receives_are_a_domain_of_their_own() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 14, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        if world.me() == 0 {
            world.send(&[1u64], 1, 0).await?;
            world.send_any(&[2u64], 1, 1).await?;
            world.send_any(&[3u64], 1, 0).await?;
            world.send_any(&[4u64; 2], 1, 0).await?;
            let refused = fmpl.finalize().await;
            assert_eq!(refused, Err(FmplError::TooLong { from: 0, to: 1, index: 0, bytes: 16, room: 0 }));
            return Ok(());
        }
        assert_eq!(world.recv_any(&buffer, 2).await, Err(FmplError::NoSuchIndex { index: 2, indices: 2 }));
        for (index, value) in [(0, 3), (1, 2)] {
            assert_eq!(world.recv_any(&buffer, index).await?.index, index);
            assert_eq!(read(world, &buffer, 1)?, [value]);
        }
        let too_long = FmplError::TooLong { from: 0, to: 1, index: 0, bytes: 16, room: 8 };
        assert_eq!(world.recv_any(&buffer, 0).await, Err(too_long));
        world.recv(&buffer, 0, 0).await?;
        assert_eq!(read(world, &buffer, 1)?, [1]);
        Ok(fmpl.finalize().await?)
    });
}
