//! Order on real memory: an operation that waits for a put and then reads must not read a value
//! from before the put became visible.
//!
//! ```text
//! rank 0:  put k to X;  then, ordered after it, copy Y      rank 1:  put k to Y;  then, ordered after it, copy X
//! ```
//! If rank 0 in its round `i` reads a round of Y before `j`, its put came before that of round `j`
//! of rank 1, so rank 1 reads round `i` of X, or a later one, in its round `j`. A CPU that keeps
//! stores in a buffer breaks this unless a barrier lies between the two. Ranks do not synchronise
//! between rounds (perpetual litmus tests), so a run of a millisecond has thousands of chances. It
//! is part of this crate because this crate is compiled with optimisation: slow code between a put
//! and a copy hides the effect.

use crate::jobs::threads;
use acp::{Acp, GlobalAddress, Options, Order};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};

/// The offset of the words in which ranks announce their rounds, in their memory.
const WORDS: u64 = 128;
/// The longest copy.
pub const LONG: usize = 128;

/// The operation that announces a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum First {
    /// A copy of the round's number to the other rank, of this many bytes.
    ToPeer(usize),
    /// A copy within the rank's own memory.
    ToSelf(usize),
    /// An atomic whose result, the round's number, is stored in local memory.
    Atomic,
}

/// The ordering of the second operation after the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Behind {
    /// By [`Order::All`].
    All,
    /// By the first one's handle.
    Handle,
    /// It has a pair of ranks other than the first's, so that it waits for all.
    Continue,
    /// It is issued when the first is complete.
    Completed,
    /// None: a network need not keep the order.
    Nothing,
}

/// The operations of two ranks in each round, and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    first: First,
    behind: Behind,
    /// The bytes that the second operation copies.
    reads: usize,
    options: Options,
    rounds: usize,
    runs: usize,
}

impl Case {
    /// Returns a case with the default options.
    pub fn new(first: First, behind: Behind, reads: usize) -> Self {
        Case { first, behind, reads, options: Options::default(), rounds: 20_000, runs: 10 }
    }

    /// Returns the case with other options.
    pub fn by(self, options: Options) -> Self {
        Case { options, ..self }
    }

    /// Returns the case with fewer rounds, for operations that take longer.
    pub fn fewer(self) -> Self {
        Case { rounds: 1000, runs: 3, ..self }
    }

    /// Returns the rank whose memory holds the announcement of `by`.
    fn announced(self, by: u32) -> Rank {
        Rank::new(if matches!(self.first, First::ToPeer(_)) { 1 - by } else { by })
    }

    /// Runs all rounds; returns, for each, which round of the other rank it has read.
    async fn play(self, fabric: Fabric) -> ProgramResult<Vec<u64>> {
        let table = 8 * self.rounds + LONG;
        let starter = (2 * WORDS) as usize + 2 * table;
        let acp = Acp::init_with(&fabric, self.options.starter_bytes(starter).heap_bytes(0)).await?;
        let (me, other) = (acp.rank().number(), 1 - acp.rank().number());
        let own = acp.starter(acp.rank())?;
        let (counter, numbers) = (own.offset_by(WORDS)?, own.offset_by(2 * WORDS)?);
        let results = numbers.offset_by(table as u64)?;
        acp.write(numbers, &(1..=(table / 8) as u64).collect::<Vec<_>>()).await?;
        let (mine, theirs) = (acp.starter(self.announced(me))?, acp.starter(self.announced(other))?);
        // From now on the regions are resolved, and nothing is in flight.
        self.round(&acp, mine, theirs, [counter, numbers, results]).await?;
        acp.complete_all().await?;
        acp.sync().await?;
        acp.store(counter, 1u64).await?;
        for round in 0..self.rounds as u64 {
            self.round(&acp, mine, theirs, [counter, numbers.offset_by(8 * round)?, results.offset_by(8 * round)?])
                .await?;
        }
        acp.complete_all().await?;
        acp.sync().await?;
        let mut seen = vec![0; self.rounds];
        acp.read(results, &mut seen).await?;
        acp.finalize().await?;
        Ok(seen)
    }

    async fn round(
        self,
        acp: &Acp,
        mine: GlobalAddress,
        theirs: GlobalAddress,
        [counter, number, result]: [GlobalAddress; 3],
    ) -> acp::Result<()> {
        let first = match self.first {
            First::ToPeer(bytes) | First::ToSelf(bytes) => acp.copy(mine, number, bytes, Order::None).await?,
            First::Atomic => acp.atomic(mine, counter, Amo::Add(1u64), Order::None).await?,
        };
        let order = match self.behind {
            Behind::All => Order::All,
            Behind::Handle => Order::After(first),
            Behind::Continue => Order::Continue,
            Behind::Nothing => Order::None,
            Behind::Completed => {
                acp.complete(first).await?;
                Order::None
            }
        };
        acp.copy(result, theirs, self.reads, order).await.map(drop)
    }

    /// Runs the case on threads; returns the number of contradictions between rounds.
    ///
    /// # Panics
    /// If a rank fails.
    #[track_caller]
    pub fn run(self) -> usize {
        let runs = (0..self.runs).map(|_| {
            let job = threads(2).segment_bytes(4 << 20).shared_address_space(true);
            let seen = job.run(&async |fabric: Fabric| self.play(fabric).await);
            let seen = seen.unwrap_or_else(|error| panic!("{self:?}: {error}"));
            contradictions(&seen[0], &seen[1])
        });
        runs.sum()
    }
}

/// Returns the number of rounds of one rank, counted from 1, whose reads of the other's rounds
/// contradict the other's reads.
pub fn contradictions(one: &[u64], other: &[u64]) -> usize {
    let contradicts = |(round, seen): (usize, &u64)| {
        // The first round of the other rank whose put came after that of this round.
        let next = other.get(*seen as usize);
        next.is_some_and(|back| (*back as usize) < round)
    };
    one.iter().enumerate().map(|(at, seen)| (at + 1, seen)).filter(|round| contradicts(*round)).count()
}
