//! A partition is received while others are not marked, also by several threads of a rank.

use super::threes;
use crate::{FORMS, fx100, neighbours};
use checks::jobs::threads;
use prdma_offload::{Form, PrdmaError};
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;

/// The second of three partitions is marked, and read at the other side while the others are not
/// marked.
async fn early(fabric: Fabric, form: Form) -> ProgramResult<Form> {
    let mut hood = neighbours(&fabric).await?;
    let (me, n) = (hood.group().me() as u64, hood.group().len() as u64);
    let (send, receive, mut parts) = threes(&mut hood, form).await?;
    let (left, right) = ((n + me - 1) % n, (me + 1) % n);
    for k in 1..=20 {
        parts.start().await?;
        for slot in [0, 2] {
            send.write(3 * slot + 1, &[k << 8 | me])?;
            parts.ready(slot, 1).await?;
            assert!(matches!(send.write(3 * slot + 1, &[0]), Err(PrdmaError::InUse { .. })), "it is marked");
        }
        for (slot, from) in [(0, left), (2, right)] {
            while !parts.arrived(slot, 1).await? {
                fabric.compute(Duration::from_micros(1)).await;
            }
            let mut got = [0];
            receive.read(3 * slot + 1, &mut got)?;
            assert_eq!(got, [k << 8 | from]);
            // These are not marked at any member, since the neighbours wait here as well.
            for partition in [0, 2] {
                assert!(!parts.arrived(slot, partition).await?, "{form}: {partition} of {slot} in {k}");
                let there = receive.read(3 * slot + partition, &mut got);
                assert!(matches!(there, Err(PrdmaError::InUse { .. })), "{there:?}");
            }
        }
        assert!(parts.arrived(1, 0).await?, "nobody is there");
        // Wait until all have checked that.
        hood.group_mut().barrier().await?;
        for slot in 0..3 {
            send.write(3 * slot, &[k << 8 | me])?;
            send.write(3 * slot + 2, &[k << 8 | me])?;
            if slot == 1 {
                parts.ready_range(1, 0..3).await?;
            } else {
                parts.ready_range(slot, 2..3).await?;
                parts.ready_range(slot, 0..1).await?;
            }
        }
        parts.wait().await?;
        let got = receive.to_vec()?;
        assert_eq!((&got[..3], &got[6..]), (&[k << 8 | left; 3][..], &[k << 8 | right; 3][..]));
    }
    hood.group_mut().barrier().await?;
    Ok(parts.form())
}

#[test]
fn a_partition_is_read_before_the_others_are_marked() {
    for form in FORMS {
        for n in [1, 2, 4] {
            let expected = if form == Form::Queues(2) { Form::Fast } else { form };
            let formed = threads(n).run(&async |fabric| early(fabric, form).await).unwrap();
            assert!(formed.iter().all(|formed| *formed == expected), "{formed:?}");
            let outcome =
                fx100(n).jitter(Duration::from_micros(5)).run(&async |fabric| early(fabric, form).await).unwrap();
            assert!(outcome.outs.iter().all(|formed| *formed == expected), "{:?}", outcome.outs);
        }
    }
}

/// Returns the duration of the wait after all have computed, with one partition marked before.
async fn offloaded(fabric: Fabric, form: Form) -> ProgramResult<u64> {
    let mut hood = neighbours(&fabric).await?;
    let (_, receive, mut parts) = threes(&mut hood, form).await?;
    parts.start().await?;
    for slot in 0..3 {
        parts.ready(slot, 2).await?;
    }
    fabric.compute(Duration::from_millis(1)).await;
    // It arrived while all computed; only the others were not marked.
    let came = parts.arrived(0, 2).await? && parts.arrived(2, 2).await?;
    if came {
        receive.read(2, &mut [0])?;
    }
    hood.group_mut().barrier().await?;
    for slot in 0..3 {
        parts.ready_range(slot, 0..2).await?;
    }
    parts.wait().await?;
    hood.group_mut().barrier().await?;
    Ok(u64::from(came))
}

#[test]
fn queues_send_partitions_while_all_compute() {
    for form in [Form::Fast, Form::Mrc] {
        let outcome = fx100(4).ranks_per_node(1).run(&async |fabric| offloaded(fabric, form).await).unwrap();
        assert_eq!(outcome.outs.iter().sum::<u64>(), 4, "{form}");
    }
}

/// Polls a future until it completes, on any thread.
fn drive<T>(future: impl core::future::Future<Output = T>) -> T {
    let mut future = core::pin::pin!(future);
    let mut cx = core::task::Context::from_waker(core::task::Waker::noop());
    loop {
        match future.as_mut().poll(&mut cx) {
            core::task::Poll::Ready(done) => return done,
            core::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

#[test]
fn threads_of_a_rank_mark_and_look() {
    fn shared<T: Send + Sync>(_: &T) {}
    for form in [Form::Fast, Form::Mrc, Form::Cpu] {
        let run = threads(2).run_with(|fabric| {
            drive(async {
                let mut hood = neighbours(&fabric).await?;
                let me = hood.group().me() as u64;
                let (send, receive, mut parts) = threes(&mut hood, form).await?;
                shared(&parts);
                for k in 1..=20 {
                    parts.start().await?;
                    std::thread::scope(|scope| {
                        for partition in 0..3 {
                            let (parts, send, receive) = (&parts, &send, &receive);
                            scope.spawn(move || {
                                for slot in [0, 2] {
                                    send.write(3 * slot + partition, &[k << 8 | me]).unwrap();
                                    drive(parts.ready(slot, partition)).unwrap();
                                }
                                for slot in [0, 2] {
                                    while !drive(parts.arrived(slot, partition)).unwrap() {
                                        std::thread::yield_now();
                                    }
                                    let mut got = [0];
                                    receive.read(3 * slot + partition, &mut got).unwrap();
                                    assert_eq!(got, [k << 8 | (1 - me)], "{form}: {partition} of {slot}");
                                }
                            });
                        }
                    });
                    parts.wait().await?;
                }
                hood.group_mut().barrier().await?;
                Ok(())
            })
        });
        run.unwrap();
    }
}
