//! Copies between ranks' memory, and puts that are delivered in order.

use super::{
    litmus::two_puts,
    outcomes::{A, B, C, expect, explorer, words},
};
use explore::Explorer;
use rdma_fabric::{Caps, Fabric, FabricError, ProgramResult, Rank, Result};

fn in_order() -> Caps {
    let mut caps = Caps::weakest();
    caps.puts_in_order = true;
    caps
}

#[test]
fn puts_are_ordered_among_themselves_as_the_capabilities_say() {
    expect(explorer(2), &[10, 11, 12, 13], |fabric| two_puts(fabric, false));
    expect(explorer(2).caps(in_order()), &[10, 11, 13], |fabric| two_puts(fabric, false));
}

/// A puts two words of B, from its own memory if it `copies`, and then a flag of `flagged`; B reads
/// the flag, and then the words.
async fn record_and_flag(fabric: Fabric, copies: bool, flagged: Rank) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    let flag = fabric.remote_word::<u64>(region.at(flagged, 24))?;
    if fabric.rank() == A {
        let there = fabric.remote_span::<u64>(region.at(B, 0), 2)?;
        if copies {
            fabric.write(&region.span(&fabric, 0, 2)?, &[1u64, 1])?;
            fabric.copy(&there, &fabric.remote_span(region.at(A, 0), 2)?).await?;
        } else {
            fabric.put(&there, [1, 1]).await?;
        }
        fabric.put_word(&flag, 1).await?;
        return Ok(0);
    }
    let flag = fabric.get_word(&flag).await?;
    let [one, other] = [fabric.load::<u64>(&region.word(&fabric, 0)?)?, fabric.load(&region.word(&fabric, 8)?)?];
    Ok(10 + 4 * flag + 2 * one + other)
}

#[test]
fn the_pieces_of_one_put_are_not_ordered_and_come_before_the_next() {
    let any = [10, 11, 12, 13, 14, 15, 16, 17];
    for copies in [false, true] {
        expect(explorer(2), &any, |fabric| record_and_flag(fabric, copies, B));
        let ordered = [10, 11, 12, 13, 17];
        expect(explorer(2).caps(in_order()), &ordered, |fabric| record_and_flag(fabric, copies, B));
        // Another target.
        expect(explorer(2).caps(in_order()), &any, |fabric| record_and_flag(fabric, copies, A));
    }
}

/// Three puts of the same word: if puts are ordered, the last one prevails.
#[test]
fn the_last_of_several_puts_stays() {
    let program = |fabric: Fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(B, 0))?;
        if fabric.rank() == B {
            return Ok(0);
        }
        for value in 1..=3u64 {
            fabric.put_word(&word, value).await?;
        }
        fabric.flush(B).await?;
        Ok(10 + fabric.get_word(&word).await?)
    };
    expect(explorer(2), &[11, 12, 13], program);
    expect(explorer(2).caps(in_order()), &[13], program);
}

#[test]
fn copies_are_the_gets_and_puts_that_they_are() {
    // A gets B's word, before or after B's store, and puts it back elsewhere.
    expect(explorer(2), &[10, 11], |fabric| async move {
        let region = words(&fabric).await?;
        if fabric.rank() == B {
            fabric.store(&region.word(&fabric, 0)?, 1u64)?;
            return Ok(0);
        }
        let part = |rank, at| fabric.remote_span::<u64>(region.at(rank, at), 1);
        fabric.copy(&part(A, 8)?, &part(B, 0)?).await?;
        fabric.copy(&part(A, 16)?, &part(A, 8)?).await?;
        fabric.copy(&part(B, 24)?, &part(A, 16)?).await?;
        fabric.flush(B).await?;
        Ok(10 + fabric.get(&part(B, 24)?, [0]).await?[0])
    });
}

fn is_unsupported(outcome: Result<()>) -> bool {
    matches!(outcome, Err(FabricError::Unsupported { .. }))
}

#[test]
fn unexplored_operations_are_refused_by_name() {
    let mut caps = Caps::weakest();
    caps.third_party_copy = true;
    Explorer::new(3)
        .caps(caps)
        .leave_together()
        .run(|fabric| async move {
            let region = words(&fabric).await?;
            if fabric.rank() == A {
                let part = |rank, at| fabric.remote_span::<u64>(region.at(rank, at), 2);
                assert!(!fabric.caps().third_party_copy);
                assert!(is_unsupported(fabric.copy(&part(C, 0)?, &part(B, 0)?).await));
                assert!(is_unsupported(fabric.copy(&part(B, 16)?, &part(B, 0)?).await));
                assert!(is_unsupported(fabric.copy(&part(A, 8)?, &part(A, 0)?).await));
                fabric.copy(&part(A, 16)?, &part(A, 0)?).await?;
            }
            Ok(())
        })
        .expect_exhausted();
}
