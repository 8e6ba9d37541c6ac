//! Charges for chains of SELFs: the network interface takes `queue_chain` once for a chain, and the
//! chains of different queues at the same time. The processor takes nothing for them.

use checks::jobs::virtual_time;
use prdma_offload::{Buffer, Cartesian, Collectives, Form, Neighbourhood, Options, Pipeline};
use rdma_fabric::{Fabric, Group, ProgramResult};
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
    /// With the neighbours at edges and corners as well.
    Corners(&'static [usize]),
}
use What::*;

/// Picoseconds of one start, and of one iteration.
async fn took(fabric: Fabric, what: What, form: Form) -> ProgramResult<[u64; 2]> {
    let group = Group::world(&fabric).await?;
    let options = Options::form(form);
    let buffer = |len| Buffer::<u64>::new(&fabric, len);
    let (send, receive) = (buffer(26)?, buffer(26)?);
    let (mut collectives, mut hood);
    let mut request = match what {
        Exchange(dims) | Corners(dims) => {
            let grid = Cartesian::new(dims, &vec![true; dims.len()])?;
            let me = group.me();
            let topology = if matches!(what, Corners(_)) { grid.moore(me) } else { grid.topology(me) };
            hood = Neighbourhood::new(group, topology).await?;
            hood.alltoall_init(&send, &receive, 1, &options).await?
        }
        Barrier => {
            collectives = Collectives::new(group).await?;
            collectives.barrier_init(&options).await?
        }
        Broadcast => {
            collectives = Collectives::new(group).await?;
            collectives.broadcast_init(0, &send, 0, 4, Pipeline::default(), &options).await?
        }
        Allreduce => {
            collectives = Collectives::new(group).await?;
            collectives.allreduce_init(&send, &receive, 1, u64::wrapping_add, &options).await?
        }
    };
    assert_eq!(request.form(), form);
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    let begun = fabric.now();
    request.start().await?;
    let started = fabric.now().picos_since(begun);
    request.wait().await?;
    let ended = fabric.now().picos_since(begun);
    world.barrier().await?;
    Ok([started, ended])
}

/// Returns the number of chains for which the slowest member waits in an iteration. A start waits
/// for none.
fn chains(members: usize, what: What, form: Form) -> u64 {
    const ONE: u64 = 1_000_000_000;
    let slowest = |chain| {
        let platform = Platform::fx100().with("queue_chain", chain).expect("it has that constant");
        let run = virtual_time(&platform, members).run(&async |fabric| took(fabric, what, form).await);
        let outs = run.expect("nothing goes wrong").outs;
        [0, 1].map(|part| outs.iter().map(|out| out[part]).max().unwrap_or(0))
    };
    let ([start, iteration], [start_without, without]) = (slowest(ONE), slowest(0));
    assert!(start - start_without < ONE / 100, "{what:?}, {form}: a start waits");
    // The members begin within some microseconds of each other.
    (iteration - without + ONE / 100) / ONE
}

#[test]
fn an_iteration_waits_for_one_chain_however_many_queues_have_one() {
    let (line, plane, corners) = (Exchange(&[4]), Exchange(&[2, 2]), Corners(&[3, 3, 3]));
    for (members, what, form, each) in [
        (4, line, Form::Fast, 0),
        (4, line, Form::Mrc, 1),
        (4, plane, Form::Fast, 0),
        (4, plane, Form::Queues(2), 1),
        (4, plane, Form::Queues(3), 1),
        (4, plane, Form::Mrc, 1),
        (4, plane, Form::Cpu, 0),
        // Several SELFs release one another.
        (27, corners, Form::Mrc, 1),
        (27, corners, Form::Queues(2), 1),
    ] {
        assert_eq!(chains(members, what, form), each, "{what:?}, {form}");
    }
}

#[test]
fn collectives_without_steps_in_between_have_no_chain() {
    for what in [Barrier, Allreduce, Broadcast] {
        for members in [2, 4].into_iter().filter(|_| !matches!(what, Broadcast)) {
            assert_eq!(chains(members, what, Form::Fast), 0, "{what:?} of {members}");
        }
        assert!(chains(8, what, Form::Fast) > 0, "{what:?}");
        assert_eq!(chains(8, what, Form::Cpu), 0, "{what:?}");
    }
}
