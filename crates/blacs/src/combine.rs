//! Combines: element-wise reductions of the matrices of all processes of a scope.

use crate::{
    BlacsError, Element, Grid, MatrixMut, MemoryMut, Precision, Result, Scope, Shape, Topology, cost,
    packing::{Incoming, Outgoing, View},
    reduce::{DISTANCE, Fold},
    scope::{Members, Space},
    topology::{Neighbours, Position},
};
use rdma_fabric::join::join;

/// The operation that combines corresponding elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// The sum.
    Sum,
    /// The element with the greatest magnitude, with its sign; the magnitude of a complex number is
    /// |re| + |im|.
    AbsMax,
    /// The element with the least magnitude.
    AbsMin,
}

/// The output arrays for the coordinates of the processes that contributed the elements of a result,
/// in column-major order.
#[derive(Debug)]
pub struct Winners<'a> {
    /// The rows of the contributors.
    pub rows: &'a mut [i32],
    /// The columns of the contributors.
    pub columns: &'a mut [i32],
    /// The number of elements between the starts of consecutive columns of both arrays; the number of
    /// rows of the matrix if that is greater.
    pub leading: usize,
}

impl Winners<'_> {
    fn checked(&self, shape: &Shape) -> Result<Shape> {
        let wanted = Shape::general(shape.rows(), shape.columns(), self.leading).with(shape.part());
        let (needed, elements) = (wanted.extent(), self.rows.len().min(self.columns.len()));
        if needed <= elements { Ok(wanted) } else { Err(BlacsError::TooShort { needed, elements }) }
    }
}

/// The arguments of a combine.
#[derive(Clone, Copy)]
struct Call {
    scope: Scope,
    topology: Topology,
    fold: Fold,
    shape: Shape,
    to: Option<(usize, usize)>,
}

/// Row and column of each element's contributor, in message order.
type Contributors = Vec<(usize, usize)>;

/// A callback that receives the coordinates of each element's contributor: row of the element, column
/// of the element, (row, column) of the contributor.
type Found<'a> = &'a mut dyn FnMut(usize, usize, (usize, usize));

impl Grid {
    /// Adds the matrices of all processes of the caller's scope (`vgsum2d`). The process at `to`
    /// receives the sum, or all processes if `to` is `None`; the matrices of the other processes do
    /// not change. In a row, only the column of `to` counts; in a column, only its row.
    ///
    /// # Errors
    /// [`BlacsError::OutsideGrid`]; [`BlacsError::ShapeMismatch`]; [`BlacsError::Fmpl`] if a neighbour is
    /// lost.
    pub async fn sum<T: Element>(
        &self,
        scope: Scope,
        topology: Topology,
        mut a: MatrixMut<'_, T>,
        to: Option<(usize, usize)>,
    ) -> Result<()> {
        let fold = Fold { combine: Combine::Sum, precision: T::PRECISION, winners: false };
        self.combined(Call { scope, topology, fold, shape: a.shape, to }, &mut a.held).await.map(drop)
    }

    /// Finds, at each position, the element with the greatest magnitude (`vgamx2d`), with the
    /// destination rules of [`Grid::sum`], and the process that contributed it. Among elements of the
    /// same magnitude, the contributor nearest after `to`, counted around the scope, wins (nearest
    /// after the first process if all processes receive the result). Without `winners`, the greatest
    /// value wins instead; among complex numbers the one with the greatest real part, then imaginary
    /// part. Either all processes pass `winners` or none does.
    ///
    /// # Errors
    /// As [`Grid::sum`]; [`BlacsError::TooShort`] if the arrays of `winners` are too short.
    pub async fn amax<T: Element>(
        &self,
        scope: Scope,
        topology: Topology,
        a: MatrixMut<'_, T>,
        winners: Option<Winners<'_>>,
        to: Option<(usize, usize)>,
    ) -> Result<()> {
        self.extreme(Combine::AbsMax, scope, topology, a, winners, to).await
    }

    /// Finds, at each position, the element with the least magnitude (`vgamn2d`), as [`Grid::amax`]
    /// does.
    ///
    /// # Errors
    /// As [`Grid::amax`].
    pub async fn amin<T: Element>(
        &self,
        scope: Scope,
        topology: Topology,
        a: MatrixMut<'_, T>,
        winners: Option<Winners<'_>>,
        to: Option<(usize, usize)>,
    ) -> Result<()> {
        self.extreme(Combine::AbsMin, scope, topology, a, winners, to).await
    }

    async fn extreme<T: Element>(
        &self,
        combine: Combine,
        scope: Scope,
        topology: Topology,
        mut a: MatrixMut<'_, T>,
        winners: Option<Winners<'_>>,
        to: Option<(usize, usize)>,
    ) -> Result<()> {
        let wanted = winners.as_ref().map(|winners| winners.checked(&a.shape)).transpose()?;
        let fold = Fold { combine, precision: T::PRECISION, winners: winners.is_some() };
        let found = self.combined(Call { scope, topology, fold, shape: a.shape, to }, &mut a.held).await?;
        if let (Some(winners), Some(wanted), Some(found)) = (winners, wanted, found) {
            for ((i, j), (row, column)) in wanted.places().zip(found) {
                let at = j * wanted.leading() + i;
                (winners.rows[at], winners.columns[at]) = (row as i32, column as i32);
            }
        }
        Ok(())
    }

    /// Combines matrices in any memory, as [`Grid::sum`], [`Grid::amax`] and [`Grid::amin`] do. If
    /// this process receives the result, `winners` is called with the row and column of each element
    /// of the result and the coordinates of its contributor; sums have no winners.
    ///
    /// # Errors
    /// As [`Grid::sum`].
    #[allow(clippy::too_many_arguments)]
    pub async fn combine_bytes(
        &self,
        scope: Scope,
        topology: Topology,
        combine: Combine,
        precision: Precision,
        shape: &Shape,
        memory: &mut dyn MemoryMut,
        winners: Option<Found<'_>>,
        to: Option<(usize, usize)>,
    ) -> Result<()> {
        let fold = Fold { combine, precision, winners: winners.is_some() && combine != Combine::Sum };
        let found = self.combined(Call { scope, topology, fold, shape: *shape, to }, memory).await?;
        if let (Some(winners), Some(found)) = (winners, found) {
            shape.places().zip(found).for_each(|((i, j), winner)| winners(i, j, winner));
        }
        Ok(())
    }

    /// Combines matrices; returns the coordinates of the winners if they were requested and the caller
    /// receives the result.
    async fn combined<'a>(&'a self, call: Call, memory: &'a mut (dyn MemoryMut + 'a)) -> Result<Option<Contributors>> {
        let Call { scope, topology, fold, shape, to } = call;
        self.fabric().charge(cost::MATRIX).await;
        // A message may include distances.
        shape.fits(fold.precision.bytes() + DISTANCE)?;
        let members = self.members(scope);
        let to = to.map(|to| self.index_in(scope, to)).transpose()?;
        let (root, size, elements) = (to.unwrap_or(0), fold.precision.bytes(), shape.elements());
        if members.count == 1 {
            return Ok(fold.winners.then(|| vec![self.me(); elements]));
        }
        let mut message = Outgoing::new(self.fabric(), View::Own(&mut *memory), shape, size).packed()?;
        if fold.winners {
            let distance = (members.count + members.me - root) % members.count;
            message.extend_from_slice(bytemuck::cast_slice(&vec![distance as u32; elements]));
        }
        let combining = self.combine_packed(members, topology, fold, &mut message, to);
        self.losses.or_lost(scope, combining).await?;
        if to.is_some_and(|to| to != members.me) {
            return Ok(None);
        }
        let (values, distances) = message.split_at(elements * size);
        Incoming::new(self.fabric(), memory, shape, size).unpack(values)?;
        let winner = |distance: &[u8]| {
            let distance = bytemuck::pod_read_unaligned::<u32>(distance) as usize;
            self.place_of(members.member((root + distance) % members.count))
        };
        Ok(fold.winners.then(|| distances.chunks_exact(DISTANCE).map(winner).collect()))
    }

    /// Combines messages of equal length; the result is for one member or for all.
    async fn combine_packed(
        &self,
        members: Members,
        topology: Topology,
        fold: Fold,
        message: &mut Vec<u8>,
        to: Option<usize>,
    ) -> Result<()> {
        let Members { count, me, .. } = members;
        let parameters = self.parameters();
        let is_exchange = topology == Topology::Hypercube && count.is_power_of_two() && !parameters.coherent;
        if to.is_none() && is_exchange {
            return self.exchange(members, fold, message).await;
        }
        let position = Position { members: count, me, root: to.unwrap_or(0) };
        let Neighbours { parent, children } = position.combine(topology, &parameters);
        let mut step = Step { grid: self, members, outcome: Ok(()) };
        let mut theirs = vec![0; message.len()];
        for child in children {
            if step.take(child, &mut theirs).await? {
                fold.apply(message, &theirs);
            }
        }
        if let Some(parent) = parent {
            step.put(parent, message).await?;
        }
        if to.is_none() {
            let Neighbours { parent, children } = position.back(topology, &parameters);
            if let Some(parent) = parent {
                step.take(parent, message).await?;
            }
            for child in children {
                step.put(child, message).await?;
            }
        }
        step.outcome
    }

    /// Combines the messages of a power-of-two number of members by recursive doubling, so that all
    /// members receive the result.
    async fn exchange(&self, members: Members, fold: Fold, message: &mut Vec<u8>) -> Result<()> {
        let mut step = Step { grid: self, members, outcome: Ok(()) };
        let mut theirs = vec![0; message.len()];
        let mut bit = 1;
        while bit < members.count {
            let partner = members.me ^ bit;
            // Concurrently: each message may be too long to be sent before the partner receives.
            let (sent, received) = join(step.put(partner, message), step.receive(partner, &mut theirs)).await;
            sent?;
            if step.note(received)? {
                if partner < members.me {
                    core::mem::swap(message, &mut theirs);
                }
                fold.apply(message, &theirs);
            }
            bit *= 2;
        }
        step.outcome
    }

    /// Synchronizes the members of a scope by empty messages.
    pub(crate) async fn meet(&self, scope: Scope) -> Result<()> {
        let fold = Fold { combine: Combine::Sum, precision: Precision::I, winners: false };
        self.combine_packed(self.members(scope), Topology::Default, fold, &mut Vec::new(), None).await
    }
}

/// The state of a member in a combine.
struct Step<'a> {
    grid: &'a Grid,
    members: Members,
    /// The error of the first message with an unexpected length. This member sends only empty messages
    /// after it, so that no member waits forever and all members receive an error.
    outcome: Result<()>,
}

impl Step<'_> {
    async fn put(&self, to: usize, message: &[u8]) -> Result<()> {
        let mut message = if self.outcome.is_ok() { message } else { &[] };
        self.grid.put_from(self.members.member(to), Space::Of(self.members.scope), &mut message).await
    }

    /// Receives a message; returns whether all messages so far had the right length.
    async fn take(&mut self, from: usize, message: &mut [u8]) -> Result<bool> {
        let received = self.receive(from, message).await;
        self.note(received)
    }

    async fn receive(&self, from: usize, mut message: &mut [u8]) -> Result<()> {
        self.grid.take_into(self.members.member(from), Space::Of(self.members.scope), &mut message).await
    }

    /// Records the outcome of a receive; returns whether all messages so far had the right length.
    fn note(&mut self, received: Result<()>) -> Result<bool> {
        match received {
            Err(error @ BlacsError::Fmpl(_)) => return Err(error),
            Err(error) if self.outcome.is_ok() => self.outcome = Err(error),
            _ => {}
        }
        Ok(self.outcome.is_ok())
    }
}
