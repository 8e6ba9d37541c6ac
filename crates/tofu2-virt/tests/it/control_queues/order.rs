//! The effect of strong order: a command does not overtake atomics that are still being executed.

use super::script::AT;
use crate::start::{NETWORKS, fx100, opened};
use rdma_fabric::{
    Amo, Deps, Fabric, ProgramResult, Rank,
    control_queue::{Command, Inline, MrqKind, Posting, QueueId, QueueMode, QueueSpec, Width},
};
use std::time::Duration;
use tofu2_virt::NetworkModel;

/// While all ranks add to a word of rank 0, rank 1 adds 1000 to another word there and then puts a
/// flag. Returns the part of the 1000 that rank 0 finds when it sees the flag, and the order of the
/// notices.
async fn behind_atomics(fabric: Fabric, strong: bool) -> ProgramResult<(u64, Vec<MrqKind>)> {
    let me = fabric.rank().number();
    let (home, queue) = opened(&fabric, 64, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    fabric.sleep(Duration::from_micros(1)).await;
    let to = QueueId::new(Rank::new(0), 0, 0, 0);
    let add =
        |word: u64, operand| Command::Atomic { to, at: AT + 8 * word, width: Width::Eight, amo: Amo::Add(operand) };
    let mut found = 0;
    let mut kinds = vec![];
    match me {
        0 => {
            found = fabric.wait_until(&home.word::<u64>(&fabric, 16)?, Deps::All, |flag| flag == 5).await?;
            found += fabric.load(&home.word::<u64>(&fabric, 8)?)?;
            fabric.sleep(Duration::from_micros(100)).await;
            while let Some(notice) = queue.poll_mrq()? {
                kinds.push(notice.kind);
            }
        }
        1 => {
            // By then the others' atomics have filled the atomic unit.
            fabric.sleep(Duration::from_micros(2)).await;
            for _ in 0..4 {
                queue.post(Posting::new(add(1, 250)).remote(1), Deps::All).await?;
            }
            let flag = Posting::new(Command::PutInline { to, bytes: Inline::word(5), at: AT + 16 }).remote(2);
            queue.post(if strong { flag.strong_order() } else { flag }, Deps::All).await?;
        }
        _ => {
            for _ in 0..4 {
                queue.post(add(0, 1).into(), Deps::All).await?;
            }
        }
    }
    fabric.sleep(Duration::from_millis(1)).await;
    assert!(me > 0 || fabric.load(&home.word::<u64>(&fabric, 8)?)? == 1000);
    Ok((found, kinds))
}

#[test]
fn strong_order_waits_for_atomics_in_service() {
    for network in NETWORKS {
        for (jitter, shuffle) in [(0, false), (0, true), (400, true)] {
            for seed in 0..4 {
                let job =
                    || fx100(24).network(network).jitter(Duration::from_nanos(jitter)).shuffle_ties(shuffle).seed(seed);
                let (found, kinds) =
                    job().run(&async |fabric| behind_atomics(fabric, true).await).unwrap().outs[0].clone();
                assert_eq!(found, 5 + 1000, "{network:?}, jitter {jitter} ns, seed {seed}");
                assert_eq!(kinds, [[MrqKind::RemoteAtomic; 4].as_slice(), &[MrqKind::RemotePut]].concat());
                // Without strong order the flag overtakes the atomics, which shows that the test
                // can fail. (With routers there is little overtaking, since atomics wait in the
                // network.)
                if jitter == 0 && network == NetworkModel::Latency {
                    let (found, _) =
                        job().run(&async |fabric| behind_atomics(fabric, false).await).unwrap().outs[0].clone();
                    assert!(found < 5 + 1000, "{network:?}, seed {seed}");
                }
            }
        }
    }
}
