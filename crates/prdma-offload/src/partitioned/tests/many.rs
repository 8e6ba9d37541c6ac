//! Many partitions.

use super::{layouts, neighbours};
use crate::{Buffer, Form, Options};
use rdma_fabric::{Fabric, ProgramResult};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// More commands than a READY can release by itself.
async fn many(fabric: Fabric, form: Form, partitions: usize, runs: usize, times: u64) -> ProgramResult<Form> {
    let mut hood = neighbours(&fabric).await?;
    let me = hood.group().me() as u64;
    let (sends, receives) = (layouts(true, runs * partitions), layouts(false, runs * partitions));
    let send = Buffer::<u64>::new(&fabric, 3 * runs * partitions)?;
    let receive = Buffer::<u64>::new(&fabric, 3 * runs * partitions)?;
    let options = Options::form(form);
    let mut parts = hood.partitioned_init(&send, &sends, &receive, &receives, partitions, &options).await?;
    for k in 0..times {
        send.write(0, &vec![k << 8 | me; 3 * runs * partitions])?;
        parts.start().await?;
        for partition in (0..partitions).rev() {
            for slot in [0, 2] {
                parts.ready(slot, partition).await?;
            }
        }
        parts.wait().await?;
        let n = hood.group().len() as u64;
        let (left, right) = ((n + me - 1) % n, (me + 1) % n);
        let got = receive.to_vec()?;
        assert!(got[..runs * partitions].iter().all(|got| *got == k << 8 | left), "{got:?}");
        assert!(got[2 * runs * partitions..].iter().all(|got| *got == k << 8 | right), "{got:?}");
    }
    hood.group_mut().barrier().await?;
    Ok(parts.form())
}

#[test]
fn many_partitions_use_a_chain_and_too_many_the_cpu() {
    for form in [Form::Fast, Form::Mrc] {
        let program = async move |fabric| many(fabric, form, 20, 3, 10).await;
        assert_eq!(Threads::new(2).run(&program).unwrap(), [form; 2]);
        assert_eq!(Job::new(&Platform::fx100(), 3).run(&program).unwrap().outs, [form; 3]);
    }
    // Twice 60 times 301 slots are more than half a queue.
    let program = async move |fabric| many(fabric, Form::Mrc, 60, 300, 2).await;
    assert_eq!(Job::new(&Platform::fx100(), 1).run(&program).unwrap().outs, [Form::Cpu]);
}
