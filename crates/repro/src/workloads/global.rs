//! Workloads of the ACP paper (section 5): atomic adds through global addresses; and what a rank's
//! own adds lose while others have copies carried out by it.

use super::{RankFuture, Together};
use acp::{Acp, GlobalAddress, Options, Order};
use rdma_fabric::{Amo, Fabric, Rank, Time, op};

/// Whose word is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Another rank's.
    Remote,
    /// The rank's own.
    Local,
}

impl Target {
    /// Both, in the order of the paper's table.
    pub const BOTH: [Target; 2] = [Target::Remote, Target::Local];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Target::Remote => "remote",
            Target::Local => "local",
        }
    }

    fn rank(self) -> Rank {
        match self {
            Target::Remote => Rank::new(1),
            Target::Local => ADDER,
        }
    }
}

/// Who adds.
const ADDER: Rank = Rank::new(0);

/// Where the word, and the one that holds what it was before, are in the starter memory.
const WORD: u64 = 0;
const BEFORE: u64 = 64;
/// Where copies go in the starter memory, and come from.
const COPIES: u64 = 4096;

/// Rank 0 adds 1 to a word of 4 bytes and waits until that is complete, `count` times. Its result
/// is the elapsed time for all, in picoseconds; that of the others is 0.
///
/// # Panics
/// If an add was lost, or if `count` is 0.
pub fn global_adds(
    fabric: Fabric,
    options: Options,
    target: Target,
    count: u32,
    together: Together,
) -> RankFuture<u64> {
    Box::pin(async move {
        let acp = Acp::init_with(&fabric, options).await?;
        let _inside = together.enter(&fabric).await?;
        let mut elapsed = 0;
        if acp.rank() == ADDER {
            let begun = fabric.now();
            for _ in 0..count {
                add(&acp, target.rank()).await?;
            }
            elapsed = fabric.now().picos_since(begun);
            let before = acp.load::<u32>(at(&acp, ADDER, BEFORE)?).await?;
            assert_eq!(before, count - 1, "the last add found something else than all earlier ones");
        }
        acp.finalize().await?;
        Ok(elapsed)
    })
}

async fn add(acp: &Acp, rank: Rank) -> acp::Result<()> {
    let (word, before) = (at(acp, rank, WORD)?, at(acp, acp.rank(), BEFORE)?);
    let handle = acp.atomic(before, word, Amo::<u32>::Add(1), Order::None).await?;
    acp.complete(handle).await
}

fn at(acp: &Acp, rank: Rank, offset: u64) -> acp::Result<GlobalAddress> {
    acp.starter(rank)?.offset_by(offset)
}

/// The atomic add of a library that is no more than a layer of software, named `layer`, above the
/// network: without global addresses, orders or helpers. Otherwise as [`global_adds`].
pub fn plain_adds(
    fabric: Fabric,
    layer: &'static str,
    target: Target,
    count: u32,
    together: Together,
) -> RankFuture<u64> {
    Box::pin(async move {
        let region = fabric.alloc_symmetric(8).await?;
        let word = fabric.remote_word::<u32>(region.at(target.rank(), 0))?;
        let inside = together.enter(&fabric).await?;
        let mut elapsed = 0;
        if fabric.rank() == ADDER {
            let begun = fabric.now();
            for _ in 0..count {
                fabric.charge(layer).await;
                fabric.post(op::Atomic { word: &word, amo: Amo::Add(1) }).await?.await?;
            }
            elapsed = fabric.now().picos_since(begun);
        }
        inside.stay().await?;
        Ok(elapsed)
    })
}

/// Copies between other ranks' memory, to a rank that has operations of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// How the job uses global addresses; the starter memory is made as large as need be.
    pub options: Options,
    /// Ranks that have copies carried out by rank 0, each from the next rank's memory, one after
    /// the other: ranks 2 and up. There are three ranks more: rank 0; rank 1, whose word rank 0
    /// changes and which does nothing else; and the last, from which the last initiator copies.
    pub initiators: u32,
    /// Bytes of a copy.
    pub bytes: usize,
    /// When rank 0 begins to count, and when all end.
    pub window: [Time; 2],
}

/// What one rank got done in the window of a [`Disturbance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Adds, of rank 0; copies, of others.
    pub operations: u64,
    /// From the beginning of the first to the end of the last, in picoseconds.
    pub elapsed: u64,
}

impl Done {
    /// Mean time of an operation, in seconds; not a number if there was none.
    pub fn mean(self) -> f64 {
        self.elapsed as f64 * 1e-12 / self.operations as f64
    }
}

/// Rank 0 adds to a word of rank 1, one after the other, while the initiators copy to it.
pub fn disturbed_adds(fabric: Fabric, disturbance: Disturbance, together: Together) -> RankFuture<Done> {
    Box::pin(async move {
        let Disturbance { options, initiators, bytes, window: [begin, end] } = disturbance;
        let options = options.starter_bytes(COPIES as usize + bytes * initiators.max(1) as usize);
        let acp = Acp::init_with(&fabric, options).await?;
        let _inside = together.enter(&fabric).await?;
        let me = acp.rank();
        let mut done = Done::default();
        // By number from 0.
        let initiator = me.number().checked_sub(2).filter(|number| *number < initiators);
        if me == ADDER || initiator.is_some() {
            let copy = initiator.map(|number| {
                let to = at(&acp, ADDER, COPIES + bytes as u64 * u64::from(number))?;
                Ok::<_, acp::AcpError>((to, at(&acp, Rank::new(me.number() + 1), COPIES)?))
            });
            let copy = copy.transpose()?;
            let mut begun = fabric.now();
            while fabric.now() < end {
                if fabric.now() < begin {
                    (begun, done.operations) = (fabric.now(), 0);
                }
                match copy {
                    Some((to, from)) => {
                        let handle = acp.copy(to, from, bytes, Order::None).await?;
                        acp.complete(handle).await?;
                    }
                    None => add(&acp, Target::Remote.rank()).await?,
                }
                done.operations += 1;
            }
            done.elapsed = fabric.now().picos_since(begun);
        }
        acp.finalize().await?;
        Ok(done)
    })
}
