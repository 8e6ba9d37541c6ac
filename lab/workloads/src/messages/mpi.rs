//! MPI, and BLACS on it, as software terms.
//!
//! A message is one put into the receiver's memory, followed by a notice. The libraries' other work
//! consists of layers of the machine's table, each charged where the library would perform it:
//! `mpi` and `blacs_mpi` for each message, `copy` and `pack` for each of its bytes, at both ends;
//! `mpi.scan` for each posted receive with which a new one is compared, `mpi.match` for each with
//! which an arriving message is compared. The contents of messages are never read: all are put to
//! the same location.
//!
//! Collectives are binary trees of messages. If the network has a barrier and broadcasts for the
//! members, MPI uses these (paper, sections 6.2 and 6.3). The paper does not describe how; here a
//! broadcast is copied, multicast as a whole and copied, one step after another, between two
//! barriers.

use super::Memory;
use fabric_offload::barrier::ColourBarrier;
use rdma_fabric::{Deps, Fabric, FabricError, Group, LocalSpan, MulticastSpan, ProgramResult, Rank, Region, op::Put};

/// One rank's MPI, or BLACS on it.
pub(super) struct Mpi {
    fabric: Fabric,
    group: Group,
    memory: Memory,
    is_blacs: bool,
    /// The destination of messages.
    region: Region,
    /// For each rank, the number of messages that have arrived and have not been received.
    arrived: Vec<usize>,
    /// The number of posted receives that have not been matched.
    pub(super) posted: usize,
    hardware: Option<Hardware>,
}

struct Hardware {
    barrier: ColourBarrier,
    everywhere: MulticastSpan<u8>,
}

impl Mpi {
    pub(super) async fn new(fabric: &Fabric, memory: Memory, is_blacs: bool, longest: usize) -> ProgramResult<Self> {
        let mut group = Group::world(fabric).await?;
        let region = fabric.alloc_symmetric(longest.max(8)).await?;
        let ranks: Vec<Rank> = (0..fabric.ranks() as u32).map(Rank::new).collect();
        let hardware = match ColourBarrier::claim(&mut group, 0).await {
            Ok(barrier) => {
                let at: Vec<_> = ranks.iter().map(|rank| region.at(*rank, 0)).collect();
                Some(Hardware { barrier, everywhere: MulticastSpan::new(fabric, &at, longest)? })
            }
            Err(FabricError::Colour(_) | FabricError::Unsupported { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let arrived = vec![0; ranks.len()];
        Ok(Mpi { fabric: fabric.clone(), group, memory, is_blacs, region, arrived, posted: 0, hardware })
    }

    fn span(&self, bytes: usize) -> ProgramResult<LocalSpan<u8>> {
        Ok(self.region.span(&self.fabric, 0, bytes)?)
    }

    /// Charges one end's handling of a message's bytes.
    async fn handle_bytes(&self, bytes: usize) {
        if self.is_blacs {
            self.fabric.charge_bytes("pack", bytes).await;
        }
        if self.memory == Memory::Copied {
            self.fabric.charge_bytes("copy", bytes).await;
        }
    }

    async fn call(&self) {
        if self.is_blacs {
            self.fabric.charge("blacs_mpi").await;
        }
        self.fabric.charge("mpi").await;
    }

    pub(super) async fn send(&self, to: usize, bytes: usize) -> ProgramResult<()> {
        self.call().await;
        self.handle_bytes(bytes).await;
        let to = self.fabric.remote_span::<u8>(self.region.at(self.group.rank(to)?, 0), bytes)?;
        let put = Put { to: &to, from: self.span(bytes)?, notice: Some(0) };
        self.fabric.post(put).await?.await?;
        Ok(())
    }

    /// Posts a further receive.
    pub(super) async fn post(&mut self) {
        for _ in 0..self.posted {
            self.fabric.charge("mpi.scan").await;
        }
        self.posted += 1;
    }

    /// Receives a message for which no receive was posted before.
    pub(super) async fn receive(&mut self, from: usize, bytes: usize) -> ProgramResult<()> {
        self.matched(from).await?;
        self.handle_bytes(bytes).await;
        Ok(())
    }

    /// Waits for the message of a posted receive, which is compared with all posted receives.
    pub(super) async fn wait(&mut self, from: usize, bytes: usize) -> ProgramResult<()> {
        self.matched(from).await?;
        for _ in 0..self.posted {
            self.fabric.charge("mpi.match").await;
        }
        self.posted -= 1;
        self.handle_bytes(bytes).await;
        Ok(())
    }

    async fn matched(&mut self, from: usize) -> ProgramResult<()> {
        while self.arrived[from] == 0 {
            let notice = self.fabric.next_notice(Deps::All).await?;
            self.arrived[notice.from.index()] += 1;
        }
        self.arrived[from] -= 1;
        Ok(())
    }

    // ----- collectives ---------------------------------------------------------------------------

    /// Executes a barrier by hardware, or up and down the tree.
    pub(super) async fn barrier(&mut self) -> ProgramResult<()> {
        if let Some(hardware) = &mut self.hardware {
            return hardware.meet().await;
        }
        self.up(0, 0).await?;
        self.down(0, 0).await
    }

    pub(super) async fn broadcast(&mut self, bytes: usize, root: usize) -> ProgramResult<()> {
        let Some(mut hardware) = self.hardware.take() else { return self.down(bytes, root).await };
        self.call().await;
        hardware.meet().await?;
        // The data is copied into the memory that has the same address on all nodes, and out of it,
        // regardless of the program's own memory.
        if self.group.me() == root {
            self.fabric.charge_bytes("copy", bytes).await;
            let everywhere = hardware.everywhere.slice(0..bytes)?;
            everywhere.put(&self.fabric, self.span(bytes)?).await?;
            self.fabric.flush_all().await?;
        }
        hardware.meet().await?;
        if self.group.me() != root {
            self.fabric.charge_bytes("copy", bytes).await;
        }
        self.hardware = Some(hardware);
        Ok(())
    }

    pub(super) async fn reduce(&mut self, bytes: usize, root: usize) -> ProgramResult<()> {
        self.up(bytes, root).await
    }

    async fn down(&mut self, bytes: usize, root: usize) -> ProgramResult<()> {
        let (parent, children) = self.tree(root);
        if let Some(parent) = parent {
            self.receive(parent, bytes).await?;
        }
        for child in children.into_iter().rev() {
            self.send(child, bytes).await?;
        }
        Ok(())
    }

    async fn up(&mut self, bytes: usize, root: usize) -> ProgramResult<()> {
        let (parent, children) = self.tree(root);
        for child in children {
            self.receive(child, bytes).await?;
        }
        match parent {
            Some(parent) => self.send(parent, bytes).await,
            None => Ok(()),
        }
    }

    /// Returns a rank's neighbours in the binomial tree of `root`.
    fn tree(&self, root: usize) -> (Option<usize>, Vec<usize>) {
        let (me, ranks) = (self.group.me(), self.group.len());
        let number = (me + ranks - root) % ranks;
        let member = |number: usize| (number + root) % ranks;
        let below = if number == 0 { ranks.next_power_of_two() } else { number & number.wrapping_neg() };
        let steps = (0..usize::BITS).map(|bit| 1 << bit).take_while(|step| *step < below);
        let children = steps.filter(|step| number + step < ranks).map(|step| member(number + step)).collect();
        ((number > 0).then(|| member(number & (number - 1))), children)
    }
}

impl Hardware {
    async fn meet(&mut self) -> ProgramResult<()> {
        self.barrier.start()?;
        Ok(self.barrier.wait().await?)
    }
}
