//! Broadcasts: matrices from one process of a scope to all others.

use crate::{
    BlacsError, Element, Grid, Matrix, MatrixMut, Memory, MemoryMut, Precision, Result, Scope, Shape, Topology, cost,
    packing::{Incoming, Outgoing, View},
    scope::{Members, Space},
    topology::{Neighbours, Position},
};
use core::future::Future;
use fmpl::FmplError;

impl Grid {
    /// Sends a matrix to all other processes of the caller's scope (`vgebs2d`, `vtrbs2d`), which
    /// call [`Grid::broadcast_recv`] with the same topology. Completes when the matrix may be
    /// modified again.
    ///
    /// # Errors
    /// [`BlacsError::Fmpl`] if memory runs out or a receiver is lost.
    pub async fn broadcast_send<T: Element>(&self, scope: Scope, topology: Topology, a: Matrix<'_, T>) -> Result<()> {
        self.broadcast_send_bytes(scope, topology, T::PRECISION, &a.shape, &a.held).await
    }

    /// Receives a matrix that the process at `from` sends to the caller's scope (`vgebr2d`,
    /// `vtrbr2d`), and forwards it if the topology makes the caller a relay. In a row, only the column
    /// of `from` counts; in a column, only its row. The call may complete before other processes have
    /// received the matrix.
    ///
    /// # Errors
    /// [`BlacsError::OutsideGrid`], [`BlacsError::FromSelf`]; [`BlacsError::ShapeMismatch`];
    /// [`BlacsError::Fmpl`] if a neighbour is lost.
    pub async fn broadcast_recv<T: Element>(
        &self,
        scope: Scope,
        topology: Topology,
        mut a: MatrixMut<'_, T>,
        from: (usize, usize),
    ) -> Result<()> {
        self.broadcast_recv_bytes(scope, topology, T::PRECISION, &a.shape, &mut a.held, from).await
    }

    /// Sends a matrix from any memory, as [`Grid::broadcast_send`] does.
    ///
    /// # Errors
    /// As [`Grid::broadcast_send`].
    pub fn broadcast_send_bytes<'a>(
        &'a self,
        scope: Scope,
        topology: Topology,
        precision: Precision,
        shape: &Shape,
        memory: &'a dyn Memory,
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        let shape = *shape;
        self.losses.or_lost(scope, async move {
            self.fabric().charge(cost::MATRIX).await;
            shape.fits(precision.bytes())?;
            if let Some(line) = self.multicasting(scope, topology) {
                let mut message = Outgoing::new(self.fabric(), View::Shared(memory), shape, precision.bytes());
                line.multicast_from(&mut message).await?;
                return message.read_all();
            }
            let members = self.members(scope);
            let Members { count, me, .. } = members;
            let position = Position { members: count, me, root: me };
            for child in position.broadcast(topology, &self.parameters()).children {
                let view = View::Shared(memory);
                self.put(members.member(child), Space::Of(scope), view, shape, precision.bytes()).await?;
            }
            Ok(())
        })
    }

    /// Receives a matrix into any memory, as [`Grid::broadcast_recv`] does.
    ///
    /// # Errors
    /// As [`Grid::broadcast_recv`].
    pub fn broadcast_recv_bytes<'a>(
        &'a self,
        scope: Scope,
        topology: Topology,
        precision: Precision,
        shape: &Shape,
        memory: &'a mut (dyn MemoryMut + 'a),
        from: (usize, usize),
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        let (shape, size) = (*shape, precision.bytes());
        self.losses.or_lost(scope, async move {
            self.fabric().charge(cost::MATRIX).await;
            shape.fits(size)?;
            let (members, root) = (self.members(scope), self.index_in(scope, from)?);
            let Members { count, me, .. } = members;
            let position = Position { members: count, me, root };
            let Neighbours { parent, children } = position.broadcast(topology, &self.parameters());
            let Some(parent) = parent else {
                return Err(BlacsError::FromSelf { row: self.row(), column: self.column() });
            };
            if let Some(line) = self.multicasting(scope, topology) {
                let mut message = Incoming::new(self.fabric(), memory, shape, size);
                let received = line.multicast_into(&mut message, root).await;
                return match received {
                    Ok(()) => message.written_all(),
                    Err(FmplError::CountMismatch { bytes: sent, .. }) => {
                        let (from, expected) = (self.place_of(members.member(root)), shape.bytes(size));
                        Err(BlacsError::ShapeMismatch { from, sent, expected })
                    }
                    Err(error) => Err(error.into()),
                };
            }
            let space = Space::Of(scope);
            let received = self.take(members.member(parent), space, &mut *memory, shape, size).await;
            if let Err(error @ BlacsError::Fmpl(_)) = received {
                return Err(error);
            }
            for child in children.into_iter().map(|child| members.member(child)) {
                match received {
                    Ok(()) => self.put(child, space, View::Own(&mut *memory), shape, size).await?,
                    // An empty message, so that the child does not wait forever.
                    Err(_) => self.put_from(child, space, &mut &[0u8; 0][..]).await?,
                }
            }
            received
        })
    }
}
