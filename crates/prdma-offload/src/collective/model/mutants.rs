//! Plans with one number changed.

use super::super::plan::{Plan, Put, Queue};

/// Each way to change the program of one member, one number at a time.
pub(super) fn mutants(plans: &[Plan]) -> Vec<(String, Vec<Plan>)> {
    let mut mutants = Vec::new();
    let me = 1;
    for (q, queue) in plans[me].queues.iter().enumerate() {
        let mut with = |what: String, change: &dyn Fn(&mut Queue)| {
            let mut changed = plans.to_vec();
            change(&mut changed[me].queues[q]);
            mutants.push((what, changed));
        };
        with(format!("queue {q} one slot further ahead"), &|queue| queue.ahead += 1);
        for (at, slot) in queue.slots.iter().enumerate() {
            if slot.is_none() {
                with(format!("queue {q} without NOP {at}"), &|queue| {
                    queue.slots.remove(at);
                });
                with(format!("queue {q} with NOP {at} twice"), &|queue| queue.slots.insert(at, None));
            }
            if let Some(put) = slot {
                with(format!("queue {q}, put {at}: one credit more"), &|queue| {
                    queue.slots[at] = Some(Put { sps: put.sps + 1, ..*put });
                });
                if put.sps > 0 {
                    with(format!("queue {q}, put {at}: one credit less"), &|queue| {
                        queue.slots[at] = Some(Put { sps: put.sps - 1, ..*put });
                    });
                    with(format!("queue {q}, put {at}: credit lost"), &|queue| {
                        queue.slots[at] = Some(Put { sps: 0, ..*put });
                    });
                }
                if put.notice {
                    with(format!("queue {q}, put {at}: notice lost"), &|queue| {
                        queue.slots[at] = Some(Put { notice: false, ..*put });
                    });
                }
            }
        }
    }
    mutants
}

/// No SELFs, nor the NOPs that they release.
pub(super) fn without_self(plans: &[Plan]) -> Vec<Plan> {
    let mut changed = plans.to_vec();
    for (me, plan) in changed.iter_mut().enumerate() {
        for queue in &mut plan.queues {
            queue.slots.retain(|slot| slot.is_some_and(|put| put.to.0 != me));
            for put in queue.slots.iter_mut().flatten() {
                put.sps = 1;
            }
        }
    }
    changed
}
