//! Channels: pairing, order, long messages, truncation, freeing, and errors.

use crate::{
    harness::{everywhere, in_virtual_time},
    tasks::run_apart,
};
use acp::{Acp, AcpError, Arrival, ChannelOptions, Options, Receiver, Request, Sender};
use checks::jobs::{threads, virtual_time};
use core::{future::Future, pin::Pin};
use rdma_fabric::{
    Fabric, FabricError, ProgramResult, Rank,
    join::{join, join_all, race},
};
use std::{sync::Mutex, time::Duration};
use tofu2_sim::virt::Platform;

/// Steele, Lea and Flood's SplitMix64.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn message(&mut self, most: usize) -> Vec<u8> {
        let mut message = vec![0u8; self.below(most + 1)];
        message.iter_mut().for_each(|byte| *byte = self.below(256) as u8);
        message
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64 + 1, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte))
}

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
        Dice(me as u64).shuffle(&mut plan);
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
fn random_messages_both_ways_at_once() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, peer) = (acp.rank().number(), Rank::new(1 - acp.rank().number()));
        let (sender, receiver) = (acp.sender(peer)?, acp.receiver(peer)?);
        let sending = async {
            let mut dice = Dice(u64::from(me));
            for _ in 0..30 {
                sender.send(&dice.message(100_000)).await?;
            }
            Ok::<(), AcpError>(())
        };
        let receiving = async {
            let mut dice = Dice(u64::from(peer.number()));
            let mut buffer = vec![0u8; 100_000];
            for round in 0..30 {
                let expected = dice.message(100_000);
                assert_eq!(receiver.recv(&mut buffer).await?, whole(expected.len()));
                assert_eq!(checksum(&buffer[..expected.len()]), checksum(&expected), "message {round} to {me}");
            }
            Ok::<(), AcpError>(())
        };
        let (sent, received) = join(sending, receiving).await;
        sent.and(received)?;
        free_all(vec![sender], vec![receiver]).await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn what_does_not_fit_is_dropped_and_counted() {
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

/// Random programs: channels, messages, buffers, sizes of slots and tables, and the order of all
/// requests; compared with one queue for each channel.
#[test]
fn random_programs_agree_with_queues() {
    for seed in 0..12 {
        println!("seed {seed}");
        everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> { random_program(&fabric, seed).await });
    }
}

async fn random_program(fabric: &Fabric, seed: u64) -> ProgramResult<()> {
    let mut dice = Dice(seed);
    let options = with(ChannelOptions {
        slot_bytes: 1 + dice.below(300),
        receive_slots: 1 + dice.below(5),
        send_slots: 1 + dice.below(3),
        requests: dice.below(3),
        table_entries: 1 + dice.below(3),
    });
    let acp = Acp::init_with(fabric, options).await?;
    let me = acp.rank();
    // All ranks compute the same plan: the messages of each channel, and the buffer size for each
    // message.
    let mut plan = Vec::new();
    for _ in 0..8 {
        let from = dice.below(3);
        let to = (from + 1 + dice.below(2)) % 3;
        let messages: Vec<(Vec<u8>, usize)> = (0..dice.below(12))
            .map(|_| {
                let message = dice.message(2000);
                let room = dice.below(2500);
                (message, room)
            })
            .collect();
        plan.push((Rank::new(from as u32), Rank::new(to as u32), messages));
    }
    // Each rank makes its requests in its own order, except within a channel.
    let mut dice = Dice(seed << 8 | u64::from(me.number()));
    let mut turns: Vec<usize> = Vec::new();
    for (channel, (from, to, messages)) in plan.iter().enumerate() {
        if [*from, *to].contains(&me) {
            turns.extend(std::iter::repeat_n(channel, messages.len()));
        }
    }
    dice.shuffle(&mut turns);
    let mut senders: Vec<Option<Sender>> = plan.iter().map(|_| None).collect();
    let mut receivers: Vec<Option<Receiver>> = plan.iter().map(|_| None).collect();
    for (channel, (from, to, _)) in plan.iter().enumerate() {
        match me {
            _ if me == *from => senders[channel] = Some(acp.sender(*to)?),
            _ if me == *to => receivers[channel] = Some(acp.receiver(*from)?),
            _ => {}
        }
    }
    let (mut done, mut sending, mut receiving) = (vec![0; plan.len()], Vec::new(), Vec::new());
    for channel in turns {
        let (message, room) = &plan[channel].2[done[channel]];
        done[channel] += 1;
        if let Some(sender) = &senders[channel] {
            sending.push(sender.post(message.clone()));
        } else if let Some(receiver) = &receivers[channel] {
            let expected = message[..message.len().min(*room)].to_vec();
            receiving.push((receiver.post(vec![0xee; *room]), expected, message.len()));
        }
        if dice.below(3) == 0 {
            fabric.sleep(Duration::from_nanos(dice.below(20_000) as u64)).await;
        }
    }
    dice.shuffle(&mut receiving);
    dice.shuffle(&mut sending);
    let late = sending.split_off(sending.len() / 2);
    drop(late);
    for (request, mut expected, bytes) in receiving {
        let (buffer, arrival) = request.await?;
        let dropped = (bytes - expected.len()) as u64;
        assert_eq!(arrival, Arrival { bytes: expected.len(), dropped }, "seed {seed}");
        expected.resize(buffer.len(), 0xee);
        assert_eq!(buffer, expected, "seed {seed}");
    }
    Request::wait_all(sending).await?;
    free_all(senders.into_iter().flatten().collect(), receivers.into_iter().flatten().collect()).await?;
    acp.finalize().await?;
    Ok(())
}

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
fn whoever_waits_connects_all() {
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
                let mut dice = Dice(u64::from(me) << 8 | number as u64);
                for round in 0..20u32 {
                    fabric.sleep(Duration::from_micros(dice.below(40) as u64)).await;
                    sender.send(&vec![round; 10 + dice.below(3000)]).await?;
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
            let mut dice = Dice(u64::from(me));
            for _ in 0..60 {
                let soon = fabric.now() + Duration::from_micros(dice.below(20) as u64);
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

#[test]
fn mistakes_are_named() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let small = with(ChannelOptions { table_entries: 1000, ..ChannelOptions::default() });
        assert!(matches!(Acp::init_with(&fabric, small).await, Err(AcpError::Option(_))));
        let none = with(ChannelOptions { slot_bytes: 0, ..ChannelOptions::default() });
        assert!(matches!(Acp::init_with(&fabric, none).await, Err(AcpError::Option(_))));
        let acp = Acp::init(&fabric).await?;
        let (me, peer) = (acp.rank(), Rank::new(1 - acp.rank().number()));
        assert_eq!(acp.sender(me).err(), Some(AcpError::SelfChannel { rank: me }));
        assert_eq!(acp.receiver(me).err(), Some(AcpError::SelfChannel { rank: me }));
        let nobody = Rank::new(2);
        assert_eq!(acp.sender(nobody).err(), Some(AcpError::NoSuchRank { rank: nobody, ranks: 2 }));
        assert_eq!(acp.receiver(nobody).err(), Some(AcpError::NoSuchRank { rank: nobody, ranks: 2 }));
        let (sender, receiver) = (acp.sender(peer)?, acp.receiver(peer)?);
        let number = sender.into_raw();
        assert_eq!(acp.receiver_from_raw(number).err(), Some(AcpError::WrongEnd { number }));
        assert_eq!(acp.sender_from_raw(0).err(), Some(AcpError::NoSuchChannel { number: 0 }));
        let sender = acp.sender_from_raw(number)?;
        assert_eq!(sender.peer(), peer);
        let unanswered = receiver.post(vec![]);
        acp.reset(me).await?;
        assert!(matches!(unanswered.await, Err(AcpError::NoSuchChannel { .. })));
        assert!(matches!(sender.send(&[1u8]).await, Err(AcpError::NoSuchChannel { .. })));
        // New channels work, and have other numbers.
        let (again, back) = (acp.sender(peer)?, acp.receiver(peer)?);
        again.send(&[1u8]).await?;
        back.recv(&mut [0u8]).await?;
        drop(sender);
        free_all(vec![again], vec![back]).await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// The errors on ranks 0 and 2 when rank 1 fails in the middle of a stream.
async fn with_a_failure(fabric: Fabric, met: &Mutex<Vec<AcpError>>) -> ProgramResult<()> {
    let acp = Acp::init(&fabric).await?;
    match acp.rank().number() {
        0 => {
            let unused = acp.receiver(Rank::new(1))?;
            let (to, from) = (acp.sender(Rank::new(1))?, acp.receiver(Rank::new(1))?);
            let (good, back) = (acp.sender(Rank::new(2))?, acp.receiver(Rank::new(2))?);
            let never = unused.post(vec![0; 10]);
            let mut buffer = vec![0u8; 3000];
            from.recv(&mut buffer).await?;
            let flood: Vec<_> = (0..50).map(|_| to.post(vec![0; 3000])).collect();
            let mut errors: Vec<AcpError> = never.await.err().into_iter().collect();
            // Messages sent before the failure are received after it.
            for number in [2, 3] {
                assert_eq!(from.recv(&mut buffer).await?, whole(3000));
                assert_eq!(buffer[2999], number);
            }
            errors.extend(from.recv(&mut buffer).await.err());
            errors.extend(join_all(flood).await.into_iter().filter_map(Result::err).next_back());
            errors.extend(to.send(&[1u8]).await.err());
            errors.extend(to.free().await.err());
            met.lock().expect("nobody panics").extend(errors);
            good.send(&[1u8; 5000]).await?;
            back.recv(&mut buffer).await?;
            free_all(vec![good], vec![back]).await?;
        }
        1 => {
            let (to, from) = (acp.sender(Rank::new(0))?, acp.receiver(Rank::new(0))?);
            // It connects with the second receiver of rank 0, as it is the second sender.
            let second = acp.sender(Rank::new(0))?;
            second.send(&[1u8; 3000]).await?;
            second.send(&[2u8; 3000]).await?;
            second.send(&[3u8; 3000]).await?;
            from.recv(&mut [0u8; 3000]).await?;
            // Fails abruptly, without disconnecting.
            let _ = (to.into_raw(), second.into_raw(), from.into_raw());
            Err("this rank fails")?;
        }
        _ => {
            let (back, good) = (acp.sender(Rank::new(0))?, acp.receiver(Rank::new(0))?);
            good.recv(&mut [0u8; 5000]).await?;
            back.send(&[2u8; 3000]).await?;
            free_all(vec![back], vec![good]).await?;
        }
    }
    Ok(())
}

fn assert_lost(met: Mutex<Vec<AcpError>>) {
    let met = met.into_inner().expect("nobody panics");
    let lost = AcpError::Fabric(FabricError::PeerLost { rank: Rank::new(1) });
    assert!(met.len() == 5 && met.iter().all(|error| *error == lost), "{met:?}");
}

#[test]
fn a_peer_that_fails_is_named_and_disturbs_no_other() {
    let met = Mutex::default();
    let job = threads(3).run(&async |fabric: Fabric| with_a_failure(fabric, &met).await);
    assert!(job.is_err_and(|error| error.to_string().contains("this rank fails")));
    assert_lost(met);
    let met = Mutex::default();
    let job = virtual_time(&Platform::fx100(), 3).jitter(Duration::from_micros(30)).shuffle_ties(true);
    let job = job.run(&async |fabric: Fabric| with_a_failure(fabric, &met).await);
    assert!(job.is_err_and(|error| error.to_string().contains("this rank fails")));
    assert_lost(met);
}

#[test]
fn a_peer_that_leaves_ends_the_channel() {
    let errors = in_virtual_time(2, &async |fabric: Fabric| -> ProgramResult<Vec<AcpError>> {
        let acp = Acp::init(&fabric).await?;
        let peer = Rank::new(1 - acp.rank().number());
        if acp.rank().number() == 1 {
            return Ok(vec![]);
        }
        let (to, from) = (acp.sender(peer)?, acp.receiver(peer)?);
        let received = from.recv(&mut [0u8]).await.expect_err("nobody is there");
        let sent = to.send(&[0u8]).await.expect_err("nobody is there");
        Ok(vec![received, sent])
    });
    assert_eq!(errors[0], vec![AcpError::Disconnected { peer: Rank::new(1) }; 2]);
}
