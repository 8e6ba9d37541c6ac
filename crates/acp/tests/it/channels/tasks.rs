//! Several tasks of one rank, and receives that are dropped.

use super::{free_all, others, whole};
use crate::{harness::everywhere, tasks::run_apart};
use acp::{Acp, Receiver};
use core::{future::Future, pin::Pin};
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank, join::race};
use std::time::Duration;

#[test]
fn a_receive_that_is_dropped_takes_no_message() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        if acp.rank().number() == 0 {
            acp.sync().await?;
            let sender = acp.sender(Rank::new(1))?;
            sender.send(&[5u8]).await?;
            sender.free().await?;
        } else {
            let receiver = acp.receiver(Rank::new(0))?;
            let mut byte = [0u8];
            let soon = fabric.now() + Duration::from_micros(50);
            assert_eq!(fabric.before(soon, receiver.recv(&mut byte)).await, None);
            let (first, second) = (receiver.post(vec![0]), receiver.post(vec![0]));
            assert!(!first.is_complete()? && !second.is_complete()?);
            drop(first);
            acp.sync().await?;
            assert_eq!(second.await?, (vec![5], whole(1)));
            receiver.free().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// A receive that loses a race before any byte has arrived leaves its message to the next receive.
#[test]
fn a_receive_that_loses_a_race_takes_no_message() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        if acp.rank().number() == 0 {
            let [one, two] = [acp.receiver(Rank::new(1))?, acp.receiver(Rank::new(2))?];
            let go = acp.sender(Rank::new(2))?;
            let (mut first, mut second) = ([0u8; 3000], [0u8; 3000]);
            race(two.recv(&mut second), one.recv(&mut first)).await;
            assert_eq!((first[2999], second[0]), (1, 0));
            go.send(&[0u8]).await?;
            assert_eq!(two.recv(&mut second).await?, whole(3000));
            free_all(vec![go], vec![one, two]).await?;
        } else {
            let (sender, me) = (acp.sender(Rank::new(0))?, acp.rank().number() as u8);
            if me == 2 {
                let go = acp.receiver(Rank::new(0))?;
                go.recv(&mut [0u8]).await?;
            }
            sender.send(&[me; 3000]).await?;
            sender.free().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// A rank that waits for one channel also connects the others, which it does not use yet.
#[test]
fn a_wait_connects_all_channels() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let [zero, one, two] = [0, 1, 2].map(Rank::new);
        match acp.rank().number() {
            0 => {
                let (later, last) = (acp.receiver(one)?, acp.receiver(two)?);
                last.recv(&mut [0u8]).await?;
                later.recv(&mut [0u8]).await?;
                free_all(vec![], vec![later, last]).await?;
            }
            1 => {
                let go = acp.receiver(two)?;
                go.recv(&mut [0u8]).await?;
                let (sender, back) = (acp.sender(zero)?, acp.sender(two)?);
                sender.send(&[0u8]).await?;
                back.send(&[0u8]).await?;
                free_all(vec![sender, back], vec![go]).await?;
            }
            _ => {
                let (sender, go, back) = (acp.sender(zero)?, acp.sender(one)?, acp.receiver(one)?);
                while !sender.is_connected()? {
                    fabric.sleep(Duration::from_micros(5)).await;
                }
                // Rank 0 waits only for this rank's message.
                go.send(&[0u8]).await?;
                back.recv(&mut [0u8]).await?;
                sender.send(&[0u8]).await?;
                free_all(vec![sender, go], vec![back]).await?;
            }
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// The arrival of a message for one task wakes the task that polled last, which in turn wakes the
/// former.
#[test]
fn a_task_wakes_the_one_whose_message_came() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let [zero, one, two] = [0, 1, 2].map(Rank::new);
        if acp.rank() == zero {
            let (first, second, go) = (acp.receiver(one)?, acp.receiver(two)?, acp.sender(two)?);
            let [first_request, second_request] = [first.post(vec![0]), second.post(vec![0])];
            let go = &go;
            let done = run_apart::<acp::Result<()>>(vec![
                Box::pin(async move {
                    first_request.await?;
                    go.send(&[0u8]).await
                }),
                Box::pin(async move { second_request.await.map(drop) }),
            ]);
            done.await.into_iter().collect::<acp::Result<()>>()?;
        } else {
            if acp.rank() == two {
                let go = acp.receiver(zero)?;
                go.recv(&mut [0u8]).await?;
            } else {
                fabric.sleep(Duration::from_micros(300)).await;
            }
            let sender = acp.sender(zero)?;
            sender.send(&[0u8]).await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// Tasks of one rank make progress with each other's channels, and wake each other.
#[test]
fn tasks_apart_wake_each_other() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (acp, me) = (&acp, acp.rank().number());
        let fabric = &fabric;
        let idle: Receiver;
        type Task<'a> = Pin<Box<dyn Future<Output = acp::Result<()>> + 'a>>;
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for (number, peer) in others(acp).chain(others(acp)).enumerate() {
            let (sender, receiver) = (acp.sender(peer)?, acp.receiver(peer)?);
            tasks.push(Box::pin(async move {
                let mut random = Rng::with_seed(u64::from(me) << 8 | number as u64);
                for round in 0..20u32 {
                    fabric.sleep(Duration::from_micros(random.usize(..40) as u64)).await;
                    sender.send(&vec![round; 10 + random.usize(..3000)]).await?;
                }
                sender.free().await
            }));
            tasks.push(Box::pin(async move {
                let mut buffer = vec![0u32; 3010];
                for round in 0..20u32 {
                    let arrival = receiver.recv(&mut buffer).await?;
                    assert!(buffer[..arrival.bytes / 4].iter().all(|word| *word == round), "round {round}");
                }
                receiver.free().await
            }));
        }
        // No rank sends to this receiver. Its task often polls last, and then ends; the others
        // continue without it.
        idle = acp.receiver(others(acp).next().expect("there are three"))?;
        let idle = &idle;
        tasks.push(Box::pin(async move {
            let mut random = Rng::with_seed(u64::from(me));
            for _ in 0..60 {
                let soon = fabric.now() + Duration::from_micros(random.usize(..20) as u64);
                assert_eq!(fabric.before(soon, idle.recv(&mut [0u8])).await, None);
            }
            Ok(())
        }));
        for done in run_apart(tasks).await {
            done?;
        }
        acp.sync().await?;
        Ok(())
    });
}
