//! Two requests at once.

use super::{FORMS, neighbours, threes};
use crate::Form;
use core::time::Duration;
use rdma_fabric::{Fabric, ProgramResult, join};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Started in one order by some and in the other by others, marked in turn, waited for together.
async fn two(fabric: Fabric, form: Form, times: u64) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let (me, n) = (hood.group().me() as u64, hood.group().len() as u64);
    let (one_out, one_in, mut one) = threes(&mut hood, form).await?;
    let (other_out, other_in, mut other) = threes(&mut hood, form).await?;
    let word = |request: u64, k: u64, member: u64| request << 32 | k << 8 | member;
    let (left, right) = ((n + me - 1) % n, (me + 1) % n);
    for k in 1..=times {
        one_out.write(0, &[word(1, k, me); 9])?;
        other_out.write(0, &[word(2, k, me); 9])?;
        let mut both = [&mut one, &mut other];
        if (me + k) % 2 == 0 {
            both.reverse();
        }
        for parts in &mut both {
            parts.start().await?;
        }
        for partition in [2, 0, 1] {
            for slot in [0, 2] {
                for parts in &both {
                    parts.ready(slot, partition).await?;
                }
            }
        }
        let [first, second] = both;
        let (first, second) = join::join(first.wait(), second.wait()).await;
        first?;
        second?;
        for (request, receive) in [(1, &one_in), (2, &other_in)] {
            let got = receive.to_vec()?;
            let want = [[word(request, k, left); 3], [0; 3], [word(request, k, right); 3]].concat();
            assert_eq!(got, want, "{form}: request {request} of member {me} in {k}");
        }
    }
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn two_requests_do_not_meet() {
    for form in FORMS {
        for n in [1, 2, 3] {
            Threads::new(n).run(&async |fabric| two(fabric, form, 10).await).unwrap();
            let jitter = Duration::from_micros(20);
            Job::new(&Platform::fx100(), n)
                .jitter(jitter)
                .shuffle_ties(true)
                .run(&async |fabric| two(fabric, form, 30).await)
                .unwrap();
        }
    }
}
