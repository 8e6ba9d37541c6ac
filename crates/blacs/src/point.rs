//! Matrices between two processes.

use crate::{
    BlacsError, Element, Grid, Matrix, MatrixMut, Memory, MemoryMut, Precision, Result, Scope, Shape,
    packing::{Incoming, Outgoing, View},
    scope::Space,
};
use core::future::Future;
use fmpl::{FmplError, Sink, Source};

impl Grid {
    /// Sends a matrix to the process at `to` (`vgesd2d`, `vtrsd2d`), which may be the caller. Ends when
    /// the matrix may be written again, whether or not the receiver has come.
    ///
    /// # Errors
    /// [`BlacsError::OutsideGrid`]; [`BlacsError::Fmpl`] if memory runs out or the receiver is lost.
    pub async fn send<T: Element>(&self, a: Matrix<'_, T>, to: (usize, usize)) -> Result<()> {
        self.send_bytes(T::PRECISION, &a.shape, &a.held, to).await
    }

    /// Receives a matrix from the process at `from` (`vgerv2d`, `vtrrv2d`).
    ///
    /// # Errors
    /// [`BlacsError::OutsideGrid`]; [`BlacsError::ShapeMismatch`]; [`BlacsError::Fmpl`] if the sender is
    /// lost.
    pub async fn recv<T: Element>(&self, mut a: MatrixMut<'_, T>, from: (usize, usize)) -> Result<()> {
        self.recv_bytes(T::PRECISION, &a.shape, &mut a.held, from).await
    }

    /// Sends a matrix out of any memory, as [`Grid::send`] does.
    ///
    /// # Errors
    /// As [`Grid::send`].
    pub fn send_bytes<'a>(
        &'a self,
        precision: Precision,
        shape: &Shape,
        memory: &'a dyn Memory,
        to: (usize, usize),
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        let shape = *shape;
        self.progressing(async move {
            let to = self.index_in(Scope::All, to)?;
            self.put(to, Space::Pair, View::Shared(memory), shape, precision.bytes()).await
        })
    }

    /// Receives a matrix into any memory, as [`Grid::recv`] does.
    ///
    /// # Errors
    /// As [`Grid::recv`].
    pub fn recv_bytes<'a>(
        &'a self,
        precision: Precision,
        shape: &Shape,
        memory: &'a mut (dyn MemoryMut + 'a),
        from: (usize, usize),
    ) -> impl Future<Output = Result<()>> + Send + use<'a> {
        let shape = *shape;
        self.progressing(async move {
            let from = self.index_in(Scope::All, from)?;
            self.take(from, Space::Pair, memory, shape, precision.bytes()).await
        })
    }

    /// Sends a matrix to a member.
    pub(crate) async fn put<'a>(
        &'a self,
        to: usize,
        space: Space,
        view: View<'a>,
        shape: Shape,
        size: usize,
    ) -> Result<()> {
        if shape.is_one_run() && view.span().is_none() {
            let mut bytes = view.bytes(0..shape.elements() * size);
            return self.put_from(to, space, &mut bytes).await;
        }
        let mut message = Outgoing::new(self.fabric(), view, shape, size);
        self.put_from(to, space, &mut message).await?;
        message.read_all()
    }

    /// Receives a matrix from a member.
    pub(crate) async fn take<'a>(
        &'a self,
        from: usize,
        space: Space,
        memory: &'a mut (dyn MemoryMut + 'a),
        shape: Shape,
        size: usize,
    ) -> Result<()> {
        if shape.is_one_run() && memory.span().is_none() {
            let mut bytes = memory.bytes_mut(0..shape.elements() * size);
            return self.take_into(from, space, &mut bytes).await;
        }
        let mut message = Incoming::new(self.fabric(), memory, shape, size);
        self.take_into(from, space, &mut message).await?;
        message.written_all()
    }

    /// Sends a message to a member.
    pub(crate) async fn put_from(&self, to: usize, space: Space, source: &mut dyn Source) -> Result<()> {
        let index = self.counters.next_to(to, space);
        match self.communicator().send_from(source, to, index).await {
            // Whether the sender learns that depends on who comes first; the receiver always does.
            Ok(()) | Err(FmplError::TooLong { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives a message from a member, which fills a sink.
    pub(crate) async fn take_into(&self, from: usize, space: Space, sink: &mut dyn Sink) -> Result<()> {
        let index = self.counters.next_from(from, space);
        let expected = sink.bytes();
        let sent = match self.communicator().recv_into(sink, from, index).await {
            Ok(received) => received.bytes,
            Err(FmplError::TooLong { bytes, .. }) => bytes,
            Err(error) => return Err(error.into()),
        };
        if sent == expected {
            return Ok(());
        }
        Err(BlacsError::ShapeMismatch { from: self.place_of(from), sent, expected })
    }
}
