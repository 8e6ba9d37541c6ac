//! Operations from and to ranks that die.

use super::super::outcomes::{A, B, C, explorer, words};
use super::{firsts, known_in_time, outcomes, told};
use explore::Probe;
use rdma_fabric::{Fabric, Time};
use std::collections::BTreeSet;

#[test]
fn puts_in_flight_arrive_before_the_loss_is_known_or_never() {
    let program = |known: bool| {
        move |fabric: Fabric| async move {
            let region = words(&fabric).await?;
            if fabric.rank() == A {
                fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
                // This prevents A from ending too early.
                fabric.sleep_until(Time::from_picos(1)).await;
                return Ok(());
            }
            let word = region.word::<u64>(&fabric, 0)?;
            if known && !known_in_time(&fabric, &region).await? {
                return Ok(());
            }
            let first = fabric.load(&word)?;
            let second = fabric.load(&word)?;
            Probe::of(&fabric).set(0, 10 + 2 * first + second);
            Ok(())
        }
    };
    let before = outcomes(explorer(2), program(false));
    assert_eq!(firsts(&before), BTreeSet::from([10, 11, 13]));
    assert!(before.contains(&[11, 0, 0, 1]), "what a dead rank posted still arrives: {before:?}");
    let after = outcomes(explorer(2), program(true));
    assert!(after.contains(&[10, 0, 0, 1]) && after.contains(&[13, 0, 0, 1]), "{after:?}");
    assert!(!after.iter().any(|outcome| outcome[0] == 11), "it arrived after the loss was known: {after:?}");
}

#[test]
fn operations_on_the_dead_end_in_errors() {
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0));
        if fabric.rank() == A {
            return Ok(());
        }
        let Ok(word) = word else {
            Probe::of(&fabric).set(0, 1);
            return Ok(());
        };
        if !known_in_time(&fabric, &region).await? {
            return Ok(());
        }
        let all = [
            fabric.fetch_add(&word, 1).await.map(drop),
            fabric.get_word(&word).await.map(drop),
            fabric.put_word(&word, 1).await,
            fabric.put_notify(&word.as_span(), [1], 1).await.map(drop),
            fabric.remote_word::<u64>(region.at(A, 0)).map(drop),
            fabric.flush(A).await,
            fabric.room(Some(A)).await,
        ];
        assert!(all.into_iter().all(|end| told(end) == 2));
        assert_eq!(fabric.flush_all().await, Ok(()), "no put was under way");
        assert_eq!(fabric.try_notice()?, None);
        Probe::of(&fabric).set(0, 2);
        Ok(())
    });
    assert_eq!(firsts(&seen), BTreeSet::from([0, 1, 2]));
}

#[test]
fn operations_in_flight_to_the_dead_fail_or_complete() {
    // B adds to A's word while C reads it. The outcome is B's result and the value that C saw.
    let seen = outcomes(explorer(3), |fabric| async move {
        let region = words(&fabric).await?;
        let me = fabric.rank();
        let word = fabric.remote_word::<u64>(region.at(A, 0));
        if me == B {
            let end = match word {
                Ok(word) => fabric.fetch_add(&word, 1).await,
                Err(error) => Err(error),
            };
            Probe::of(&fabric).set(1, told(end));
        } else if me == C {
            let saw = match word {
                Ok(word) => fabric.get_word(&word).await,
                Err(error) => Err(error),
            };
            Probe::of(&fabric).set(2, saw.map_or_else(|error| told::<()>(Err(error)), |value| 10 + value));
        }
        Ok(())
    });
    let pairs: BTreeSet<_> = seen.iter().filter(|o| o[3] == 1).map(|outcome| (outcome[1], outcome[2])).collect();
    // (2, 11): the addition took effect, but its poster never received the result.
    assert_eq!(pairs, BTreeSet::from([(1, 2), (1, 10), (1, 11), (2, 2), (2, 10), (2, 11)]));
    let alive: BTreeSet<_> = seen.iter().filter(|o| o[3] == 0).map(|outcome| (outcome[1], outcome[2])).collect();
    assert_eq!(alive, BTreeSet::from([(1, 10), (1, 11)]));
}

#[test]
fn a_flush_of_all_tells_once_of_a_put_that_was_lost() {
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0));
        if fabric.rank() == A {
            return Ok(());
        }
        let Ok(word) = word else { return Ok(()) };
        let put = told(fabric.put_word(&word, 1).await);
        let [first, second] = [fabric.flush_all().await, fabric.flush_all().await].map(told);
        Probe::of(&fabric).set(0, put * 100 + first * 10 + second);
        Ok(())
    });
    // There is no 112: if the first flush was complete before the loss was known, the put had
    // arrived, and no error is owed.
    assert_eq!(firsts(&seen), BTreeSet::from([0, 111, 121, 211]));
}
