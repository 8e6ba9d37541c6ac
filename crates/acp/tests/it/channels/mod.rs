//! Channels: pairing, order, long messages, truncation, freeing, and errors.

mod failures;
mod random;
mod tasks;

use crate::harness::everywhere;
use acp::{Acp, AcpError, Arrival, ChannelOptions, Options, Receiver, Request, Sender};
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank, join::join_all};
use std::time::Duration;

fn with(channels: ChannelOptions) -> Options {
    Options::default().channels(channels)
}

fn whole(bytes: usize) -> Arrival {
    Arrival { bytes, dropped: 0 }
}

fn others(acp: &Acp) -> impl Iterator<Item = Rank> + use<> {
    let me = acp.rank();
    (0..acp.ranks() as u32).map(Rank::new).filter(move |rank| *rank != me)
}

async fn free_all(senders: Vec<Sender>, receivers: Vec<Receiver>) -> acp::Result<()> {
    let freeing = senders.into_iter().map(Sender::free).chain(receivers.into_iter().map(Receiver::free));
    Request::wait_all(freeing.collect::<Vec<_>>()).await.map(drop)
}

#[test]
fn a_message_comes_as_it_was_sent() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        if acp.rank().number() == 0 {
            let sender = acp.sender(Rank::new(1))?;
            sender.send(&[1u32, 2, 3]).await?;
            sender.send::<u8>(&[]).await?;
            let long: Vec<u64> = (0..5000).collect();
            sender.send(&long).await?;
            sender.free().await?;
        } else {
            let receiver = acp.receiver(Rank::new(0))?;
            let mut short = [9u32; 5];
            assert_eq!(receiver.recv(&mut short).await?, whole(12));
            assert_eq!(short, [1, 2, 3, 9, 9]);
            assert_eq!(receiver.recv(&mut short).await?, whole(0));
            let mut long = vec![0u64; 5000];
            assert_eq!(receiver.recv(&mut long).await?, whole(40_000));
            assert!(long.iter().zip(0..).all(|(there, sent)| *there == sent));
            let end = receiver.recv(&mut short).await;
            assert_eq!(end, Err(AcpError::Disconnected { peer: Rank::new(0) }));
            receiver.free().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// Each rank creates its ends in a different order, and sends immediately.
#[test]
fn the_kth_end_meets_the_kth_end() {
    const EACH: usize = 5;
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let options = with(ChannelOptions { table_entries: 2, ..ChannelOptions::default() });
        let acp = Acp::init_with(&fabric, options).await?;
        let me = acp.rank().number() as usize;
        let mut plan: Vec<(Rank, bool)> = others(&acp).flat_map(|peer| [(peer, true), (peer, false)]).collect();
        plan = plan.repeat(EACH);
        Rng::with_seed(me as u64).shuffle(&mut plan);
        let (mut senders, mut receivers, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        for (peer, sends) in plan {
            if sends {
                let number = senders.iter().filter(|sender: &&Sender| sender.peer() == peer).count();
                let sender = acp.sender(peer)?;
                sent.push(sender.post(vec![me as u8, number as u8]));
                senders.push(sender);
            } else {
                receivers.push(acp.receiver(peer)?);
            }
            fabric.sleep(Duration::from_micros(3)).await;
        }
        for (at, receiver) in receivers.iter().enumerate().rev() {
            let peer = receiver.peer();
            let number = receivers[..at].iter().filter(|receiver| receiver.peer() == peer).count();
            let mut message = [0u8; 2];
            receiver.recv(&mut message).await?;
            assert_eq!(message, [peer.number() as u8, number as u8]);
        }
        Request::wait_all(sent).await?;
        free_all(senders, receivers).await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn bytes_that_do_not_fit_are_dropped_and_counted() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, with(ChannelOptions { slot_bytes: 100, ..Default::default() })).await?;
        let message: Vec<u8> = (0..10_000u32).map(|at| at as u8).collect();
        if acp.rank().number() == 0 {
            let sender = acp.sender(Rank::new(1))?;
            for _ in 0..4 {
                sender.send(&message).await?;
            }
            sender.send(&[7u8]).await?;
            sender.free().await?;
        } else {
            let receiver = acp.receiver(Rank::new(0))?;
            for room in [0, 99, 150, 9_999] {
                let (buffer, arrival) = receiver.post(vec![1; room]).await?;
                assert_eq!(arrival, Arrival { bytes: room, dropped: 10_000 - room as u64 });
                assert_eq!(buffer, message[..room]);
            }
            let (buffer, arrival) = receiver.post(vec![3; 3]).await?;
            assert_eq!((buffer, arrival), (vec![7, 3, 3], whole(1)));
            receiver.free().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn freeing_lets_queued_messages_pass() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        if acp.rank().number() == 0 {
            let sender = acp.sender(Rank::new(1))?;
            let posted: Vec<_> = (0..20u8).map(|at| sender.post(vec![at; 5000])).collect();
            drop(posted);
            let raw = sender.into_raw();
            let freed = acp.sender_from_raw(raw)?.free();
            assert!(matches!(acp.sender_from_raw(raw), Err(AcpError::NoSuchChannel { number }) if number == raw));
            freed.await?;
            assert!(matches!(acp.sender_from_raw(raw), Err(AcpError::NoSuchChannel { .. })));
        } else {
            let receiver = acp.receiver(Rank::new(0))?;
            // The first message has already been received, receives for three are already posted,
            // and the others are dropped.
            let (buffer, _) = receiver.post(vec![9; 5000]).await?;
            assert_eq!(buffer, [0; 5000]);
            let asked: Vec<_> = (0..3).map(|_| receiver.post(vec![9; 5000])).collect();
            let freed = receiver.free();
            for (at, (buffer, arrival)) in (1..).zip(Request::wait_all(asked).await?) {
                assert_eq!((arrival, buffer), (whole(5000), vec![at; 5000]));
            }
            freed.await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn six_ranks_all_to_all() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<u64> {
        let options = with(ChannelOptions { table_entries: 1, ..ChannelOptions::default() });
        let acp = Acp::init_with(&fabric, options).await?;
        let me = u64::from(acp.rank().number());
        let senders: Vec<Sender> = others(&acp).map(|peer| acp.sender(peer)).collect::<Result<_, _>>()?;
        let receivers: Vec<Receiver> = others(&acp).map(|peer| acp.receiver(peer)).collect::<Result<_, _>>()?;
        let mut sum = 0;
        for round in 0..5u64 {
            let sent = senders.iter().map(|sender| {
                let word = me * 100 + u64::from(sender.peer().number()) + round;
                sender.post(word.to_ne_bytes().repeat(1000))
            });
            let sent: Vec<_> = sent.collect();
            let arrived = join_all(receivers.iter().map(|receiver| receiver.post(vec![0; 8000]))).await;
            for (receiver, arrived) in receivers.iter().zip(arrived) {
                let (buffer, _) = arrived?;
                let word = u64::from(receiver.peer().number()) * 100 + me + round;
                assert_eq!(buffer, word.to_ne_bytes().repeat(1000));
                sum += word;
            }
            Request::wait_all(sent).await?;
        }
        free_all(senders, receivers).await?;
        acp.finalize().await?;
        Ok(sum)
    });
}
