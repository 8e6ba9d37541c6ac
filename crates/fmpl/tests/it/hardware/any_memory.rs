//! Broadcasts by multicast from and into any memory.

use super::{broadcasts, sr8000};
use crate::harness::{everywhere, pattern};
use fmpl::{Collective, Fmpl, FmplError, Options};
use rdma_fabric::{Fabric, Multicasts, ProgramResult};

#[test]
fn multicasts_from_and_into_any_memory() {
    for members in [2, 5, 8] {
        sr8000(members, &async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init_with(&fabric, Options::default().staging(1000)).await?;
            let (world, me) = (fmpl.world(), fabric.rank().index());
            for (n, size) in [0, 1, 999, 1000, 1001, 2000, 7777, 100_000].into_iter().enumerate() {
                let root = n % members;
                let sent = pattern(n, size);
                if me == root {
                    world.multicast_from(&mut &sent[..]).await?;
                } else {
                    let mut received = vec![0xee; size];
                    world.multicast_into(&mut received.as_mut_slice(), root).await?;
                    assert!(received == sent, "{size} bytes from {root} of {members}");
                }
                // Other collectives share the buffers and the rounds.
                broadcasts(world, &[1500]).await?;
                world.barrier().await?;
            }
            Ok(fmpl.finalize().await?)
        });
    }
}

#[test]
fn multicasts_into_memory_of_another_length() {
    sr8000(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().staging(64)).await?;
        let (world, me) = (fmpl.world(), fabric.rank().index());
        for (sent, expected) in [(10, 500), (500, 10), (0, 1), (64, 0)] {
            if me == 1 {
                world.multicast_from(&mut &pattern(3, sent)[..]).await?;
            } else {
                let bytes = if me == 2 { expected } else { sent };
                let mut received = vec![7; bytes];
                let outcome = world.multicast_into(&mut received.as_mut_slice(), 1).await;
                if me == 2 {
                    let differ = FmplError::CountMismatch { member: 1, bytes: sent, other: 2, other_bytes: expected };
                    assert_eq!((outcome, received), (Err(differ), vec![7; bytes]));
                } else {
                    assert_eq!((outcome, received), (Ok(()), pattern(3, sent)));
                }
            }
        }
        let mut nothing = [0u8; 0];
        let from_self = world.multicast_into(&mut &mut nothing[..], me).await;
        assert_eq!(from_self, Err(FmplError::FromSelf { member: me }));
        let nowhere = world.multicast_into(&mut &mut nothing[..], 4).await;
        assert_eq!(nowhere, Err(FmplError::NoSuchMember { member: 4, members: 4 }));
        world.barrier().await?;
        Ok(fmpl.finalize().await?)
    });
}

/// A root that selects the tree by calling `broadcast` does not wait for receivers that can't follow.
#[test]
fn a_broadcast_along_the_tree_is_not_received_by_multicast() {
    sr8000(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let span = world.buffer::<u8>(100_000)?;
        let outcome = match world.me() {
            0 => world.broadcast(&span, 0).await,
            _ => world.multicast_into(&mut vec![0; 100_000].as_mut_slice(), 0).await,
        };
        assert_eq!(outcome, Err(FmplError::MemberLeft { member: 1 }));
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn without_multicasts_they_are_refused() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        assert_eq!(world.multicasts(), fabric.caps().multicasts == Multicasts::Hardware);
        if !world.multicasts() {
            let refused = Err(FmplError::NoHardware { collective: Collective::Broadcast });
            assert_eq!(world.multicast_from(&mut &[1u8][..]).await, refused);
            assert_eq!(world.multicast_into(&mut &mut [1u8][..], (world.me() + 1) % 3).await, refused);
        }
        Ok(fmpl.finalize().await?)
    });
}
