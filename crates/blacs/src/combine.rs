//! Matrices of all processes of a scope become one.

use crate::{
    BlacsError, Element, Grid, MatrixMut, MemoryMut, Precision, Result, Scope, Shape, Topology,
    packing::{Incoming, Outgoing, View},
    scope::{Members, Space},
    ties::{DISTANCE, Fold},
    topology::{Neighbours, Seat},
};

/// What becomes of the elements in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Their sum.
    Sum,
    /// The one with the greatest magnitude, with its sign; a complex number's is |re| + |im|.
    AbsMax,
    /// The one with the least magnitude.
    AbsMin,
}

/// Where the coordinates go of those who contributed the elements of a result, in column-major order.
#[derive(Debug)]
pub struct Winners<'a> {
    /// Their rows.
    pub rows: &'a mut [i32],
    /// Their columns.
    pub columns: &'a mut [i32],
    /// The number of elements from a column of both to the next one; the matrix's rows if that is more.
    pub leading: usize,
}

impl Winners<'_> {
    fn checked(&self, shape: &Shape) -> Result<Shape> {
        let wanted = Shape::general(shape.rows(), shape.columns(), self.leading).with(shape.part());
        let (needed, elements) = (wanted.extent(), self.rows.len().min(self.columns.len()));
        if needed <= elements { Ok(wanted) } else { Err(BlacsError::TooShort { needed, elements }) }
    }
}

/// A call of a combine.
#[derive(Clone, Copy)]
struct Call {
    scope: Scope,
    topology: Topology,
    fold: Fold,
    shape: Shape,
    to: Option<(usize, usize)>,
}

/// Row and column of each element's contributor, in the order of messages.
type Contributors = Vec<(usize, usize)>;

/// Who gets the coordinates of an element's contributor: row and column of the element first.
type Found<'a> = &'a mut dyn FnMut(usize, usize, (usize, usize));

impl Grid {
    /// Adds the matrices of all processes of the caller's scope (`vgsum2d`). The process at `to` gets
    /// the sum, or all if that is `None`; the matrices of others stay as they are. In a row, only the
    /// column of `to` counts; in a column, only its row does.
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

    /// Finds, in each place, the element with the greatest magnitude (`vgamx2d`), as [`Grid::sum`] adds
    /// them, and whose it was. Of several the nearest after `to` wins, round the scope (after the first
    /// process if all get the result). If nobody asks whose it was, the greatest wins, as compared by
    /// its value; of complex numbers that with the greatest real part, then imaginary part. Either all
    /// ask or nobody.
    ///
    /// # Errors
    /// As [`Grid::sum`]; [`BlacsError::TooShort`] if the winners have too little room.
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

    /// Finds, in each place, the element with the least magnitude (`vgamn2d`), as [`Grid::amax`] does.
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

    /// Combines matrices in any memory, as [`Grid::sum`], [`Grid::amax`] and [`Grid::amin`] do. `winners`
    /// is told row and column of each element of the result, and who contributed it, if this process
    /// gets the result; sums have no winners.
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

    /// Combines matrices; returns the coordinates of the winners if they are asked for and the caller
    /// gets the result.
    fn combined<'a>(
        &'a self,
        call: Call,
        memory: &'a mut (dyn MemoryMut + 'a),
    ) -> impl Future<Output = Result<Option<Contributors>>> + Send + use<'a> {
        async move {
            let Call { scope, topology, fold, shape, to } = call;
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
    }

    /// Combines messages of the same length; the result is for one member or for all.
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
        let seat = Seat { members: count, me, root: to.unwrap_or(0) };
        let Neighbours { parent, children } = seat.combine(topology, &parameters);
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
            let Neighbours { parent, children } = seat.back(topology, &parameters);
            if let Some(parent) = parent {
                step.take(parent, message).await?;
            }
            for child in children {
                step.put(child, message).await?;
            }
        }
        step.outcome
    }

    /// Combines the messages of a power of two of members, so that all get the result: in each round
    /// with the other half of a part that is twice as large.
    async fn exchange(&self, members: Members, fold: Fold, message: &mut Vec<u8>) -> Result<()> {
        let mut step = Step { grid: self, members, outcome: Ok(()) };
        let mut theirs = vec![0; message.len()];
        let mut bit = 1;
        while bit < members.count {
            let partner = members.me ^ bit;
            step.put(partner, message).await?;
            if step.take(partner, &mut theirs).await? {
                if partner < members.me {
                    core::mem::swap(message, &mut theirs);
                }
                fold.apply(message, &theirs);
            }
            bit *= 2;
        }
        step.outcome
    }

    /// Meets the members of a scope by empty messages.
    pub(crate) async fn meet(&self, scope: Scope) -> Result<()> {
        let fold = Fold { combine: Combine::Sum, precision: Precision::I, winners: false };
        self.combine_packed(self.members(scope), Topology::Default, fold, &mut Vec::new(), None).await
    }
}

/// A member on its way through a combine.
struct Step<'a> {
    grid: &'a Grid,
    members: Members,
    /// The first message that had another length. Empty messages are sent afterwards, so that nobody
    /// waits for ever and all are told.
    outcome: Result<()>,
}

impl Step<'_> {
    async fn put(&self, to: usize, message: &[u8]) -> Result<()> {
        let mut message = if self.outcome.is_ok() { message } else { &[] };
        self.grid.put_from(self.members.member(to), Space::Of(self.members.scope), &mut message).await
    }

    /// Receives a message; returns whether all had the right length so far.
    async fn take(&mut self, from: usize, mut message: &mut [u8]) -> Result<bool> {
        let space = Space::Of(self.members.scope);
        match self.grid.take_into(self.members.member(from), space, &mut message).await {
            Err(error @ BlacsError::Fmpl(_)) => return Err(error),
            Err(error) if self.outcome.is_ok() => self.outcome = Err(error),
            _ => {}
        }
        Ok(self.outcome.is_ok())
    }
}
