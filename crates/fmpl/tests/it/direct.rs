//! Receives of any index that the sender matches.

use crate::harness::{everywhere, machines, pattern, read, survivors};
use fmpl::{Fmpl, FmplError, Options};
use rdma_fabric::{
    Fabric, FabricError, ProgramResult,
    join::{join, now},
};
use std::{pin::pin, time::Duration};
use tofu2_sim::virt::{Job, Platform};

#[test]
fn an_explicit_receive_takes_its_message_whatever_was_posted_first() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let (any, at) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
        for round in 0..10u64 {
            if world.me() == 0 {
                world.barrier().await?;
                // Without a spool each send waits for its receive.
                world.send(&[round], 1, 5).await?;
                world.send(&[round + 100], 1, 2).await?;
            } else {
                let (first, second);
                if round % 2 == 0 {
                    first = world.irecv_any_index_direct(&any, 0).await?;
                    second = world.irecv(&at, 0, 5).await?;
                } else {
                    second = world.irecv(&at, 0, 5).await?;
                    first = world.irecv_any_index_direct(&any, 0).await?;
                }
                world.barrier().await?;
                assert_eq!((first.wait().await?.index, second.wait().await?.index), (2, 5));
                assert_eq!((read(world, &at, 1)?, read(world, &any, 1)?), (vec![round], vec![round + 100]));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// Messages that were sent earlier, and those that use the header, mixed with explicit receives and
/// with receives of the other form, are each received once and in order.
#[test]
fn all_forms_share_a_spool() {
    for (bytes, micros) in [(1 << 14, 0), (1 << 14, 3), (128, 0)] {
        everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
            let options = Options::default().spool(bytes, Duration::from_micros(micros));
            let fmpl = Fmpl::init_with(&fabric, options).await?;
            let world = fmpl.world();
            let (buffer, mine) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
            let mut next = [0u64; 4];
            for n in 0..160usize {
                let index = n * 7 % 4;
                if world.me() == 0 {
                    if n % 11 == 0 {
                        fabric.sleep(Duration::from_micros(15)).await;
                    }
                    if n % 5 == 0 {
                        world.fabric().write(&mine, &[next[index]])?;
                        world.isend(&mine, 1, index).await?.wait().await?;
                    } else {
                        world.send(&[next[index]], 1, index).await?;
                    }
                    next[index] += 1;
                } else {
                    if n % 13 == 0 {
                        fabric.sleep(Duration::from_micros(20)).await;
                    }
                    let received = match n % 3 {
                        0 if n % 2 == 0 => world.irecv_any_index(&buffer, 0).await?.wait().await?,
                        _ => world.irecv_any_index_direct(&buffer, 0).await?.wait().await?,
                    };
                    assert_eq!(read(world, &buffer, 1)?, [next[received.index]], "index {}", received.index);
                    next[received.index] += 1;
                }
            }
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn two_receives_are_matched_in_the_order_posted() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffers = [world.buffer::<u64>(1)?, world.buffer::<u64>(1)?, world.buffer::<u64>(1)?];
        for round in 0..5u64 {
            if world.me() == 0 {
                for n in 0..3 {
                    world.send(&[3 * round + n], 1, (4 - n) as usize).await?;
                }
            } else {
                let [one, two, three] = &buffers;
                let first = world.irecv_any_index_direct(one, 0).await?;
                let second = world.irecv_any_index_direct(two, 0).await?;
                let third = world.irecv_any_index_direct(three, 0).await?;
                let (last, both) = join(third.wait(), join(second.wait(), first.wait())).await;
                assert_eq!((both.1?.index, both.0?.index, last?.index), (4, 3, 2));
                for (n, buffer) in buffers.iter().enumerate() {
                    assert_eq!(read(world, buffer, 1)?, [3 * round + n as u64]);
                }
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// The offered message has a receive of its own, which is not awaited yet, so the receive of any index
/// posts another header.
#[test]
fn an_offer_to_another_receive_does_not_block_a_synchronous_sender() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let (mine, any, at) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
        for round in 0..5u64 {
            if world.me() == 0 {
                world.fabric().write(&mine, &[round])?;
                let sending = world.isend(&mine, 1, 0).await?;
                world.send(&[round + 50], 1, 1).await?;
                sending.wait().await?;
            } else {
                fabric.sleep(Duration::from_micros(30 * (round % 2))).await;
                let explicit = world.irecv(&at, 0, 0).await?;
                let received = world.irecv_any_index_direct(&any, 0).await?.wait().await?;
                assert_eq!((received.index, read(world, &any, 1)?), (1, vec![round + 50]));
                explicit.wait().await?;
                assert_eq!(read(world, &at, 1)?, [round]);
            }
            world.barrier().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

/// The first message is for the receive of its index, for whose completion the other one waits, although
/// it is polled first.
#[test]
fn a_receive_continues_when_another_one_completes() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 12, Duration::ZERO)).await?;
        let world = fmpl.world();
        let (any, at) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
        for round in 0..5u64 {
            if world.me() == 0 {
                world.send(&[round], 1, 0).await?;
                world.send(&[round + 50], 1, 0).await?;
                world.barrier().await?;
            } else {
                world.barrier().await?;
                let direct = world.irecv_any_index_direct(&any, 0).await?;
                let explicit = world.irecv(&at, 0, 0).await?;
                let (direct, explicit) = join(direct.wait(), explicit.wait()).await;
                assert_eq!((direct?.index, explicit?.index), (0, 0));
                assert_eq!((read(world, &at, 1)?, read(world, &any, 1)?), (vec![round], vec![round + 50]));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_message_that_is_too_long_is_an_error_at_both_ends() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(10)?;
        let too_long = FmplError::TooLong { from: 0, to: 1, index: 3, bytes: 11, room: 10 };
        if world.me() == 0 {
            assert_eq!(world.send(&[0u8; 11], 1, 3).await, Err(too_long));
            world.send(&pattern(1, 10), 1, 3).await?;
        } else {
            assert_eq!(world.irecv_any_index_direct(&buffer, 0).await?.wait().await, Err(too_long));
            world.irecv_any_index_direct(&buffer, 0).await?.wait().await?;
            assert!(read(world, &buffer, 10)? == pattern(1, 10));
        }
        Ok(fmpl.finalize().await?)
    });
}

/// A receive that was dropped takes the message that uses its header; later ones are not affected.
#[test]
fn a_dropped_receive_leaves_a_sound_state() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let (lost, buffer) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
        for round in 0..5u64 {
            if world.me() == 0 {
                world.barrier().await?;
                // The first send is dropped before it has done anything: it is not sent.
                drop(world.send(&[99u64], 1, 0));
                world.send(&[round], 1, 1).await?;
                world.send(&[round + 10], 1, 2).await?;
            } else {
                drop(world.irecv_any_index_direct(&lost, 0).await?);
                let mut waits = pin!(async { world.irecv_any_index_direct(&buffer, 0).await?.wait().await });
                assert!(now(waits.as_mut()).is_none(), "nothing was sent");
                world.barrier().await?;
                assert_eq!((waits.await?.index, read(world, &buffer, 1)?), (2, vec![round + 10]));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn the_loss_of_either_end_is_an_error() {
    for lost in [0, 1] {
        let outs = survivors(2, &async |fabric: Fabric| -> ProgramResult<bool> {
            let fmpl = Fmpl::init(&fabric).await?;
            let world = fmpl.world();
            let buffer = world.buffer::<u64>(1)?;
            world.barrier().await?;
            if world.me() == lost {
                // The other one leaves the barrier, and waits.
                fabric.sleep(Duration::from_millis(50)).await;
                return Err("lost on purpose".into());
            }
            let outcome = match world.me() {
                0 => world.send(&[1u64], 1, 0).await,
                _ => match world.irecv_any_index_direct(&buffer, 0).await {
                    Ok(receiving) => receiving.wait().await.map(drop),
                    Err(error) => Err(error),
                },
            };
            Ok(matches!(outcome, Err(FmplError::Fabric(FabricError::PeerLost { .. }))))
        });
        assert_eq!(outs[1 - lost], Some(true));
    }
}

/// A message to a posted receive takes a header, a body and a flag, and nothing is fetched or copied.
#[test]
fn there_is_no_copy() {
    const BYTES: usize = 100_000;
    let run = |machine: &Platform, messages: usize, explicit: bool| {
        let program = async |fabric: Fabric| -> ProgramResult<Duration> {
            let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 20, Duration::from_secs(1))).await?;
            let world = fmpl.world();
            let buffer = world.buffer::<u8>(BYTES)?;
            world.barrier().await?;
            let begun = fabric.now();
            for n in 0..messages {
                if world.me() == 0 {
                    world.send(&pattern(n, BYTES), 1, n % 4).await?;
                } else if explicit {
                    world.recv(&buffer, 0, n % 4).await?;
                } else {
                    assert_eq!(world.irecv_any_index_direct(&buffer, 0).await?.wait().await?.index, n % 4);
                    assert!(read(world, &buffer, BYTES)? == pattern(n, BYTES));
                }
            }
            let took = fabric.now() - begun;
            fmpl.finalize().await?;
            Ok(took)
        };
        let run = Job::new(machine, 2).count_ops(true).run(&program).expect("no rank fails");
        let ops = run.ops_by_rank.expect("they are counted");
        let counts: Vec<_> = ops.iter().map(|ops| (ops.puts, ops.gets)).collect();
        (counts, run.outs[1])
    };
    for (name, machine) in machines() {
        // The first message of an index may need more.
        let (few, _) = run(&machine, 8, false);
        let (many, took) = run(&machine, 28, false);
        assert_eq!(many[0].0 - few[0].0, 2 * 20, "{name}: body and flag");
        assert_eq!(many[1].0 - few[1].0, 20, "{name}: header");
        assert_eq!([many[0].1 - few[0].1, many[1].1 - few[1].1], [0, 0], "{name}: nothing is fetched");
        // A copy into the spool would take longer.
        let (_, explicit) = run(&machine, 28, true);
        assert!(took < explicit * 11 / 10, "{name}: {took:?}, {explicit:?} by explicit receives");
    }
}
