//! Random messages and programs, compared with queues.

use super::{free_all, whole, with};
use crate::harness::everywhere;
use acp::{Acp, AcpError, Arrival, ChannelOptions, Receiver, Request, Sender};
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank, join::join};
use std::time::Duration;

pub(super) fn message(random: &mut Rng, most: usize) -> Vec<u8> {
    let len = random.usize(..=most);
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64 + 1, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte))
}

#[test]
fn random_messages_both_ways_at_once() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, peer) = (acp.rank().number(), Rank::new(1 - acp.rank().number()));
        let (sender, receiver) = (acp.sender(peer)?, acp.receiver(peer)?);
        let sending = async {
            let mut random = Rng::with_seed(u64::from(me));
            for _ in 0..30 {
                sender.send(&message(&mut random, 100_000)).await?;
            }
            Ok::<(), AcpError>(())
        };
        let receiving = async {
            let mut random = Rng::with_seed(u64::from(peer.number()));
            let mut buffer = vec![0u8; 100_000];
            for round in 0..30 {
                let expected = message(&mut random, 100_000);
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
    let mut random = Rng::with_seed(seed);
    let options = with(ChannelOptions {
        slot_bytes: 1 + random.usize(..300),
        receive_slots: 1 + random.usize(..5),
        send_slots: 1 + random.usize(..3),
        requests: random.usize(..3),
        table_entries: 1 + random.usize(..3),
    });
    let acp = Acp::init_with(fabric, options).await?;
    let me = acp.rank();
    // All ranks compute the same plan: the messages of each channel, and the buffer size for each
    // message.
    let mut plan = Vec::new();
    for _ in 0..8 {
        let from = random.usize(..3);
        let to = (from + 1 + random.usize(..2)) % 3;
        let messages: Vec<(Vec<u8>, usize)> = (0..random.usize(..12))
            .map(|_| {
                let message = message(&mut random, 2000);
                let room = random.usize(..2500);
                (message, room)
            })
            .collect();
        plan.push((Rank::new(from as u32), Rank::new(to as u32), messages));
    }
    // Each rank makes its requests in its own order, except within a channel.
    let mut random = Rng::with_seed(seed << 8 | u64::from(me.number()));
    let mut turns: Vec<usize> = Vec::new();
    for (channel, (from, to, messages)) in plan.iter().enumerate() {
        if [*from, *to].contains(&me) {
            turns.extend(std::iter::repeat_n(channel, messages.len()));
        }
    }
    random.shuffle(&mut turns);
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
        if random.usize(..3) == 0 {
            fabric.sleep(Duration::from_nanos(random.usize(..20_000) as u64)).await;
        }
    }
    random.shuffle(&mut receiving);
    random.shuffle(&mut sending);
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
