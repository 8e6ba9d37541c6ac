//! Point-to-point messages: matrices between two processes.

use crate::{
    BlacsError, Element, Grid, Matrix, MatrixMut, Memory, MemoryMut, Precision, Result, Scope, Shape, cost,
    packing::{Incoming, Outgoing, View},
    scope::Space,
    shape::MOST,
};
use core::{future::Future, task::Context};
use fmpl::{FmplError, Received, ReceivingInto, RecvAttempt, Sink, Source};
use rdma_fabric::{
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

impl Grid {
    /// Sends a matrix to the process at `to` (`vgesd2d`, `vtrsd2d`), which may be the caller.
    /// Completes when the matrix may be modified again, whether or not the receiver has posted a
    /// receive.
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

    /// Sends a matrix from any memory, as [`Grid::send`] does.
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
        fast_path(
            SendCall { grid: self, memory, shape: *shape, size: precision.bytes(), to, index: None },
            SendCall::slow,
        )
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
        fast_path(
            RecvCall { grid: self, memory, shape: *shape, size: precision.bytes(), from, begun: Begun::Not },
            RecvCall::slow,
        )
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
        let index = self.counters.next_to(to, space);
        self.put_with(index, to, view, shape, size).await
    }

    async fn put_with<'a>(&'a self, index: usize, to: usize, view: View<'a>, shape: Shape, size: usize) -> Result<()> {
        if shape.elements() > 0 && shape.is_one_run() && view.span().is_none() {
            let mut bytes = view.bytes(0..shape.bytes(size));
            return self.send_source(index, to, &mut bytes).await;
        }
        let mut message = Outgoing::new(self.fabric(), view, shape, size);
        self.send_source(index, to, &mut message).await?;
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
        self.take_with(self.counters.next_from(from, space), from, memory, shape, size).await
    }

    async fn take_with<'a>(
        &'a self,
        index: usize,
        from: usize,
        memory: &'a mut (dyn MemoryMut + 'a),
        shape: Shape,
        size: usize,
    ) -> Result<()> {
        if shape.elements() > 0 && shape.is_one_run() && memory.span().is_none() {
            let mut bytes = memory.bytes_mut(0..shape.bytes(size));
            return self.receive(index, from, &mut bytes).await;
        }
        let mut message = Incoming::new(self.fabric(), memory, shape, size);
        self.receive(index, from, &mut message).await?;
        message.written_all()
    }

    /// Sends a message to a member.
    pub(crate) async fn put_from(&self, to: usize, space: Space, source: &mut dyn Source) -> Result<()> {
        self.send_source(self.counters.next_to(to, space), to, source).await
    }

    async fn send_source(&self, index: usize, to: usize, source: &mut dyn Source) -> Result<()> {
        match self.communicator().send_from(source, to, index).await {
            // Whether the sender receives this error depends on timing; the receiver always does.
            Ok(()) | Err(FmplError::TooLong { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives a message from a member into a sink.
    pub(crate) async fn take_into(&self, from: usize, space: Space, sink: &mut dyn Sink) -> Result<()> {
        self.receive(self.counters.next_from(from, space), from, sink).await
    }

    async fn receive(&self, index: usize, from: usize, sink: &mut dyn Sink) -> Result<()> {
        let expected = sink.bytes();
        let received = self.communicator().recv_into(sink, from, index).await;
        self.whole(received, from, expected)
    }

    /// Checks that a message had the expected length.
    fn whole(&self, received: fmpl::Result<Received>, from: usize, expected: usize) -> Result<()> {
        let sent = match received {
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

/// The state of [`Grid::send_bytes`].
struct SendCall<'a> {
    grid: &'a Grid,
    memory: &'a dyn Memory,
    shape: Shape,
    size: usize,
    to: (usize, usize),
    /// The index of the message, once assigned.
    index: Option<usize>,
}

impl FastPath for SendCall<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> SendCall<'a> {
    #[inline]
    fn at_once(&mut self) -> Option<()> {
        if !self.shape.is_one_run() || self.shape.bytes(self.size) > MOST {
            return None;
        }
        let to = self.grid.index_in(Scope::All, self.to).ok()?;
        let index = *self.index.insert(self.grid.counters.next_to(to, Space::Pair));
        let (communicator, bytes) = (self.grid.communicator(), 0..self.shape.bytes(self.size));
        let sent = match self.memory.span() {
            _ if bytes.is_empty() => communicator.send_at_once(&[], to, index),
            Some(span) => communicator.send_span_at_once(&*span.part(bytes).ok()?, to, index),
            None => communicator.send_at_once(self.memory.bytes(bytes), to, index),
        };
        sent.then_some(())
    }

    fn slow(self) -> Boxed<'a, Result<()>> {
        let SendCall { grid, memory, shape, size, to, index } = self;
        Box::pin(async move {
            grid.fabric().charge(cost::MATRIX).await;
            shape.fits(size)?;
            let to = grid.index_in(Scope::All, to)?;
            let index = index.unwrap_or_else(|| grid.counters.next_to(to, Space::Pair));
            grid.put_with(index, to, View::Shared(memory), shape, size).await
        })
    }
}

/// The state of [`Grid::recv_bytes`].
struct RecvCall<'a> {
    grid: &'a Grid,
    memory: &'a mut (dyn MemoryMut + 'a),
    shape: Shape,
    size: usize,
    from: (usize, usize),
    begun: Begun<'a>,
}

/// The progress of a receive.
enum Begun<'a> {
    Not,
    /// The index of the message is assigned.
    Counted(usize),
    Posted(ReceivingInto<'a>),
    /// The message had this number of bytes, which differs from the expected length.
    Received(usize),
}

impl FastPath for RecvCall<'_> {
    type Out = Result<()>;
    type Stage = Self;

    #[inline(always)]
    fn fast(mut self, _: &mut Context<'_>) -> Result<Result<()>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> RecvCall<'a> {
    #[inline]
    fn at_once(&mut self) -> Option<()> {
        let grid = self.grid;
        if !self.shape.is_one_run() || self.shape.bytes(self.size) > MOST {
            return None;
        }
        let from = grid.index_in(Scope::All, self.from).ok()?;
        let index = grid.counters.next_from(from, Space::Pair);
        let expected = self.shape.bytes(self.size);
        let at_once = match self.memory.span() {
            _ if expected == 0 => grid.communicator().try_recv_into(&mut &mut [0u8; 0][..], from, index),
            Some(span) => grid.communicator().try_recv_into(&mut span.slice(0..expected).ok()?, from, index),
            None => grid.communicator().try_recv_into(&mut self.memory.bytes_mut(0..expected), from, index),
        };
        self.begun = match at_once {
            RecvAttempt::Received(received) if received.bytes == expected => return Some(()),
            RecvAttempt::Received(received) => Begun::Received(received.bytes),
            RecvAttempt::Begun(receiving) => Begun::Posted(receiving),
            RecvAttempt::NotBegun => Begun::Counted(index),
        };
        None
    }

    fn slow(self) -> Boxed<'a, Result<()>> {
        let RecvCall { grid, memory, shape, size, from, begun } = self;
        Box::pin(async move {
            grid.fabric().charge(cost::MATRIX).await;
            shape.fits(size)?;
            let from = grid.index_in(Scope::All, from)?;
            let expected = shape.bytes(size);
            match begun {
                Begun::Received(sent) => Err(BlacsError::ShapeMismatch { from: grid.place_of(from), sent, expected }),
                Begun::Posted(receiving) => {
                    let is_asked = expected > 0 && memory.span().is_none();
                    let mut bytes = if is_asked { memory.bytes_mut(0..expected) } else { &mut [] };
                    let received = receiving.wait(&mut bytes).await;
                    grid.whole(received, from, expected)
                }
                Begun::Counted(index) => grid.take_with(index, from, memory, shape, size).await,
                Begun::Not => {
                    let index = grid.counters.next_from(from, Space::Pair);
                    grid.take_with(index, from, memory, shape, size).await
                }
            }
        })
    }
}
