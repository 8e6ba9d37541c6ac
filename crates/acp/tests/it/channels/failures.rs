//! Misuse, and peers that fail or leave.

use super::{free_all, whole, with};
use crate::harness::{everywhere, in_virtual_time};
use acp::{Acp, AcpError, ChannelOptions};
use checks::jobs::{threads, virtual_time};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank, join::join_all};
use std::{sync::Mutex, time::Duration};
use tofu2_sim::virt::Platform;

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
