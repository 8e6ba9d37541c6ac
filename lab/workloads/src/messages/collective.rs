//! Barriers, broadcasts and reductions (paper, sections 6.2 to 6.4).

use super::{Library, blacs::OnBlacs, mpi::Mpi};
use crate::RankFuture;
use fmpl::{Fmpl, Op};
use rdma_fabric::{Fabric, LocalSpan, ProgramResult, Time};
use std::time::Duration;

/// The operations to measure, each of them separately: all ranks begin at the same time, by the
/// clock that ranks of a simulated job share, and start the next operation when all have certainly
/// ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collectives {
    /// The library.
    pub library: Library,
    /// The number of barriers.
    pub barriers: usize,
    /// Broadcasts: bytes, and the roots in turn.
    pub broadcasts: Vec<(usize, Vec<usize>)>,
    /// Sums of `f64`: bytes, and the roots in turn.
    pub reductions: Vec<(usize, Vec<usize>)>,
    /// The time at which the first one begins.
    pub start: Time,
}

/// The times of one rank, from the common beginning of each operation to the rank's own end, in
/// picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The time of each barrier.
    pub barriers: Vec<u64>,
    /// The times for each size, from each root.
    pub broadcasts: Vec<Vec<u64>>,
    /// The times for each size, to each root.
    pub reductions: Vec<Vec<u64>>,
}

/// The time reserved for one operation: more than any takes.
const TURN: Duration = Duration::from_secs(1);

enum Member {
    Fmpl(Box<OnFmpl>),
    Blacs(Box<OnBlacs>),
    Mpi(Box<Mpi>),
}

struct OnFmpl {
    fmpl: Fmpl,
    bytes: fmpl::Buffer<u8>,
    numbers: fmpl::Buffer<f64>,
}

impl Member {
    async fn new(fabric: &Fabric, library: Library, longest: usize) -> ProgramResult<Self> {
        if let Some(options) = library.options(fabric.ranks()) {
            let fmpl = Fmpl::init_with(fabric, options).await?;
            let (bytes, numbers) = (fmpl.world().buffer(longest)?, fmpl.world().buffer(longest / 8)?);
            return Ok(Member::Fmpl(Box::new(OnFmpl { fmpl, bytes, numbers })));
        }
        if library == Library::BlacsFmpl {
            return Ok(Member::Blacs(Box::new(OnBlacs::new(fabric, longest).await?)));
        }
        let (memory, is_blacs) = match library {
            Library::Mpi(memory) => (memory, false),
            Library::BlacsMpi(memory) => (memory, true),
            other => panic!("{other} has no collectives"),
        };
        Ok(Member::Mpi(Box::new(Mpi::new(fabric, memory, is_blacs, longest).await?)))
    }

    async fn barrier(&mut self) -> ProgramResult<()> {
        match self {
            Member::Fmpl(on) => Ok(on.fmpl.world().barrier().await?),
            Member::Blacs(blacs) => blacs.barrier().await,
            Member::Mpi(mpi) => mpi.barrier().await,
        }
    }

    async fn broadcast(&mut self, size: usize, root: usize) -> ProgramResult<()> {
        match self {
            Member::Fmpl(on) => Ok(on.fmpl.world().broadcast(&on.bytes.slice(0..size)?, root).await?),
            Member::Blacs(blacs) => blacs.broadcast(size, root).await,
            Member::Mpi(mpi) => mpi.broadcast(size, root).await,
        }
    }

    async fn reduce(&mut self, size: usize, root: usize) -> ProgramResult<()> {
        match self {
            Member::Fmpl(on) => {
                let span: LocalSpan<f64> = on.numbers.slice(0..size / 8)?;
                Ok(on.fmpl.world().reduce(&span, Op::Sum, root).await?)
            }
            Member::Blacs(blacs) => blacs.reduce(size, root).await,
            Member::Mpi(mpi) => mpi.reduce(size, root).await,
        }
    }

    /// Returns the number of times that the first broadcast and the first reduction are done before
    /// the measured ones: they connect peers and create descriptors.
    fn warm_up(&self) -> usize {
        match self {
            Member::Blacs(_) => OnBlacs::SCOPE_WARM_UP,
            Member::Fmpl(_) | Member::Mpi(_) => 1,
        }
    }

    async fn end(self) -> ProgramResult<()> {
        match self {
            Member::Fmpl(on) => Ok(on.fmpl.finalize().await?),
            Member::Blacs(blacs) => blacs.end().await,
            Member::Mpi(_) => Ok(()),
        }
    }
}

/// Runs the operations on all ranks.
///
/// # Panics
/// If the library has no collectives.
pub fn collectives(fabric: Fabric, what: Collectives) -> RankFuture<Done> {
    Box::pin(async move {
        let Collectives { library, barriers, broadcasts, reductions, start } = what;
        let sizes = broadcasts.iter().chain(&reductions).map(|(bytes, _)| *bytes);
        let mut member = Member::new(&fabric, library, sizes.max().unwrap_or(0).max(8)).await?;
        let (mut done, mut next) = (Done::default(), start);
        let warm_up = member.warm_up();
        // The first barrier connects peers and creates descriptors.
        for number in 0..=barriers {
            let begun = turn(&fabric, &mut next).await;
            member.barrier().await?;
            if number > 0 {
                done.barriers.push(fabric.now().picos_since(begun));
            }
        }
        for (is_measured, (size, roots)) in warmed_up(&broadcasts, warm_up) {
            let mut took = Vec::with_capacity(roots.len());
            for root in roots {
                let begun = turn(&fabric, &mut next).await;
                member.broadcast(*size, *root).await?;
                took.push(fabric.now().picos_since(begun));
            }
            if is_measured {
                done.broadcasts.push(took);
            }
        }
        for (is_measured, (size, roots)) in warmed_up(&reductions, warm_up) {
            let mut took = Vec::with_capacity(roots.len());
            for root in roots {
                let begun = turn(&fabric, &mut next).await;
                member.reduce(*size, *root).await?;
                took.push(fabric.now().picos_since(begun));
            }
            if is_measured {
                done.reductions.push(took);
            }
        }
        let begun = turn(&fabric, &mut next).await;
        member.end().await?;
        // The memory of each rank remains until the others have stopped using it.
        fabric.sleep_until(begun + TURN).await;
        Ok(done)
    })
}

/// Returns the list, whose entries are measured, preceded by `times` copies of its first entry, which
/// are not.
fn warmed_up<T>(list: &[T], times: usize) -> impl Iterator<Item = (bool, &T)> {
    let first = list.first().into_iter().flat_map(move |first| std::iter::repeat_n((false, first), times));
    first.chain(list.iter().map(|one| (true, one)))
}

/// Waits for the next common beginning.
async fn turn(fabric: &Fabric, next: &mut Time) -> Time {
    let begin = *next;
    fabric.sleep_until(begin).await;
    *next = begin + TURN;
    begin
}
