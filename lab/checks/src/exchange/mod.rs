//! Persistent exchanges: the jobs that are checked, and the program of a member, for any checker.
//!
//! Each word that is sent holds its iteration, its sender and its slot. Between the end of an
//! iteration and the next start, a rank reads its received data, and so detects data that arrived
//! too late, too early, torn or twice.

mod cases;
mod delivery;
mod mutants;

pub use cases::{CASES, CIRCLE, LOOP, ONE_WAY, PAIR, called, case, slow, small};
pub use delivery::{explorer, job};
pub use mutants::{ExchangeMutant, MUTANTS, MutantCase, MutatedExchange};

use crate::exploration::{Expected, Exploration, Size};
use prdma_offload::{
    Buffer, Layout, Neighbourhood, Options, Partitioned, Point, PrdmaError, Request, Topology, points_init, start_all,
    wait_all,
};
use rdma_fabric::{Fabric, Group, ProgramResult, PutOrder};

/// Returns all explorations.
pub fn explorations() -> impl Iterator<Item = Exploration> {
    let right = CASES.iter().map(|case| {
        let expected = Expected::Exhausted { at_least: case.at_least };
        let name = format!("exchange: {}", case.name);
        Exploration::new(name, expected, move || explorer(case), job(*case)).of_size(case.size)
    });
    let wrong = MUTANTS.iter().map(|mutant| {
        let expected = Expected::Violated { saying: "", within: u64::MAX };
        let name = format!("exchange: {}", mutant.name());
        Exploration::new(name, expected, move || explorer(&mutant.case), mutant.job())
    });
    right.chain(wrong)
}

/// The call that creates the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// One request for all edges.
    Whole,
    /// One request for each edge, all awaited together.
    Points,
    /// Blocks of this many partitions, marked ready from the last to the first.
    Partitions(usize),
}

/// A job that exchanges data.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name in lists.
    pub name: &'static str,
    /// For each member, the members to which it sends, slot by slot.
    pub edges: &'static [&'static [usize]],
    /// The call that creates the requests.
    pub call: Call,
    /// The number of words in a block.
    pub words: usize,
    /// The number of iterations.
    pub iterations: u64,
    /// Whether members call `test` once before they wait.
    pub looks: bool,
    /// Whether members write the data they send, and read the data they receive, in views.
    pub views: bool,
    /// The order in which the fabric delivers puts.
    pub order: PutOrder,
    /// Whether puts arrive in the order posted.
    pub puts_in_order: bool,
    /// Whether operations never complete when they are posted.
    pub slow: bool,
    /// The rank that may die at any moment, if one may.
    pub mortal: Option<usize>,
    /// The minimum number of states: fewer would mean that part of the job is no longer explored.
    pub at_least: u64,
    /// The size of its exploration.
    pub size: Size,
}

impl Case {
    /// Returns the number of ranks, each of which is a member.
    pub fn ranks(&self) -> usize {
        self.edges.len()
    }

    /// Returns whether two members exchange something.
    fn are_neighbours(&self, one: usize, other: usize) -> bool {
        self.edges[one].contains(&other) || self.edges[other].contains(&one)
    }

    /// Returns the members from which `me` receives, slot by slot, each with the sender's slot.
    fn sources(&self, me: usize) -> Vec<(usize, usize)> {
        let edges = self.edges.iter().enumerate();
        let from = edges.flat_map(|(member, to)| to.iter().enumerate().map(move |(slot, to)| (member, slot, *to)));
        from.filter(|(_, _, to)| *to == me).map(|(member, slot, _)| (member, slot)).collect()
    }
}

/// Returns a word that is sent; never 0.
fn content(iteration: u64, member: usize, slot: usize, word: usize) -> u64 {
    0xDA7A << 48 | iteration << 24 | (member as u64) << 16 | (slot as u64) << 8 | word as u64
}

/// Returns the words that `me` sends in an iteration.
fn sent(case: &Case, me: usize, iteration: u64) -> Vec<u64> {
    let slots = 0..case.edges[me].len();
    slots.flat_map(|slot| (0..case.words).map(move |word| content(iteration, me, slot, word))).collect()
}

/// Returns the words that `me` has received after an iteration; zeros for iteration 0.
fn received(case: &Case, me: usize, iteration: u64) -> Vec<u64> {
    let of = |(member, slot)| (0..case.words).map(move |word| content(iteration, member, slot, word));
    let all = case.sources(me).into_iter().flat_map(of);
    all.map(|word| if iteration == 0 { 0 } else { word }).collect()
}

/// A member whose set-up has completed.
#[derive(Debug)]
pub struct Member {
    case: Case,
    me: usize,
    send: Buffer<u64>,
    receive: Buffer<u64>,
    requests: Requests,
}

impl Member {
    /// Sets a member up. Collective; `buffer` allocates the given number of words.
    ///
    /// # Errors
    /// The errors of the calls that create requests.
    pub async fn new(
        fabric: &Fabric,
        case: Case,
        buffer: impl Fn(usize) -> Result<Buffer<u64>, PrdmaError>,
    ) -> ProgramResult<Self> {
        let mut group = Group::world(fabric).await?;
        let me = group.me();
        let to = case.edges[me];
        let from: Vec<usize> = case.sources(me).into_iter().map(|(member, _)| member).collect();
        let (send, receive) = (buffer(case.words * to.len())?, buffer(case.words * from.len())?);
        let block = |slot: usize| Layout::contiguous::<u64>(slot * case.words, case.words);
        let (sends, receives) = (blocks(to, block)?, blocks(&from, block)?);
        let options = Options { budget: 0, ..Options::default() };
        let topology = Topology::graph(case.ranks(), me, &from, to)?;
        let requests = match case.call {
            Call::Whole => {
                let mut hood = Neighbourhood::new(group, topology).await?;
                Requests::Plain(vec![hood.alltoallw_init(&send, &sends, &receive, &receives, &options).await?])
            }
            Call::Points => {
                let points = |members: &[usize], buffer: &Buffer<u64>, blocks: Vec<Layout>| {
                    let points = members.iter().zip(blocks);
                    points.map(|(member, block)| Point::new(*member, 0, buffer, block)).collect::<Vec<_>>()
                };
                let (to, from) = (points(to, &send, sends), points(&from, &receive, receives));
                let (mut sends, receives) = points_init(&mut group, to, from, &options).await?;
                sends.extend(receives);
                Requests::Plain(sends)
            }
            Call::Partitions(parts) => {
                let mut hood = Neighbourhood::new(group, topology).await?;
                let request = hood.partitioned_init(&send, &sends, &receive, &receives, parts, &options).await?;
                Requests::Partitions(Box::new(request))
            }
        };
        Ok(Member { case, me, send, receive, requests })
    }

    /// Returns its number in the group.
    pub fn number(&self) -> usize {
        self.me
    }

    /// Checks that the data received is that of `iteration`.
    ///
    /// # Errors
    /// The errors of [`Buffer::to_vec`].
    ///
    /// # Panics
    /// If the data is not that of `iteration`.
    pub fn look(&self, iteration: u64) -> ProgramResult<()> {
        let me = self.me;
        let got = match self.case.views {
            true => self.receive.view(0..self.receive.len())?.to_vec(),
            false => self.receive.to_vec()?,
        };
        assert_eq!(got, received(&self.case, me, iteration), "of rank {me}, after iteration {iteration}");
        Ok(())
    }

    /// Checks the results of the preceding iteration, and starts this one.
    ///
    /// # Errors
    /// The errors of [`Member::look`] and [`Request::start`].
    pub async fn begin(&mut self, iteration: u64) -> ProgramResult<()> {
        self.look(iteration - 1)?;
        let sent = sent(&self.case, self.me, iteration);
        match self.case.views {
            true => self.send.view_mut(0..sent.len())?.copy_from_slice(&sent),
            false => self.send.write(0, &sent)?,
        }
        self.requests.start(self.case.edges[self.me].len()).await
    }

    /// Waits for the end of the iteration.
    ///
    /// # Errors
    /// The errors of [`Request::wait`].
    pub async fn end(&mut self) -> ProgramResult<()> {
        self.requests.wait(self.case.looks).await
    }
}

fn blocks<E>(slots: &[usize], block: impl Fn(usize) -> Result<Layout, E>) -> Result<Vec<Layout>, E> {
    (0..slots.len()).map(block).collect()
}

#[derive(Debug)]
enum Requests {
    Plain(Vec<Request>),
    Partitions(Box<Partitioned>),
}

impl Requests {
    async fn start(&mut self, slots: usize) -> ProgramResult<()> {
        match self {
            Requests::Plain(requests) => start_all(requests).await?,
            Requests::Partitions(request) => {
                request.start().await?;
                for partition in (0..request.partitions()).rev() {
                    for slot in 0..slots {
                        request.ready(slot, partition).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn wait(&mut self, looks: bool) -> ProgramResult<()> {
        match self {
            Requests::Plain(requests) => {
                if looks {
                    for request in requests.iter_mut() {
                        request.test().await?;
                    }
                }
                wait_all(requests).await?;
            }
            Requests::Partitions(request) => {
                if looks {
                    request.test().await?;
                }
                request.wait().await?;
            }
        }
        Ok(())
    }
}
