//! Members that continue when others are lost.

use crate::harness::{read, survivors};
use checks::watchdog::watch_test;
use fmpl::{Fmpl, FmplError, Options};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

/// Each surviving member sends this many messages.
const MESSAGES: u64 = 20;

fn is_loss_of(error: &FmplError, member: usize) -> bool {
    *error == FmplError::Fabric(FabricError::PeerLost { rank: Rank::new(member as u32) })
}

/// Returns other errors than the loss of a member.
fn unless_lost(outcome: fmpl::Result<()>, member: usize) -> fmpl::Result<()> {
    outcome.or_else(|error| if is_loss_of(&error, member) { Ok(()) } else { Err(error) })
}

#[test]
fn a_receiver_of_any_sender_continues_without_a_lost_member() {
    let outs = survivors(4, &async |fabric: Fabric| -> ProgramResult<u64> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 14, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        match world.me() {
            0 => {}
            // It has sent a message, and a message was sent to it. All members have started.
            1 => {
                for from in [0, 2, 3] {
                    world.recv(&buffer, from, 0).await?;
                }
                world.send_any(&[0u64], 0, 0).await?;
                return Err("lost on purpose".into());
            }
            me => {
                // Its receiver may be lost before the send completes.
                unless_lost(world.send(&[7u64], 1, 0).await, 1)?;
                for n in 1..=MESSAGES {
                    fabric.sleep(Duration::from_micros(50)).await;
                    world.send_any(&[n * me as u64], 0, 0).await?;
                }
                world.recv(&buffer, 0, 0).await?;
                return Ok(0);
            }
        }
        for _ in 0..2 {
            unless_lost(world.send(&[7u64], 1, 0).await, 1)?;
        }
        let (mut sum, mut last, mut errors, mut cut) = (0, 0, 0, 0);
        while last < 2 {
            match world.recv_any(&buffer, 0).await {
                Ok(received) => {
                    let value = read(world, &buffer, 1)?[0];
                    sum += if received.from == 1 { 0 } else { value };
                    last += usize::from(received.from > 1 && value == MESSAGES * received.from as u64);
                }
                // It has dropped its message.
                Err(FmplError::Cut { from: 1, index: 0, missing: 8 }) => cut += 1,
                Err(error) => {
                    assert!(is_loss_of(&error, 1), "{error}");
                    assert_eq!(world.acknowledge_losses()?, [1]);
                    errors += 1;
                }
            }
        }
        assert!(errors <= 1 && cut <= 1, "acknowledged {errors} times, cut {cut} times");
        // Its loss may not be known yet.
        while world.acknowledge_losses()? != [1] {
            fabric.sleep(Duration::from_micros(50)).await;
        }
        // Operations that specify the lost member still fail.
        let sent = world.send(&[7u64], 1, 0).await.err();
        assert!(sent.as_ref().is_some_and(|error| is_loss_of(error, 1)), "{sent:?}");
        let received = world.recv(&buffer, 1, 0).await.err();
        assert!(received.as_ref().is_some_and(|error| is_loss_of(error, 1)), "{received:?}");
        for to in [2, 3] {
            world.send(&[1u64], to, 0).await?;
        }
        // Messages to the lost member are not waited for.
        world.all_fetched().await?;
        Ok(sum)
    });
    let expected = (2 + 3) * MESSAGES * (MESSAGES + 1) / 2;
    assert_eq!(outs, [Some(expected), None, Some(0), Some(0)]);
}

/// A member that notices the loss first ends, and drops its memory, before others meet it at the end.
#[test]
fn a_loss_is_named_at_the_end_although_others_have_left() {
    watch_test();
    for seed in 0..100 {
        let job = Job::new(&Platform::fx100(), 4).seed(seed).jitter(Duration::from_micros(30)).shuffle_ties(true);
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let mut fmpl = Fmpl::init(&fabric).await?;
            let me = fmpl.world().me();
            let some = fmpl.create(Some(0), me as u64).await?.ok_or("all are members")?;
            if me == 3 {
                fabric.sleep(Duration::from_micros(1000 + seed)).await;
                return Err("lost on purpose".into());
            }
            // Member 0 comes last, and first writes to member 1, which has noticed the loss.
            fabric.sleep(Duration::from_micros(1100 - 150 * me as u64)).await;
            match some.finish().await {
                Err(error) if is_loss_of(&error, 3) => Ok(()),
                other => Err(format!("{other:?}").into()),
            }
        };
        let (run, _) = job.run_through(&program).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(run.outs, [Some(()), Some(()), Some(()), None], "seed {seed}");
    }
}

#[test]
fn without_other_members_no_message_can_come() {
    let outs = survivors(3, &async |fabric: Fabric| -> ProgramResult<usize> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 14, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        let others: Vec<usize> = (0..3).filter(|other| *other != world.me()).collect();
        // All have begun.
        for to in &others {
            world.send(&[0u64], *to, 0).await?;
        }
        for from in others {
            world.recv(&buffer, from, 0).await?;
        }
        if world.me() > 0 {
            // Its messages to the other member are received, unless that one is lost.
            let _ = world.all_fetched().await;
            return Err("lost on purpose".into());
        }
        let mut errors = 0;
        let none = loop {
            match world.recv_any(&buffer, 0).await {
                Err(FmplError::Fabric(FabricError::PeerLost { .. })) => errors += 1,
                other => break other,
            }
            match world.acknowledge_losses() {
                Ok(lost) => assert_eq!(lost.len(), 1, "{lost:?}"),
                Err(error) => assert_eq!(error, FmplError::NoneLeft { lost: 2 }),
            }
        };
        assert_eq!(none, Err(FmplError::NoneLeft { lost: 2 }));
        Ok(usize::from(errors > 0))
    });
    assert_eq!(outs, [Some(1), None, None]);
}
