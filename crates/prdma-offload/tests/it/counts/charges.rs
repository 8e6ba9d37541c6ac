//! Charges for SELFs: `software.prdma.chain` once for each queue that has any, regardless of which
//! of the member's queues they release.

use checks::jobs::virtual_time;
use prdma_offload::{Buffer, Cartesian, Collectives, Form, Neighbourhood, Options, Pipeline};
use rdma_fabric::{Group, ProgramResult};
use tofu2_virt::Platform;

/// The operation that is started.
#[derive(Clone, Copy, Debug)]
enum What {
    Barrier,
    Allreduce,
    /// From member 0.
    Broadcast,
    /// With both neighbours of each dimension.
    Exchange(&'static [usize]),
}
use What::*;
use rdma_fabric::Fabric;

/// Picoseconds of one start.
async fn started(fabric: Fabric, what: What, form: Form) -> ProgramResult<u64> {
    let group = Group::world(&fabric).await?;
    let options = Options::form(form);
    let buffer = |len| Buffer::<u64>::new(&fabric, len);
    let (send, receive) = (buffer(4)?, buffer(4)?);
    let (mut collectives, mut hood);
    let mut request = if let Exchange(dims) = what {
        let topology = Cartesian::new(dims, &vec![true; dims.len()])?.topology(group.me());
        hood = Neighbourhood::new(group, topology).await?;
        hood.alltoall_init(&send, &receive, 1, &options).await?
    } else {
        collectives = Collectives::new(group).await?;
        match what {
            Broadcast => collectives.broadcast_init(0, &send, 0, 4, Pipeline::default(), &options).await?,
            Allreduce => collectives.allreduce_init(&send, &receive, 1, u64::wrapping_add, &options).await?,
            _ => collectives.barrier_init(&options).await?,
        }
    };
    assert_eq!(request.form(), form);
    let begun = fabric.now();
    request.start().await?;
    let took = fabric.now().picos_since(begun);
    request.wait().await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    Ok(took)
}

/// Returns the number of charges of a start at each member.
fn charges(members: usize, what: What, form: Form) -> Vec<u64> {
    const ONE: u64 = 1_000_000_000;
    let starts = |chain| {
        let platform = Platform::fx100().with("software.prdma.chain", chain).expect("it has that constant");
        virtual_time(&platform, members)
            .run(&async |fabric| started(fabric, what, form).await)
            .expect("nothing goes wrong")
            .outs
    };
    let charged = starts(ONE).into_iter().zip(starts(0)).map(|(with, without)| with - without);
    charged.inspect(|more| assert_eq!(more % ONE, 0, "{what:?}, {form}")).map(|more| more / ONE).collect()
}

#[test]
fn each_queue_with_selfs_is_charged_once() {
    // All steps except the first and the last.
    for what in [Barrier, Allreduce] {
        for (members, selfs) in [(2, 0), (4, 0), (8, 1), (32, 3)] {
            assert_eq!(charges(members, what, Form::Fast), vec![selfs; members], "{what:?} of {members}");
        }
        // The root.
        assert_eq!(charges(8, what, Form::Mrc), [1, 0, 0, 0, 0, 0, 0, 0], "{what:?}");
        assert_eq!(charges(8, what, Form::Cpu), [0; 8], "{what:?}");
    }
    // Only the members that forward the data are charged.
    assert_eq!(charges(8, Broadcast, Form::Fast), [0, 0, 1, 0, 1, 0, 1, 0]);
    assert_eq!(charges(8, Broadcast, Form::Mrc), [1, 0, 0, 0, 0, 0, 0, 0]);
    let (line, plane) = (Exchange(&[4]), Exchange(&[2, 2]));
    for (what, form, each) in [
        (line, Form::Fast, 0),
        (line, Form::Mrc, 1),
        (plane, Form::Fast, 0),
        (plane, Form::Queues(2), 2),
        (plane, Form::Queues(3), 1),
        (plane, Form::Mrc, 1),
        (plane, Form::Cpu, 0),
    ] {
        assert_eq!(charges(4, what, form), [each; 4], "{what:?}, {form}");
    }
}
