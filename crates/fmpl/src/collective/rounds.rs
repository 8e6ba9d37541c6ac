//! Barriers executed by hardware, one after the other.

use crate::{Algorithm, Communicator, FmplError, Result};
use core::fmt;
use fabric_offload::barrier::{ColourBarrier, ColourError, GateError, GateUnit, ReduceOp, Reduced, Reduction};
use rdma_fabric::{FabricError, Group, Rank};

/// A communicator's share of the barrier hardware. All members enter the same rounds in the same
/// order; a round that this member has entered may be waited for later.
pub(crate) struct Rounds {
    by: By,
    /// Whether this member has entered a round whose end it has not observed yet.
    under_way: bool,
}

enum By {
    Gates(Reduction<u64>),
    Colour(ColourBarrier),
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rounds({:?})", self.algorithm())
    }
}

impl Rounds {
    fn new(by: By) -> Self {
        Rounds { by, under_way: false }
    }

    /// Allocates gates at all members; returns `None` if there are too few. Collective.
    pub(crate) async fn by_gates(group: &mut Group) -> Result<Option<Self>> {
        if GateUnit::of(group.fabric()).limits().start_gates == 0 {
            return Ok(None);
        }
        match Reduction::new(group).await {
            Ok(reduction) => Ok(Some(Self::new(By::Gates(reduction)))),
            Err(FabricError::Gate(error)) if matches!(*error, GateError::NoGates { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Claims the first colour that is free at all members; returns `None` if none is, or if such
    /// barriers cannot reach all members. Collective.
    pub(crate) async fn by_colour(group: &mut Group) -> Result<Option<Self>> {
        for colour in 0..ColourBarrier::colours(group.fabric()) {
            match ColourBarrier::claim(group, colour).await {
                Ok(barrier) => return Ok(Some(Self::new(By::Colour(barrier)))),
                Err(FabricError::Colour(error)) => match *error {
                    ColourError::Taken { .. } => {}
                    ColourError::NoBox { .. } | ColourError::SharedNode { .. } => return Ok(None),
                    error => return Err(FabricError::from(error).into()),
                },
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self.by {
            By::Gates(_) => Algorithm::Gates,
            By::Colour(_) => Algorithm::Colour,
        }
    }

    /// Enters a round, once the previous one has completed.
    pub(crate) async fn enter(&mut self, comm: &Communicator) -> Result<()> {
        self.over(comm).await?;
        let entered = match &mut self.by {
            By::Gates(reduction) => reduction.start(ReduceOp::Barrier, &[]),
            By::Colour(barrier) => barrier.start(),
        };
        entered.map_err(|error| left(comm, error))?;
        self.under_way = true;
        Ok(())
    }

    /// Waits until all members have entered the round that this one has entered.
    pub(crate) async fn over(&mut self, comm: &Communicator) -> Result<()> {
        if self.under_way {
            let over = comm.progressing(async {
                match &mut self.by {
                    By::Gates(reduction) => reduction.wait().await.map(drop),
                    By::Colour(barrier) => barrier.wait().await,
                }
            });
            over.await.map_err(|error| left(comm, error))?;
            self.under_way = false;
        }
        Ok(())
    }

    /// Combines the values of all members in one round. If members differ in the operation or in
    /// the number of values, all of them receive [`GateError::Mismatch`].
    pub(crate) async fn reduce(&mut self, comm: &Communicator, op: ReduceOp, values: &[u64]) -> Result<Reduced<u64>> {
        self.over(comm).await?;
        let By::Gates(reduction) = &mut self.by else {
            return Err(FabricError::Unsupported { feature: &"a barrier unit" }.into());
        };
        reduction.start(op, values).map_err(|error| left(comm, error))?;
        comm.progressing(reduction.wait()).await.map_err(|error| left(comm, error))
    }
}

/// Returns the error with the member that has given the hardware back.
fn left(comm: &Communicator, error: FabricError) -> FmplError {
    let freed: Option<Rank> = match &error {
        FabricError::Colour(error) => match **error {
            ColourError::Freed { rank, .. } => Some(rank),
            _ => None,
        },
        FabricError::Gate(error) => match **error {
            GateError::Freed(gate) | GateError::PointsElsewhere { gate, .. } => Some(gate.rank()),
            _ => None,
        },
        _ => None,
    };
    match freed.and_then(|rank| comm.memory.number(rank)) {
        Some(member) => FmplError::MemberLeft { member },
        None => error.into(),
    }
}
