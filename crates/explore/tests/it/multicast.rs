//! Multicasts: a delivery for each member, in any order.

use super::outcomes::{A, B, C, expect, explorer, words};
use explore::mutant::{Mutant, mutated};
use rdma_fabric::{
    Caps, Deps, Fabric, FabricError, MulticastSpan, Multicasts, ProgramResult, Rank, Region, RemoteAddr, Result,
};

fn can() -> Caps {
    let mut caps = Caps::weakest();
    caps.multicasts = Multicasts::Hardware;
    caps
}

fn everywhere(fabric: &Fabric, region: &Region) -> Result<MulticastSpan<u64>> {
    MulticastSpan::new(fabric, &[A, B, C].map(|rank| region.at(rank, 0)), 1)
}

/// A multicasts, from registered memory if `own`, which it overwrites as soon as that is allowed. B
/// reads its own part, and then C's.
async fn looks(fabric: Fabric, own: bool) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    if fabric.rank() == A && own {
        let source = region.span::<u64>(&fabric, 16, 1)?;
        fabric.write(&source, &[1])?;
        everywhere(&fabric, &region)?.put(&fabric, source.clone()).await?;
        fabric.write(&source, &[7])?;
    } else if fabric.rank() == A {
        everywhere(&fabric, &region)?.put(&fabric, [1]).await?;
    } else if fabric.rank() == B {
        let here = fabric.load::<u64>(&region.word(&fabric, 0)?)?;
        return Ok(10 + 2 * here + fabric.get_word::<u64>(&fabric.remote_word(region.at(C, 0))?).await?);
    }
    Ok(0)
}

#[test]
fn members_are_reached_in_any_order() {
    for own in [false, true] {
        expect(explorer(3).caps(can()), &[10, 11, 12, 13], move |fabric| looks(fabric, own));
    }
}

/// A multicasts a record, with or without a flush, and then raises flags at B and C.
async fn announce(fabric: Fabric, flushes: bool) -> ProgramResult<()> {
    let region = words(&fabric).await?;
    if fabric.rank() == A {
        everywhere(&fabric, &region)?.put(&fabric, [7]).await?;
        if flushes {
            fabric.flush_all().await?;
        }
        for rank in [B, C] {
            fabric.put_word(&fabric.remote_word(region.at(rank, 8))?, 1u64).await?;
        }
        return Ok(());
    }
    fabric.wait_until(&region.word::<u64>(&fabric, 8)?, Deps::One(A), |flag| flag == 1).await?;
    assert_eq!(fabric.load::<u64>(&region.word(&fabric, 0)?)?, 7, "no record at {}", fabric.rank());
    Ok(())
}

/// Forgets a member.
#[derive(Debug)]
struct Forgets(Rank);

impl Mutant for Forgets {
    fn multicasts_to(&self, to: RemoteAddr) -> bool {
        to.rank != self.0
    }
}

#[test]
fn a_member_that_is_forgotten_and_a_flush_that_is_missing_are_found() {
    explorer(3).caps(can()).run(|fabric| announce(fabric, true)).expect_exhausted();
    // No rank reads A's part.
    explorer(3).caps(can()).run(|fabric| announce(mutated(fabric, Forgets(A)), true)).expect_exhausted();
    for member in [B, C] {
        explorer(3).caps(can()).run(|fabric| announce(mutated(fabric, Forgets(member)), true)).expect_violation();
    }
    explorer(3).caps(can()).run(|fabric| announce(fabric, false)).expect_violation();
}

#[test]
fn where_there_are_none_they_are_refused_by_name() {
    let refused = FabricError::Unsupported { feature: &"multicast" };
    explorer(3)
        .run(move |fabric| {
            let refused = refused.clone();
            async move {
                let region = words(&fabric).await?;
                assert_eq!(Multicasts::reach(&fabric, &[A, B]), Err(refused.clone()));
                assert_eq!(everywhere(&fabric, &region).map(drop), Err(refused));
                Ok(())
            }
        })
        .expect_exhausted();
}
