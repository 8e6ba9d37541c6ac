//! The cost of making an exchange for its members, counted in virtual time, which reveals
//! superfluous rounds over the group.
//!
//! An agreement of 8 members takes three steps, of two puts each; a barrier three, of one. Making
//! an exchange takes
//! * an agreement that the blocks are valid, and on [aggregation](Aggregation);
//! * a table of the block of each edge (two barriers), and an agreement that both ends expect the
//!   same;
//! * one on the form, one on the most neighbours, one that queues are open everywhere;
//! * a table of addresses (two barriers), and an agreement that all have found theirs.

use crate::fx100;
use checks::jobs::threads;
use prdma_offload::{Aggregation, Buffer, Form, Neighbourhood, Options, PrdmaError, Side, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult};

const MEMBERS: usize = 8;
const AGREEMENT: u64 = 3 * 2;
const BARRIER: u64 = 3;

/// A ring, or all-to-all, with blocks of one word.
struct Maker {
    hood: Neighbourhood,
    send: Buffer<u64>,
    receive: Buffer<u64>,
}

impl Maker {
    async fn new(fabric: &Fabric, neighbours: impl Fn(usize) -> Vec<usize>) -> prdma_offload::Result<Self> {
        let group = Group::world(fabric).await?;
        let (me, members) = (group.me(), group.len());
        let to = neighbours(me);
        let topology = Topology::graph(members, me, &to, &to).expect("members of the group");
        let (send, receive) = (Buffer::new(fabric, to.len())?, Buffer::new(fabric, to.len())?);
        Ok(Maker { hood: Neighbourhood::new(group, topology).await?, send, receive })
    }

    /// The sent blocks start at element `at`.
    async fn make(&mut self, at: usize, options: &Options) -> prdma_offload::Result<Aggregation> {
        let (send, receive) = (&self.send, &self.receive);
        let blocks = |at| (0..send.len()).map(|slot| (slot + at, 1)).collect::<Vec<_>>();
        let request = self.hood.alltoallv_init(send, &blocks(at), receive, &blocks(0), options).await?;
        Ok(request.aggregation())
    }
}

/// Makes a request `times` times, and returns the duration in nanoseconds.
async fn making(fabric: Fabric, options: Options, times: u64) -> ProgramResult<u64> {
    let ring = |me| vec![(me + MEMBERS - 1) % MEMBERS, (me + 1) % MEMBERS];
    let mut maker = Maker::new(&fabric, ring).await?;
    maker.hood.group_mut().barrier().await?;
    let begun = fabric.now();
    for _ in 0..times {
        maker.make(0, &options).await?;
    }
    Ok(fabric.now().picos_since(begun) / 1000)
}

/// Puts of each member for each request it makes, and nanoseconds at the slowest.
fn cost(options: Options, on_node: u32) -> (u64, u64) {
    let run = |times| {
        let job = fx100(MEMBERS).ranks_per_node(on_node).count_ops(true);
        let run = job.run(&async |fabric| making(fabric, options, times).await).expect("nothing goes wrong");
        let puts: Vec<u64> = run.ops_by_rank.expect("they are counted").iter().map(|ops| ops.puts).collect();
        assert!(puts.iter().all(|other| *other == puts[0]), "{puts:?}");
        (puts[0], run.outs.into_iter().max().expect("there are members"))
    };
    let ((one, once), (three, thrice)) = (run(1), run(3));
    ((three - one) / 2, (thrice - once) / 2)
}

#[test]
fn without_aggregation_there_is_no_round_for_it() {
    for (form, agreements) in [(Form::Fast, 6), (Form::Mrc, 6), (Form::Cpu, 5)] {
        let (puts, nanos) = cost(Options::form(form), 1);
        println!("{form}: {puts} puts of each member, {nanos} ns");
        assert_eq!(puts, agreements * AGREEMENT + 4 * BARRIER, "{form}");
    }
}

/// Makes an exchange for which members request different aggregations, with a block of member 1
/// outside its buffer, then a valid one; returns the result.
async fn disagreeing(fabric: Fabric, wishes: [Aggregation; 4]) -> ProgramResult<Aggregation> {
    let others = |me| (0..4).filter(|other| *other != me).collect();
    let mut maker = Maker::new(&fabric, others).await?;
    let me = maker.hood.group().me();
    let options = Options { aggregation: wishes[me], ..Options::default() };
    let told = maker.make(usize::from(me == 1), &options).await;
    let outside = PrdmaError::OutOfBounds { side: Side::Destination, slot: 2, end: 32, len: 24 };
    assert_eq!(told, Err(if me == 1 { outside } else { PrdmaError::ElsewhereFailed }), "member {me}");
    Ok(maker.make(0, &options).await?)
}

/// By node only if all members request it, with the minimum of all numbers; an error of one member
/// becomes an error of all, regardless of their requests.
#[test]
fn wishes_and_errors_are_agreed_on_in_one_round() {
    let by = |longest, gap| Aggregation::ByNode { longest, gap };
    let most = by(u64::MAX, u64::MAX);
    for (wishes, want) in [
        ([most; 4], most),
        ([most, most, most, by(u64::MAX - 1, 7)], by(u64::MAX, 7)),
        ([by(100, 8), most, by(60, 9), most], by(60, 8)),
        ([most, Aggregation::None, most, most], Aggregation::None),
        ([Aggregation::None, most, Aggregation::None, Aggregation::None], Aggregation::None),
        ([most, most, by(0, 0), most], Aggregation::None),
        ([Aggregation::None; 4], Aggregation::None),
    ] {
        let program = async move |fabric| disagreeing(fabric, wishes).await;
        let outs = fx100(4).ranks_per_node(2).run(&program).expect("nothing goes wrong").outs;
        assert_eq!(outs, [want; 4], "{wishes:?}");
        assert_eq!(threads(4).ranks_per_node(2).run(&program).expect("nothing goes wrong"), outs, "{wishes:?}");
    }
}
