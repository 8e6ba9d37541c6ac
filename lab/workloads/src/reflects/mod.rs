//! The communication of SCALE-LES's dynamical core (XcalableMP paper, section 6): after each stage
//! of a step, the shadows of several arrays are updated, in one of the ways that the paper
//! compares.
//!
//! Nothing is computed: a stage only takes the corresponding time. The peers and sizes of the
//! exchanges are those of [`xmp_reflect::Plan`] for the real mapping, for every library. The
//! libraries with which arrays are compared send the same number of bytes, in the same number of
//! blocks, from separate memory.

mod arrays;
mod by_hand;
mod faces;
mod gathered;
mod messages;
mod tags;

pub use by_hand::Meeting;
pub use faces::{Face, Grid, faces};
pub use tags::accepted_ids;
pub use xmp_reflect::Transport;

use super::{RankFuture, Together};
use arrays::Arrays;
use by_hand::ByHand;
use gathered::Gathered;
use messages::Messages;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{ops::Range, time::Duration};

/// The library that exchanges the shadows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// Messages written by hand: packed by the program, with new sends for each exchange.
    Messages,
    /// XcalableMP's runtime over persistent messages of derived datatypes, whose blocks the message
    /// layer gathers and scatters, one after another, on the program's core.
    Gathered,
    /// The same, with blocks that the message layer puts one after another, without copying.
    Scattered,
    /// XcalableMP's arrays.
    Arrays(Transport),
    /// Puts written by hand.
    ByHand(Meeting),
}

/// The order of computation and exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// A stage, then one array after another.
    InTurn,
    /// The same, with each exchange started and waited for separately (`async`, `wait_async`).
    Apart,
    /// All arrays are started together, the cells that need no shadow are computed in the meantime,
    /// the others after the wait.
    Overlapped,
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dynamics {
    /// The grid and its nodes.
    pub grid: Grid,
    /// The number of arrays whose shadows are updated.
    pub variables: usize,
    /// The number of stages of a step, each followed by an update.
    pub stages: u32,
    /// The number of stages before the measured ones.
    pub warm_up: u32,
    /// The number of measured steps.
    pub steps: u32,
    /// The computation time per cell and stage, in picoseconds.
    pub cell: u64,
    /// The maximum additional time of a rank, in ten-thousandths: a random share of it is chosen
    /// for each rank and stage.
    pub imbalance: u64,
    /// The library that does the exchange.
    pub library: Library,
    /// The order of computation and exchange.
    pub order: Order,
    /// Whether several threads pack, which are started and ended for each face.
    pub threads: bool,
}

/// The times of a rank's measured steps, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// The total time.
    pub all: u64,
    /// The time without computation.
    pub exchanging: u64,
}

/// Runs the steps of one rank.
pub fn dynamics(fabric: Fabric, what: Dynamics, together: Together) -> RankFuture<Took> {
    Box::pin(run(fabric, what, together))
}

async fn run(fabric: Fabric, what: Dynamics, together: Together) -> ProgramResult<Took> {
    let mut member = Member::new(&fabric, &what).await?;
    let all = what.grid.cells(fabric.rank().index())?;
    let inside = together.enter(&fabric).await?;
    let mut took = Took::default();
    for number in 0..what.warm_up + what.steps * what.stages {
        let cells = what.stage(&fabric, all, number);
        let begun = fabric.now();
        member.stage(&fabric, &what, cells).await?;
        if number >= what.warm_up {
            let elapsed = fabric.now().picos_since(begun);
            took.all += elapsed;
            took.exchanging += elapsed - cells[0] - cells[1];
        }
    }
    inside.stay().await?;
    Ok(took)
}

async fn compute(fabric: &Fabric, picos: u64) {
    fabric.compute(Duration::from_nanos(picos / 1000)).await;
}

impl Dynamics {
    /// Returns the time that a rank computes in a stage, in whole nanoseconds: on cells around
    /// which a stencil reads no shadow, and on the others.
    fn stage(&self, fabric: &Fabric, cells: [usize; 2], number: u32) -> [u64; 2] {
        // A share of 2^32.
        let drawn = mixed(u64::from(fabric.rank().number()) << 32 | u64::from(number)) >> 32;
        let longer = 10_000 + ((self.imbalance * drawn) >> 32);
        cells.map(|cells| cells as u64 * self.cell / 10_000 * longer / 1000 * 1000)
    }

    /// Charges the start and end of threads for packing, or unpacking, the faces of an array.
    async fn fork(&self, fabric: &Fabric) {
        if self.threads {
            for _ in 0..FACES {
                fabric.charge("fork").await;
            }
        }
    }
}

/// Charges the start of persistent messages of derived datatypes.
async fn datatype(fabric: &Fabric) {
    fabric.charge("xmp.reflect").await;
    messages::charge(fabric, &["mpi"]).await;
}

/// The number of faces of a node's block.
const FACES: usize = 4;

/// Returns a pseudo-random number derived from `number` (SplitMix64's last step).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// One rank's library.
enum Member {
    Messages(Box<Messages>),
    Gathered(Box<Gathered>),
    Scattered(Box<ByHand>),
    Arrays(Box<Arrays>),
    ByHand(Box<ByHand>),
}

impl Member {
    async fn new(fabric: &Fabric, what: &Dynamics) -> ProgramResult<Self> {
        let world = || Group::world(fabric);
        Ok(match what.library {
            Library::Messages => Member::Messages(Box::new(Messages::new(world().await?, *what).await?)),
            Library::Gathered => Member::Gathered(Box::new(Gathered::new(world().await?, what).await?)),
            Library::Scattered => {
                let puts = ByHand::new(world().await?, what, Meeting::Neighbours, false).await?;
                Member::Scattered(Box::new(puts))
            }
            Library::Arrays(transport) => {
                Member::Arrays(Box::new(Arrays::new(world().await?, *what, transport).await?))
            }
            Library::ByHand(meeting) => {
                Member::ByHand(Box::new(ByHand::new(world().await?, what, meeting, false).await?))
            }
        })
    }

    /// Computes a stage, with these times in picoseconds for cells without and with shadows, and
    /// updates all shadows.
    async fn stage(&mut self, fabric: &Fabric, what: &Dynamics, cells: [u64; 2]) -> ProgramResult<()> {
        if what.order == Order::Overlapped {
            self.start(0..what.variables).await?;
            compute(fabric, cells[0]).await;
            self.wait(0..what.variables).await?;
            compute(fabric, cells[1]).await;
            return Ok(());
        }
        compute(fabric, cells[0] + cells[1]).await;
        for variable in 0..what.variables {
            match what.order {
                Order::InTurn => self.exchange(variable).await?,
                Order::Apart | Order::Overlapped => {
                    self.start(variable..variable + 1).await?;
                    self.wait(variable..variable + 1).await?;
                }
            }
        }
        Ok(())
    }

    /// Updates the shadow of an array.
    async fn exchange(&mut self, variable: usize) -> ProgramResult<()> {
        match self {
            Member::Messages(messages) => messages.exchange(variable).await,
            Member::Arrays(arrays) => arrays.exchange(variable).await,
            Member::ByHand(by_hand) => by_hand.exchange(variable).await,
            Member::Gathered(gathered) => {
                gathered.start(variable..variable + 1).await?;
                gathered.wait(variable..variable + 1).await
            }
            Member::Scattered(puts) => {
                datatype(puts.fabric()).await;
                puts.exchange(variable).await
            }
        }
    }

    /// Starts updating the shadows of these arrays.
    async fn start(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        match self {
            Member::Gathered(gathered) => {
                for _ in variables.clone() {
                    gathered.fabric().charge("xmp.act").await;
                }
                gathered.start(variables).await?;
            }
            Member::Scattered(puts) => {
                for _ in variables.clone() {
                    puts.fabric().charge("xmp.act").await;
                    datatype(puts.fabric()).await;
                }
                puts.start(variables).await?;
            }
            Member::Arrays(arrays) => {
                for variable in variables {
                    arrays.start(variable).await?;
                }
            }
            // Hand-written programs exchange immediately, like the paper's baselines.
            Member::Messages(_) | Member::ByHand(_) => {
                for variable in variables {
                    self.exchange(variable).await?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the started arrays.
    async fn wait(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        match self {
            Member::Gathered(gathered) => gathered.wait(variables).await,
            Member::Scattered(puts) => puts.wait(variables).await,
            Member::Arrays(arrays) => arrays.wait(variables).await,
            Member::Messages(_) | Member::ByHand(_) => Ok(()),
        }
    }
}
