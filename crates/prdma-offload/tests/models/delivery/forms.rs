//! A fabric without control queues: the reason for a requested form that is not available.

use explore::Explorer;
use prdma_offload::{
    Buffer, Collectives, Form, Layout, Neighbourhood, Options, Point, PrdmaError, Topology, points_init,
};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult};

/// Returns the form and the obstacle of each call that makes a request.
async fn requests(fabric: Fabric, mine: Options) -> ProgramResult<Vec<(Form, Option<PrdmaError>)>> {
    let group = Group::world(&fabric).await?;
    let (me, other) = (group.me(), 1 - group.me());
    let (send, receive) = (Buffer::<u64>::new(&fabric, 1)?, Buffer::<u64>::new(&fabric, 1)?);
    let block = [Layout::contiguous::<u64>(0, 1)?];
    let mut hood = Neighbourhood::new(group, Topology::graph(2, me, &[other], &[other])?).await?;
    let whole = hood.alltoallw_init(&send, &block, &receive, &block, &mine).await?;
    let parts = hood.partitioned_init(&send, &block, &receive, &block, 1, &mine).await?;
    let mut made = vec![(whole.form(), whole.obstacle().cloned()), (parts.form(), parts.obstacle().cloned())];
    let mut group = Group::world(&fabric).await?;
    let point = |buffer| vec![Point::new(other, 0, buffer, block[0])];
    let (sends, receives) = points_init(&mut group, point(&send), point(&receive), &mine).await?;
    made.extend(sends.iter().chain(&receives).map(|request| (request.form(), request.obstacle().cloned())));
    let mut collectives = Collectives::new(group).await?;
    let barrier = collectives.barrier_init(&mine).await?;
    made.push((barrier.form(), barrier.obstacle().cloned()));
    fabric.flush_all().await?;
    Ok(made)
}

/// Rank 0 requests `mine`, rank 1 `theirs`; all requests report the obstacles `why` at rank 0 and
/// rank 1.
fn made(mine: Options, theirs: Options, why: [Option<PrdmaError>; 2]) {
    let sample = Explorer::new(2).leave_together().sample(1, 20, move |fabric| {
        let me = fabric.rank().index();
        let (options, why) = ([mine, theirs][me], why[me].clone());
        async move {
            for (form, obstacle) in requests(fabric, options).await? {
                assert_eq!((form, &obstacle), (Form::Cpu, &why), "rank {me} asked for {options:?}");
            }
            Ok(())
        }
    });
    assert!(sample.failure.is_none(), "{sample}");
}

#[test]
fn without_queues_each_form_but_one_says_why_it_became_that_one() {
    let none = || Some(PrdmaError::Fabric(FabricError::Unsupported { feature: &"control queues" }));
    for form in [Form::Fast, Form::Queues(2), Form::Mrc] {
        made(Options::form(form), Options::form(form), [none(), none()]);
    }
}

#[test]
fn a_form_that_was_wished_for_needs_no_reason() {
    let cpu = Options::form(Form::Cpu);
    let frugal = Options { budget: 0, ..Options::default() };
    made(cpu, cpu, [None, None]);
    made(frugal, frugal, [None, None]);
}

#[test]
fn a_member_with_its_wish_receives_no_error() {
    let none = Some(PrdmaError::Fabric(FabricError::Unsupported { feature: &"control queues" }));
    made(Options::default(), Options::form(Form::Cpu), [none, None]);
}
