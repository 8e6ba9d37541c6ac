//! Messages between two ranks: latency and bandwidth by size (paper, figure 7 and table 1), and
//! with many posted receives (table 2).

use super::{Library, blacs::OnBlacs, mpi::Mpi};
use crate::{RankFuture, Together};
use fmpl::{Communicator, Fmpl, Options, Receiving};
use rdma_fabric::{Deps, Fabric, Prepared, ProgramResult, Rank, Region, op::Put, op::PutDescriptor};

/// One end of a ping-pong.
enum End {
    Tcw { fabric: Fabric, home: Region, puts: Option<Prepared<PutDescriptor<u8>>> },
    Fmpl { fmpl: Box<Fmpl>, source: Vec<u8>, into: fmpl::Buffer<u8> },
    Blacs(Box<OnBlacs>),
    Mpi(Box<Mpi>),
}

impl End {
    async fn new(fabric: &Fabric, library: Library, longest: usize) -> ProgramResult<Self> {
        Ok(match library {
            Library::Tcw => {
                let home = fabric.alloc_symmetric(2 * longest).await?;
                End::Tcw { fabric: fabric.clone(), home, puts: None }
            }
            Library::Mpi(memory) => End::Mpi(Box::new(Mpi::new(fabric, memory, false, longest).await?)),
            Library::BlacsMpi(memory) => End::Mpi(Box::new(Mpi::new(fabric, memory, true, longest).await?)),
            Library::BlacsFmpl => End::Blacs(Box::new(OnBlacs::new(fabric, longest).await?)),
            Library::Fmpl | Library::FmplSoftware => {
                let options = library.options(fabric.ranks()).unwrap_or_default();
                let fmpl = Box::new(Fmpl::init_with(fabric, options).await?);
                let into = fmpl.world().buffer(longest)?;
                End::Fmpl { fmpl, source: vec![0; longest], into }
            }
        })
    }

    /// Prepares messages of one size.
    async fn prepare(&mut self, bytes: usize, peer: usize) -> ProgramResult<()> {
        if let End::Tcw { fabric, home, puts } = self {
            let longest = home.len() / 2;
            let to = fabric.remote_span::<u8>(home.at(Rank::new(peer as u32), 0), bytes)?;
            let from = home.span(fabric, longest, bytes)?;
            *puts = Some(Prepared::new(fabric, Put { to: &to, from, notice: Some(0) }).await?);
        }
        Ok(())
    }

    async fn send(&mut self, peer: usize, bytes: usize) -> ProgramResult<()> {
        match self {
            End::Tcw { fabric, puts, .. } => {
                fabric.charge("fmpl.init").await;
                if let Some(put) = puts {
                    put.post().await?.await?;
                }
                Ok(())
            }
            End::Fmpl { fmpl, source, .. } => Ok(fmpl.world().send(&source[..bytes], peer, 0).await?),
            End::Blacs(blacs) => blacs.send(peer, bytes).await,
            End::Mpi(mpi) => mpi.send(peer, bytes).await,
        }
    }

    async fn receive(&mut self, peer: usize, bytes: usize) -> ProgramResult<()> {
        match self {
            End::Tcw { fabric, .. } => {
                fabric.next_notice(Deps::All).await?;
                Ok(())
            }
            End::Blacs(blacs) => blacs.receive(peer, bytes).await,
            End::Fmpl { fmpl, into, .. } => {
                let received = fmpl.world().recv(&into.slice(0..bytes)?, peer, 0).await?;
                assert_eq!(received.bytes, bytes);
                Ok(())
            }
            End::Mpi(mpi) => mpi.receive(peer, bytes).await,
        }
    }

    /// Returns the number of round trips after which all descriptors exist.
    fn warm_up(&self) -> u32 {
        match self {
            End::Blacs(_) => OnBlacs::WARM_UP,
            _ => 2,
        }
    }

    async fn end(self) -> ProgramResult<()> {
        match self {
            End::Fmpl { fmpl, .. } => Ok(fmpl.finalize().await?),
            End::Blacs(blacs) => blacs.end().await,
            End::Tcw { .. } | End::Mpi(_) => Ok(()),
        }
    }
}

/// Two ranks send each other messages of each size in turn, with `rounds` round trips after one
/// that is not counted. The result is half a round trip for each size, in picoseconds.
///
/// # Panics
/// If `rounds` is 0 or a message is too short.
pub fn ping_pong(
    fabric: Fabric,
    library: Library,
    sizes: Vec<usize>,
    rounds: u32,
    together: Together,
) -> RankFuture<Vec<u64>> {
    Box::pin(async move {
        let longest = sizes.iter().copied().max().unwrap_or(0).max(1);
        let (me, peer) = (fabric.rank().index(), 1 - fabric.rank().index());
        let mut end = End::new(&fabric, library, longest).await?;
        for number in 0..end.warm_up() {
            exchange(&mut end, me, peer, sizes.first().copied().unwrap_or(8), number).await?;
        }
        let inside = together.enter(&fabric).await?;
        let mut halves = Vec::with_capacity(sizes.len());
        for size in sizes {
            end.prepare(size, peer).await?;
            let mut begun = fabric.now();
            for round in 0..=rounds {
                if round == 1 {
                    begun = fabric.now();
                }
                exchange(&mut end, me, peer, size, round).await?;
            }
            halves.push(fabric.now().picos_since(begun) / (2 * u64::from(rounds)));
        }
        end.end().await?;
        inside.stay().await?;
        Ok(halves)
    })
}

async fn exchange(end: &mut End, me: usize, peer: usize, bytes: usize, round: u32) -> ProgramResult<()> {
    if round == 0 {
        end.prepare(bytes, peer).await?;
    }
    if me == 0 {
        end.send(peer, bytes).await?;
        end.receive(peer, bytes).await
    } else {
        end.receive(peer, bytes).await?;
        end.send(peer, bytes).await
    }
}

/// The measurements of [`posted_receives`], in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// The time between two calls that post a receive.
    pub gap: u64,
    /// Half a round trip, while all other receives are posted.
    pub latency: u64,
}

/// The number of messages that are exchanged while receives are posted, and their size in bytes.
const ROUNDS: usize = 4;
const BYTES: usize = 4;

/// Both of two ranks post `count` receives, and then exchange messages of 4 bytes for a few of
/// these, each of which was posted before.
///
/// # Panics
/// If the library is neither FMPL nor MPI, or if `count` is less than 8.
pub fn posted_receives(fabric: Fabric, library: Library, count: usize, together: Together) -> RankFuture<Posted> {
    assert!(count >= 2 * ROUNDS, "only {count} receives");
    Box::pin(async move {
        match library {
            Library::Mpi(memory) => {
                by_mpi(Mpi::new(&fabric, memory, false, BYTES).await?, fabric, count, together).await
            }
            Library::Fmpl => by_fmpl(fabric, count, together).await,
            other => panic!("{other} is neither FMPL nor MPI"),
        }
    })
}

async fn by_fmpl(fabric: Fabric, count: usize, together: Together) -> ProgramResult<Posted> {
    let options = Options::default().indices(count).any_indices(0).peers(2);
    let fmpl = Fmpl::init_with(&fabric, options).await?;
    let (world, peer) = (fmpl.world(), 1 - fmpl.world().me());
    let buffer = world.buffer::<u8>(BYTES * count)?;
    let into = |index: usize| buffer.slice(BYTES * index..BYTES * (index + 1));
    // The first two messages of an index create its descriptors: flags have two places.
    for index in (0..count).chain(0..count) {
        round(world, world.irecv(&into(index)?, peer, index).await?, index).await?;
    }
    let inside = together.enter(&fabric).await?;
    let mut posted = Vec::with_capacity(count);
    let begun = fabric.now();
    for index in 0..count {
        posted.push(world.irecv(&into(index)?, peer, index).await?);
    }
    let gap = fabric.now().picos_since(begun) / count as u64;
    // All headers have arrived when the first message is sent.
    fabric.flush_all().await?;
    let mut waiting = posted.into_iter().enumerate();
    let mut begun = fabric.now();
    for number in 0..=ROUNDS {
        if number == 1 {
            begun = fabric.now();
        }
        if let Some((index, receiving)) = waiting.next() {
            round(world, receiving, index).await?;
        }
    }
    let latency = fabric.now().picos_since(begun) / (2 * ROUNDS as u64);
    for (index, receiving) in waiting {
        round(world, receiving, index).await?;
    }
    fmpl.finalize().await?;
    inside.stay().await?;
    Ok(Posted { gap, latency })
}

/// Executes one round trip; member 0 begins.
async fn round(world: &Communicator, receiving: Receiving<'_>, index: usize) -> ProgramResult<()> {
    let peer = 1 - world.me();
    if world.me() == 0 {
        world.send(&[0u8; BYTES], peer, index).await?;
        receiving.wait().await?;
    } else {
        receiving.wait().await?;
        world.send(&[0u8; BYTES], peer, index).await?;
    }
    Ok(())
}

async fn by_mpi(mut mpi: Mpi, fabric: Fabric, count: usize, together: Together) -> ProgramResult<Posted> {
    let (me, peer) = (fabric.rank().index(), 1 - fabric.rank().index());
    let inside = together.enter(&fabric).await?;
    // `count` receives are assumed to be posted already; the time to post them is not measured.
    mpi.posted = count;
    let mut begun = fabric.now();
    mpi.post().await;
    let gap = fabric.now().picos_since(begun);
    mpi.posted = count;
    begun = fabric.now();
    for _ in 0..ROUNDS {
        if me == 0 {
            mpi.send(peer, BYTES).await?;
        }
        mpi.wait(peer, BYTES).await?;
        if me == 1 {
            mpi.send(peer, BYTES).await?;
        }
        mpi.posted = count;
    }
    let latency = fabric.now().picos_since(begun) / (2 * ROUNDS as u64);
    inside.stay().await?;
    Ok(Posted { gap, latency })
}
