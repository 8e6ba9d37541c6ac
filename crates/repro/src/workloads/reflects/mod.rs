//! The communication of SCALE-LES's dynamical core (XcalableMP paper, section 6): after each stage of
//! a step, the shadows of several arrays are updated, in one of the ways that the paper compares.
//!
//! Nothing is computed: a stage takes the time that it would. Who exchanges how much with whom is what
//! [`xmp_reflect::Plan`] says of the real mapping, whoever carries it out; the libraries with which
//! arrays are compared send as many bytes, in as many blocks, from memory of their own.

mod arrays;
mod by_hand;
mod faces;
mod gathered;
mod messages;

pub use by_hand::Meeting;
pub use faces::{Face, Grid, faces};
pub use xmp_reflect::Transport;

use super::{RankFuture, Together};
use arrays::Arrays;
use by_hand::ByHand;
use gathered::Gathered;
use messages::Messages;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{ops::Range, time::Duration};

/// Who exchanges the shadows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// Messages written by hand: packed by the program, sent anew each time.
    Messages,
    /// XcalableMP's runtime over persistent messages of derived datatypes, whose blocks the message
    /// layer gathers and scatters, one after the other, on the program's core.
    Gathered,
    /// The same, with blocks that the message layer puts one after the other, without copying.
    Scattered,
    /// XcalableMP's arrays.
    Arrays(Transport),
    /// Puts written by hand.
    ByHand(Meeting),
}

/// When what is computed, and when what is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// A stage, then one array after the other.
    InTurn,
    /// As in turn, with each exchange started and waited for apart (`async`, `wait_async`).
    Apart,
    /// All arrays started together, what needs no shadow computed meanwhile, the rest after the wait.
    Overlapped,
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dynamics {
    /// The grid and its nodes.
    pub grid: Grid,
    /// Arrays whose shadows are updated.
    pub variables: usize,
    /// Stages of a step, each followed by an update.
    pub stages: u32,
    /// Stages before those that are measured.
    pub warm_up: u32,
    /// Steps that are measured.
    pub steps: u32,
    /// What a rank takes for a stage of a cell, in picoseconds.
    pub cell: u64,
    /// How much longer than that a rank takes at most, in ten-thousandths: a share drawn anew for each
    /// rank and stage.
    pub imbalance: u64,
    /// Who exchanges.
    pub library: Library,
    /// In which order.
    pub order: Order,
    /// Whether several threads pack, which they start and end for each face.
    pub threads: bool,
}

/// What a rank's measured steps took, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// All.
    pub all: u64,
    /// Not computing.
    pub exchanging: u64,
}

/// The ranks step.
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
    /// Returns how long a rank computes in a stage, in whole nanoseconds: on cells around which a
    /// stencil reads no shadow, and on the others.
    fn stage(&self, fabric: &Fabric, cells: [usize; 2], number: u32) -> [u64; 2] {
        // A share of 2^32.
        let drawn = mixed(u64::from(fabric.rank().number()) << 32 | u64::from(number)) >> 32;
        let longer = 10_000 + ((self.imbalance * drawn) >> 32);
        cells.map(|cells| cells as u64 * self.cell / 10_000 * longer / 1000 * 1000)
    }

    /// Charges starts and ends of threads for packing, or unpacking, the faces of an array.
    async fn fork(&self, fabric: &Fabric) {
        if self.threads {
            for _ in 0..FACES {
                fabric.charge("xmp.fork").await;
            }
        }
    }
}

/// Charges what starts persistent messages of derived datatypes.
async fn datatype(fabric: &Fabric) {
    fabric.charge("xmp.reflect").await;
    messages::charge(fabric, &["mpi"]).await;
}

/// Faces of a node's block.
const FACES: usize = 4;

/// Returns a number that says nothing about the one given (SplitMix64's last step).
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

    /// Computes a stage, which takes so many picoseconds without shadows and with them, and updates all
    /// shadows.
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

    /// Starts to update the shadows of these arrays.
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
            // Written to exchange at once, like what the paper compares with.
            Member::Messages(_) | Member::ByHand(_) => {
                for variable in variables {
                    self.exchange(variable).await?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the arrays that were started.
    async fn wait(&mut self, variables: Range<usize>) -> ProgramResult<()> {
        match self {
            Member::Gathered(gathered) => gathered.wait(variables).await,
            Member::Scattered(puts) => puts.wait(variables).await,
            Member::Arrays(arrays) => arrays.wait(variables).await,
            Member::Messages(_) | Member::ByHand(_) => Ok(()),
        }
    }
}
