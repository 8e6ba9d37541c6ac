//! Puts that the CPU issues before a wait leave while the program computes.

use crate::fx100;
use checks::jobs::threads;
use prdma_offload::{Buffer, Form, Layout, Options, Point, Request, exchange_init};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::Duration;

const LATE: Duration = Duration::from_micros(100);
const BUSY: Duration = Duration::from_millis(1);

/// Exchanges a number with the other rank of two.
async fn request(fabric: &Fabric, form: Form) -> ProgramResult<(Request, Buffer<u64>)> {
    let mut group = Group::world(fabric).await?;
    let (me, other) = (group.me(), 1 - group.me());
    let (send, receive) = (Buffer::<u64>::new(fabric, 1)?, Buffer::<u64>::new(fabric, 1)?);
    send.view_mut(0..1)?[0] = 7 + me as u64;
    let one = Layout::contiguous::<u64>(0, 1)?;
    let (out, inn) = (vec![Point::new(other, 0, &send, one)], vec![Point::new(other, 0, &receive, one)]);
    Ok((exchange_init(&mut group, out, inn, &Options { form, ..Options::default() }).await?, receive))
}

/// Rank 1 is ready late, when rank 0 computes or issues. Returns the duration of the iteration.
async fn iteration(fabric: Fabric, form: Form, issues: bool) -> ProgramResult<Duration> {
    let (mut request, receive) = request(&fabric, form).await?;
    let begun = fabric.now();
    let me = fabric.rank().index();
    if me == 1 {
        fabric.compute(LATE).await;
    }
    request.issue().await?;
    request.start().await?;
    if issues {
        request.issue().await?;
        request.issue().await?;
    }
    if me == 0 {
        fabric.compute(BUSY).await;
    }
    request.wait().await?;
    let took = fabric.now() - begun;
    assert_eq!(receive.view(0..1)?[0], 8 - me as u64);
    Ok(took)
}

#[test]
fn issued_puts_leave_while_the_program_computes() {
    let took = |form, issues| {
        let outs = fx100(2).run(&async |fabric| iteration(fabric, form, issues).await).expect("virtual time").outs;
        outs[1]
    };
    assert!(took(Form::Cpu, false) > BUSY, "without, they leave in the wait");
    assert!(took(Form::Cpu, true) < 2 * LATE);
    for issues in [false, true] {
        assert!(took(Form::Fast, issues) < 2 * LATE, "session queues issue alone");
    }
}

#[test]
fn threads_issue() {
    for form in [Form::Cpu, Form::Fast] {
        threads(2).run(&async |fabric| iteration(fabric, form, true).await).expect("threads");
    }
}
