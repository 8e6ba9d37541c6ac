//! Workloads of the ACP paper (section 5): atomic adds through global addresses, and the slowdown
//! of a rank's own adds while it executes copies for other ranks.

use super::{RankFuture, Together};
use acp::{Acp, EntryState, GlobalAddress, Options, Order};
use rdma_fabric::{Amo, Fabric, Rank, Time, op};

/// The rank whose word is modified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Another rank.
    Remote,
    /// The rank itself.
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

/// The rank that adds.
const ADDER: Rank = Rank::new(0);

/// The offsets, in the starter memory, of the word and of the word that receives its previous
/// value.
const WORD: u64 = 0;
const BEFORE: u64 = 64;
/// The offset of the destinations and sources of copies in the starter memory.
const COPIES: u64 = 4096;
/// The size of the copies of [`entry_states`] in bytes.
const STATES_COPY: usize = 1024;

/// Rank 0 adds 1 to a word of 4 bytes and waits for completion, `count` times. Its result is the
/// total elapsed time, in picoseconds; that of the other ranks is 0.
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

/// The atomic add of a library that is only a layer of software, named `layer`, above the network:
/// without global addresses, orders or helpers. Otherwise as [`global_adds`].
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

/// Rank 0 of three issues copies, one of them behind another and one between the other two ranks.
/// Its result is the states that entries of its command queue entered (table 1); that of the other
/// ranks is empty.
pub fn entry_states(fabric: Fabric, options: Options) -> RankFuture<Vec<EntryState>> {
    Box::pin(async move {
        let acp = Acp::init_with(&fabric, options).await?;
        let mut entered = Vec::new();
        if acp.rank() == ADDER {
            let of = |rank| at(&acp, Rank::new(rank), COPIES);
            let (own, one, two) = (of(0)?, of(1)?, of(2)?);
            let first = acp.copy(one, own, STATES_COPY, Order::None).await?;
            acp.copy(one, own, STATES_COPY, first).await?;
            acp.copy(two, one, STATES_COPY, Order::None).await?;
            acp.complete_all().await?;
            entered = acp.entered_states();
        }
        acp.finalize().await?;
        Ok(entered)
    })
}

/// Copies between the memory of other ranks and that of a rank that executes its own operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// The options of global addresses; the starter memory is made as large as necessary.
    pub options: Options,
    /// The number of ranks that have rank 0 execute copies, each from the next rank's memory, one
    /// after another: ranks 2 and up. There are three further ranks: rank 0; rank 1, whose word
    /// rank 0 modifies and which is otherwise idle; and the last one, from which the last initiator
    /// copies.
    pub initiators: u32,
    /// The size of a copy in bytes.
    pub bytes: usize,
    /// The time at which rank 0 begins to count, and the time at which all ranks end.
    pub window: [Time; 2],
}

/// The results of one rank in the window of a [`Disturbance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of adds (rank 0) or copies (other ranks).
    pub operations: u64,
    /// The time from the beginning of the first operation to the end of the last one, in
    /// picoseconds.
    pub elapsed: u64,
}

impl Done {
    /// Returns the mean time of an operation, in seconds; NaN if there was none.
    pub fn mean(self) -> f64 {
        self.elapsed as f64 * 1e-12 / self.operations as f64
    }
}

/// Rank 0 adds to a word of rank 1, one add after another, while the initiators copy to rank 0.
pub fn disturbed_adds(fabric: Fabric, disturbance: Disturbance, together: Together) -> RankFuture<Done> {
    Box::pin(async move {
        let Disturbance { options, initiators, bytes, window: [begin, end] } = disturbance;
        let options = options.starter_bytes(COPIES as usize + bytes * initiators.max(1) as usize);
        let acp = Acp::init_with(&fabric, options).await?;
        let _inside = together.enter(&fabric).await?;
        let me = acp.rank();
        let mut done = Done::default();
        // The initiator's number, from 0.
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
