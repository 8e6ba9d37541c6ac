//! A job that receives arbitrary messages over its connections.

use super::{Job, Order, Roster};
use crate::{
    Plan,
    coordinator::connection::Broken,
    wire::{Down, Up},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Passes these messages, over connections 0 to 7, to a job or to a standby. The low bits of a
/// step's byte select the connection; the high bits select an event that happens first, such as the
/// end of the connection or the passing of time.
pub(crate) fn run<'a>(plan: Plan, stands: bool, now: Instant, steps: impl Iterator<Item = (u8, &'a [u8])>) {
    let mut now = now;
    let ranks = plan.ranks;
    let nodes = (0..ranks as u32).map(|rank| rank / 2).collect();
    let roster = Roster { rank: 0, number: 1, nodes };
    let mut job = if stands { Job::standby(plan, &roster, now) } else { Job::new(plan, 1, now) };
    // The connections that have identified themselves, with their ranks.
    let mut known: BTreeMap<u64, Option<u32>> = BTreeMap::new();
    for (kind, message) in steps {
        let token = u64::from(kind & 7);
        match kind >> 3 {
            0 => end(&mut job, now, token, known.remove(&token).flatten()),
            1 => now += Duration::from_millis(300),
            2 => job.gone(now, u32::from(kind & 7), "gone".into()),
            _ => {}
        }
        if let Some(up) = Up::read(message) {
            let heard = match known.get(&token).copied().flatten() {
                Some(rank) => job.on_message(now, rank, up),
                None => job.receive(now, token, up).map(|rank| _ = known.insert(token, rank)),
            };
            if heard.is_err() {
                end(&mut job, now, token, known.remove(&token).flatten());
            }
        }
        job.tick(now);
        while let Some(order) = job.next_order() {
            match order {
                Order::Send(_, frame) => {
                    let down = Down::read(&frame[4..]).expect("the job sends messages");
                    assert!(down.fits(ranks), "{down:?}");
                }
                Order::Close(token) | Order::CloseGently(token) => _ = known.remove(&token),
            }
        }
        let outcome = job.outcome();
        assert!(outcome.is_none_or(|outcome| outcome.ends.len() == ranks && job.ends().iter().all(Option::is_some)));
        let _ = job.next_time();
    }
}

/// Ends a connection; the rank's process may have survived that.
fn end(job: &mut Job, now: Instant, token: u64, rank: Option<u32>) {
    if let Some(rank) = rank {
        job.broke(now, rank, token, Broken::misused("fuzz"));
    }
}
