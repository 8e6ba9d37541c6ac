//! Commands and replies as bytes.

use super::*;
use crate::queues::format::descriptor::SLOT;
use rdma_fabric::{
    Amo,
    control_queue::{Inline, Stadd, Width},
};

const POSTER: Rank = Rank::new(3);

fn queue(rank: u32) -> QueueId {
    QueueId::new(Rank::new(rank), 1, 2, 0)
}

fn commands() -> Vec<RemoteCommand> {
    let (to, at) = (queue(70_000), Stadd::new(0x1234, 99));
    let swap = Amo::CompareSwap { expected: 1 << 40, new: u64::MAX };
    let all = [
        Command::put(to, at, at + 8, 16_777_215),
        Command::get(to, at, at + 8, 0),
        Command::PutInline { to, bytes: Inline::new(&[7; 5]).unwrap(), at },
        Command::PutInline { to, bytes: Inline::new(&[8; 32]).unwrap(), at },
        Command::Atomic { to, at, width: Width::Eight, amo: swap },
        Command::Atomic { to, at, width: Width::Four, amo: Amo::Or(5) },
    ];
    let postings = all.into_iter().flat_map(|command| {
        [Posting::new(command), Posting::new(command).remote(200).local(200).sps(15).strong_order()]
    });
    let posting = |(number, posting)| RemoteCommand { from: queue(3), number, checked: number % 2 == 0, posting };
    (1 << 33..).zip(postings).map(posting).collect()
}

#[test]
fn bytes_lead_back_to_the_command() {
    for command in commands() {
        let bytes = command.to_bytes();
        assert_eq!(bytes.len(), RemoteCommand::BYTES);
        let followed = [&bytes[..], b"more"].concat();
        assert_eq!(RemoteCommand::from_bytes(POSTER, &followed), Some((command, &b"more"[..])));
        assert_eq!((command.target(), command.from().rank()), (Rank::new(70_000), POSTER));
        assert_eq!(RemoteCommand::from_bytes(Rank::new(4), &bytes), None, "another rank's queue");
        assert_eq!(RemoteCommand::from_bytes(POSTER, &bytes[1..]), None);
    }
}

#[test]
fn damaged_bytes_are_another_command_or_none() {
    for command in commands() {
        let bytes = command.to_bytes();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let unused = bit / 64 >= 2 + SLOT && bytes[8 * (2 + SLOT)..].iter().all(|byte| *byte == 0);
            let read = RemoteCommand::from_bytes(POSTER, &damaged);
            assert!(unused || read.is_none_or(|(read, _)| read != command), "bit {bit} of {command:?}");
        }
    }
    assert_eq!(RemoteCommand::from_bytes(POSTER, &[0; RemoteCommand::BYTES]), None);
    let nop = RemoteCommand { from: queue(3), number: 0, checked: false, posting: Posting::new(Command::Nop) };
    assert_eq!(RemoteCommand::from_bytes(POSTER, &nop.to_bytes()), None, "it has no target");
}

#[test]
fn bytes_lead_back_to_the_reply() {
    let lost = QueueError::PeerLost(queue(5));
    for status in [Ok(()), Err(lost), Err(QueueError::MrqOverflow { queue: queue(2), depth: 8 })] {
        for bytes in [vec![], vec![1; 3000]] {
            let reply = RemoteReply { status, value: 77, bytes };
            assert_eq!(RemoteReply::from_bytes(&reply.to_bytes()), Some(reply));
        }
    }
    assert_eq!(RemoteReply::from_bytes(&[0xff; RemoteReply::BYTES]), None);
    assert_eq!(RemoteReply::from_bytes(&[0; RemoteReply::BYTES - 1]), None);
}
