//! What ranks do under exploration, and what must hold.
//!
//! Each word that is sent says its iteration, its sender and its slot. Between `wait` and the next `start` a rank reads what it has received; the explorer lets it
//! do so at once and as late as can be. So it sees what came too late, too early, torn or twice.

use explore::{
    ExploreFabric, Explorer, Probe,
    mutant::{Mutant, Mutation},
};
use prdma_offload::{
    Buffer, Layout, Neighbourhood, Options, Partitioned, Point, Request, Topology, points_init, start_all, wait_all,
};
use rdma_fabric::{Caps, Group, ProgramResult, PutOrder, Rank, SessionFabric};
use std::pin::Pin;

pub(crate) type Run = Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

/// Which call makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// One request for all edges.
    Whole,
    /// One request for each edge; waited for together.
    Points,
    /// Blocks of so many partitions, marked from the last to the first.
    Parts(usize),
}

/// A job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Of each member, whom it sends to, slot by slot.
    pub(crate) edges: &'static [&'static [usize]],
    pub(crate) call: Call,
    /// Words of a block.
    pub(crate) words: usize,
    pub(crate) iterations: u64,
    /// Whether members look once with `test` before they wait.
    pub(crate) looks: bool,
    pub(crate) order: PutOrder,
    /// Whether no operation is ever over when it is posted.
    pub(crate) slow: bool,
    /// So many states at least: fewer would mean that something is not explored any more.
    pub(crate) at_least: u64,
    /// Explored by `cargo test`, and by `cargo xtask explore --quick`.
    pub(crate) quick: bool,
}

/// Facts, the first of a row by rank: whether the set-up is over, and iterations that have ended.
const SET_UP: u32 = 0;
const ENDED: u32 = 100;

impl Case {
    pub(crate) fn ranks(&self) -> usize {
        self.edges.len()
    }

    /// Whom member `me` receives from, slot by slot, and the sender's slot.
    fn sources(&self, me: usize) -> Vec<(usize, usize)> {
        let edges = self.edges.iter().enumerate();
        let from = edges.flat_map(|(member, to)| to.iter().enumerate().map(move |(slot, to)| (member, slot, *to)));
        from.filter(|(_, _, to)| *to == me).map(|(member, slot, _)| (member, slot)).collect()
    }
}

/// A word that is sent; never 0.
fn content(iteration: u64, member: usize, slot: usize, word: usize) -> u64 {
    0xDA7A << 48 | iteration << 24 | (member as u64) << 16 | (slot as u64) << 8 | word as u64
}

/// What `me` sends in an iteration.
fn sent(case: &Case, me: usize, iteration: u64) -> Vec<u64> {
    let slots = 0..case.edges[me].len();
    slots.flat_map(|slot| (0..case.words).map(move |word| content(iteration, me, slot, word))).collect()
}

/// What `me` has received after an iteration: zeros before the first.
fn received(case: &Case, me: usize, iteration: u64) -> Vec<u64> {
    let of = |(member, slot)| (0..case.words).map(move |word| content(iteration, member, slot, word));
    let all = case.sources(me).into_iter().flat_map(of);
    all.map(|word| if iteration == 0 { 0 } else { word }).collect()
}

/// One member's part. `begun` is told when the set-up is over.
pub(crate) async fn exchange<F: SessionFabric>(
    fabric: F,
    probe: Probe,
    case: Case,
    begun: impl FnOnce(),
) -> ProgramResult<()> {
    let mut group = Group::world(&fabric).await?;
    let me = group.me();
    let to = case.edges[me];
    let from: Vec<usize> = case.sources(me).into_iter().map(|(member, _)| member).collect();
    let send = Buffer::<F, u64>::new(&fabric, case.words * to.len())?;
    let receive = Buffer::<F, u64>::new(&fabric, case.words * from.len())?;
    let block = |slot: usize| Layout::contiguous::<u64>(slot * case.words, case.words);
    let (sends, receives) = (blocks(to, block)?, blocks(&from, block)?);
    let options = Options { budget: 0, ..Options::default() };
    let topology = Topology::graph(case.ranks(), me, &from, to)?;
    let mut requests = match case.call {
        Call::Whole => {
            let mut hood = Neighbourhood::new(group, topology).await?;
            Requests::Plain(vec![hood.alltoallw_init(&send, &sends, &receive, &receives, &options).await?])
        }
        Call::Points => {
            let points = |members: &[usize], buffer: &Buffer<F, u64>, blocks: Vec<Layout>| {
                let points = members.iter().zip(blocks);
                points.map(|(member, block)| Point::new(*member, 0, buffer, block)).collect::<Vec<_>>()
            };
            let (to, from) = (points(to, &send, sends), points(&from, &receive, receives));
            let (mut sends, receives) = points_init(&mut group, to, from, &options).await?;
            sends.extend(receives);
            Requests::Plain(sends)
        }
        Call::Parts(parts) => {
            let mut hood = Neighbourhood::new(group, topology).await?;
            let request = hood.partitioned_init(&send, &sends, &receive, &receives, parts, &options).await?;
            Requests::Parts(Box::new(request))
        }
    };
    begun();
    probe.set(SET_UP + me as u32, 1);
    probe.step(0);
    let mut got = vec![0; case.words * from.len()];
    for iteration in 1..=case.iterations {
        receive.read(0, &mut got)?;
        assert_eq!(
            got,
            received(&case, me, iteration - 1),
            "of rank {me}, between iterations {} and {iteration}",
            iteration - 1
        );
        send.write(0, &sent(&case, me, iteration))?;
        requests.carry_out(to.len(), case.looks).await?;
        probe.set(ENDED + me as u32, iteration);
        probe.step(iteration);
    }
    receive.read(0, &mut got)?;
    assert_eq!(got, received(&case, me, case.iterations), "of rank {me}, at the end");
    Ok(())
}

fn blocks<E>(slots: &[usize], block: impl Fn(usize) -> Result<Layout, E>) -> Result<Vec<Layout>, E> {
    (0..slots.len()).map(block).collect()
}

enum Requests<F: SessionFabric> {
    Plain(Vec<Request<F>>),
    Parts(Box<Partitioned<F>>),
}

impl<F: SessionFabric> Requests<F> {
    /// From start to end.
    async fn carry_out(&mut self, slots: usize, looks: bool) -> ProgramResult<()> {
        match self {
            Requests::Plain(requests) => {
                start_all(requests).await?;
                if looks {
                    for request in requests.iter_mut() {
                        request.test().await?;
                    }
                }
                wait_all(requests).await?;
            }
            Requests::Parts(request) => {
                request.start().await?;
                for partition in (0..request.partitions()).rev() {
                    for slot in 0..slots {
                        request.ready(slot, partition).await?;
                    }
                }
                if looks {
                    request.test().await?;
                }
                request.wait().await?;
            }
        }
        Ok(())
    }
}

/// A fabric on which nothing is over when it is posted.
#[derive(Debug)]
struct Slow;

impl Mutation for Slow {
    fn nop_at_once(&self) -> bool {
        false
    }
}

/// [`exchange`] for each rank.
pub(crate) fn job(case: Case) -> impl Fn(ExploreFabric) -> Run {
    move |fabric| {
        let probe = fabric.probe();
        match case.slow {
            true => Box::pin(exchange(Mutant::new(fabric, Slow), probe, case, || {})),
            false => Box::pin(exchange(fabric, probe, case, || {})),
        }
    }
}

/// What must hold of it.
pub(crate) fn explorer(case: &Case) -> Explorer<'static> {
    let (ranks, last) = (case.ranks() as u32, case.iterations);
    let mut caps = Caps::weakest();
    caps.put_order = case.order;
    let explorer = Explorer::new(case.ranks()).caps(caps).set_up(SET_UP);
    let edges = case.edges.iter().enumerate();
    let edges = edges.flat_map(|(from, to)| to.iter().map(move |to| [from, *to])).filter(|[from, to]| from != to);
    let edges: Vec<[u32; 2]> = edges.map(|edge| edge.map(|rank| ENDED + rank as u32)).collect();
    let first = edges.first().copied();
    let explorer = explorer
        .always("a sender is no more than one iteration ahead", move |view| {
            edges.iter().all(|[from, to]| view.fact(*from) <= view.fact(*to) + 1)
        })
        .at_end("all iterations have ended", move |view| {
            let any_lost = (0..ranks).any(|rank| view.is_lost(Rank::new(rank)));
            any_lost || (0..ranks).all(|rank| view.fact(ENDED + rank) == last)
        });
    match first {
        Some([from, to]) => {
            explorer.possible("a sender is one iteration ahead", move |view| view.fact(from) == view.fact(to) + 1)
        }
        None => explorer,
    }
}
