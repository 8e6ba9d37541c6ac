//! Exchanges in partitions, in a ring whose members exchange blocks of three partitions with both
//! neighbours.

mod early;
mod misuse;

use crate::{FORMS, disturbed, fx100, neighbours};
use checks::jobs::threads;
use prdma_offload::{Buffer, Form, Layout, Neighbourhood, Options, Partitioned};
use rdma_fabric::{Fabric, ProgramResult, join};
use std::time::Duration;

/// Three blocks of `len` elements, contiguous or columns.
fn layouts(columns: bool, len: usize) -> Vec<Layout> {
    let block = |at: usize| match columns {
        true => Layout::vector::<u64>(at, len, 1, 3).unwrap(),
        false => Layout::contiguous::<u64>(at * len, len).unwrap(),
    };
    (0..3).map(block).collect()
}

/// Blocks of 3 elements on both sides of a ring.
async fn threes(
    hood: &mut Neighbourhood,
    form: Form,
) -> prdma_offload::Result<(Buffer<u64>, Buffer<u64>, Partitioned)> {
    let fabric = hood.group().fabric().clone();
    let (send, receive) = (Buffer::<u64>::new(&fabric, 9)?, Buffer::<u64>::new(&fabric, 9)?);
    let blocks = layouts(false, 3);
    let parts = hood.partitioned_init(&send, &blocks, &receive, &blocks, 3, &Options::form(form)).await?;
    Ok((send, receive, parts))
}

/// All orders of three partitions.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Writes partition `partition` of block `slot` of `data`, of three of `len` elements each.
fn write(
    buffer: &Buffer<u64>,
    columns: bool,
    len: usize,
    slot: usize,
    partition: usize,
    data: &[u64],
) -> prdma_offload::Result<()> {
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
            // Partitions that are not marked yet may be written.
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
                marked.into_iter().collect::<prdma_offload::Result<()>>()?;
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
                threads(n).run(&async |fabric| alike(fabric, form, len, columns, 10).await).unwrap();
                let program = async move |fabric| alike(fabric, form, len, columns, 100).await;
                fx100(n).ranks_per_node(1).run(&program).unwrap();
                disturbed(n, 20).run(&program).unwrap();
            }
        }
    }
}

/// Two requests, started in different orders by different members, marked in turn and waited for
/// together.
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
            threads(n).run(&async |fabric| two(fabric, form, 10).await).unwrap();
            disturbed(n, 20).run(&async |fabric| two(fabric, form, 30).await).unwrap();
        }
    }
}

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
        assert_eq!(threads(2).run(&program).unwrap(), [form; 2]);
        assert_eq!(fx100(3).run(&program).unwrap().outs, [form; 3]);
    }
    // Twice 60 times 301 slots are more than half a queue.
    let program = async move |fabric| many(fabric, Form::Mrc, 60, 300, 2).await;
    assert_eq!(fx100(1).run(&program).unwrap().outs, [Form::Cpu]);
}
