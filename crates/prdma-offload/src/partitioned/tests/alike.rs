//! Partitions, marked in any order, bring what whole blocks do.

use super::{FORMS, layouts, neighbours};
use crate::{Buffer, Form, Options};
use core::time::Duration;
use rdma_fabric::{Fabric, ProgramResult, join};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// All orders of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Write partition `partition` of block `slot` of `data`, of three of `len` elements each.
fn write(
    buffer: &Buffer<u64>,
    columns: bool,
    len: usize,
    slot: usize,
    partition: usize,
    data: &[u64],
) -> crate::Result<()> {
    let each = len / 3;
    for at in partition * each..(partition + 1) * each {
        let place = if columns { 3 * at + slot } else { slot * len + at };
        buffer.write(place, &data[place..=place])?;
    }
    Ok(())
}

/// Plain and partitioned exchanges of the same data in turn, marked in all orders.
async fn alike(fabric: Fabric, form: Form, len: usize, columns: (bool, bool), times: u64) -> ProgramResult<()> {
    let mut hood = neighbours(&fabric).await?;
    let (me, n) = (hood.group().me() as u64, hood.group().len() as u64);
    let (sends, receives) = (layouts(columns.0, len), layouts(columns.1, len));
    let [send, plain, one, other] = [(); 4].map(|()| Buffer::<u64>::new(&fabric, 3 * len + 1));
    let (send, plain, one, other) = (send?, plain?, one?, other?);
    let options = Options::form(form);
    let mut whole = hood.alltoallw_init(&plain, &sends, &one, &receives, &options).await?;
    let mut parts = hood.partitioned_init(&send, &sends, &other, &receives, 3, &options).await?;
    assert_eq!(parts.partitions(), 3);
    for k in 0..times {
        let data: Vec<u64> = (0..=3 * len as u64).map(|at| k << 40 | me << 32 | at).collect();
        plain.write(0, &data)?;
        if k % 3 == me % 3 {
            fabric.compute(Duration::from_micros(30)).await;
        }
        whole.start().await?;
        parts.start().await?;
        let order = ORDERS[(k as usize * 5 + me as usize) % 6];
        for (step, partition) in order.into_iter().enumerate() {
            // What is not marked yet may be written.
            for slot in 0..3 {
                write(&send, columns.0, len, slot, partition, &data)?;
            }
            if (k + step as u64) % 4 == me % 4 {
                fabric.compute(Duration::from_micros(10)).await;
            }
            if k % 2 == 0 {
                for slot in [2, 0, 1] {
                    parts.ready(slot, partition).await?;
                }
            } else {
                // Several tasks at once.
                let marked = join::join_all((0..3).map(|slot| parts.ready(slot, partition))).await;
                marked.into_iter().collect::<crate::Result<()>>()?;
            }
        }
        if k % 3 == 0 {
            parts.test().await?;
        }
        parts.wait().await?;
        whole.wait().await?;
        assert_eq!(one.to_vec()?, other.to_vec()?, "{form}: exchange {k} of {me}");
        let from = (n + me - 1) % n;
        assert_eq!(one.to_vec()?[0] >> 32, k << 8 | from, "what comes from the left is of this exchange");
    }
    hood.group_mut().barrier().await?;
    Ok(())
}

#[test]
fn partitions_in_any_order_bring_what_whole_blocks_do() {
    for form in FORMS {
        for n in [1, 2, 5] {
            for (len, columns) in [(3, (false, false)), (6, (false, true)), (12, (true, true))] {
                Threads::new(n).run(&async |fabric| alike(fabric, form, len, columns, 10).await).unwrap();
                let program = async move |fabric| alike(fabric, form, len, columns, 100).await;
                Job::new(&Platform::fx100(), n).ranks_per_node(1).run(&program).unwrap();
                let jitter = Duration::from_micros(20);
                Job::new(&Platform::fx100(), n).jitter(jitter).shuffle_ties(true).run(&program).unwrap();
            }
        }
    }
}
