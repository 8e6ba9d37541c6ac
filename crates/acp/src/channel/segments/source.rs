//! The source of a segmented buffer.

use super::Buffer;
use crate::{
    AcpError, Result,
    channel::{
        link::{Answer, CLOSED, LocalSide, RemoteSide},
        progress::Turn,
        results::Done,
    },
};
use core::{ops::Range, task::Poll};
use rdma_fabric::{Fabric, LocalSpan, op::Put, provider::Boxed};

enum Link {
    /// The program has not requested the connection.
    Idle(Boxed<'static, Result<()>>),
    Asking(Boxed<'static, Result<()>>),
    Asked,
    Linked(RemoteSide),
}

/// The side that fills segments.
pub(in crate::channel) struct Source {
    pub(in crate::channel) local: LocalSide,
    link: Link,
    pub(in crate::channel) buffer: Buffer,
    data: LocalSpan<u8>,
    pub(in crate::channel) head: u64,
    pub(in crate::channel) tail: u64,
    pub(in crate::channel) sent: u64,
    /// The puts in flight, and the number of segments sent once they complete.
    flight: Option<(Boxed<'static, Result<()>>, u64)>,
    closing: bool,
    /// Whether each side has announced that it no longer writes to the other.
    closed: [bool; 2],
    pub(in crate::channel) freed: Option<u64>,
}

impl Source {
    pub(in crate::channel) fn new(
        local: LocalSide,
        asking: Boxed<'static, Result<()>>,
        buffer: Buffer,
        data: LocalSpan<u8>,
    ) -> Self {
        let link = Link::Idle(asking);
        let (flight, closing, closed, freed) = (None, false, [false; 2], None);
        Source { local, link, buffer, data, head: 0, tail: 0, sent: 0, flight, closing, closed, freed }
    }

    pub(in crate::channel) fn connect(&mut self) {
        self.link = match core::mem::replace(&mut self.link, Link::Asked) {
            Link::Idle(asking) => Link::Asking(asking),
            link => link,
        };
    }

    pub(in crate::channel) fn is_connected(&self) -> bool {
        self.was_connected() && self.closed == [false; 2] && !self.closing
    }

    pub(in crate::channel) fn was_connected(&self) -> bool {
        matches!(self.link, Link::Linked(_))
    }

    pub(in crate::channel) fn is_closing(&self) -> bool {
        self.closing
    }

    pub(in crate::channel) fn is_complete(&self) -> bool {
        self.closed == [true; 2] || matches!(self.link, Link::Idle(_))
    }

    /// Hands the next segment over.
    pub(in crate::channel) fn ack(&mut self) -> Result<()> {
        match () {
            () if !self.is_connected() => Err(AcpError::NotConnected { peer: self.local.peer }),
            () if self.tail - self.head == self.buffer.segments => Err(AcpError::NoSegment { peer: self.local.peer }),
            () => {
                self.tail += 1;
                Ok(())
            }
        }
    }

    pub(in crate::channel) fn disconnect(&mut self) {
        self.closing = true;
    }

    pub(in crate::channel) fn free(&mut self, request: u64) {
        (self.closing, self.freed) = (true, Some(request));
    }

    pub(in crate::channel) fn advance(&mut self, turn: &mut Turn<'_, '_>) -> Result<bool> {
        if let Link::Asking(asking) = &mut self.link {
            match asking.as_mut().poll(turn.cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(asked) => asked?,
            }
            self.link = Link::Asked;
        }
        loop {
            self.look(turn)?;
            if let Some((flight, sent)) = &mut self.flight {
                let Poll::Ready(done) = flight.as_mut().poll(turn.cx) else { return Ok(false) };
                self.sent = *sent & !CLOSED;
                self.closed[0] = sent != &self.sent;
                self.flight = None;
                turn.changed = true;
                done?;
                continue;
            }
            if self.is_complete() {
                let Some(request) = self.freed else { return Ok(false) };
                turn.results.finish(request, Ok(Done::Freed));
                return Ok(true);
            }
            if let Link::Linked(remote) = &self.link
                && !self.closed[0]
                && (self.sent < self.tail || self.closing)
            {
                let closed = if self.closing { CLOSED } else { 0 };
                let stretch = self.sent..self.tail;
                let work = put_segments(turn.fabric.clone(), remote.clone(), self.data.clone(), stretch, closed);
                self.flight = Some((Box::pin(work), self.tail | closed));
                continue;
            }
            match self.local.poll_change(turn) {
                Poll::Pending => return Ok(false),
                Poll::Ready(changed) => changed?,
            }
        }
    }

    /// Loads the word that the destination writes.
    fn look(&mut self, turn: &mut Turn<'_, '_>) -> Result<()> {
        let word = self.local.load(turn.fabric)?;
        if word == 0 {
            return Ok(());
        }
        if matches!(self.link, Link::Asked) {
            let answer = Answer::read(turn.fabric, &self.local.region)?;
            self.buffer.check(&self.local, answer.slot_bytes, answer.slots)?;
            self.link = Link::Linked(answer.resolve(turn.fabric, &self.local, |bytes| bytes)?);
            turn.changed = true;
        }
        let head = (word & !CLOSED).wrapping_sub(1);
        if !(self.head..=self.tail).contains(&head) {
            return Err(self.local.corrupt(&"the head of a segmented buffer"));
        }
        (self.head, self.closed[1]) = (head, word & CLOSED != 0);
        // Segments that were returned have been sent.
        self.sent = self.sent.max(head);
        Ok(())
    }
}

/// Puts a range of segments, and adds their number to the tail.
async fn put_segments(
    fabric: Fabric,
    remote: RemoteSide,
    data: LocalSpan<u8>,
    stretch: Range<u64>,
    closed: u64,
) -> Result<()> {
    let (mut puts, more) = (Vec::new(), stretch.end - stretch.start);
    for segment in stretch {
        let start = (segment % remote.slots) as usize * remote.slot_bytes;
        let range = start..start + remote.slot_bytes;
        let put = Put { to: &remote.data.slice(range.clone())?, from: data.slice(range)?, notice: None };
        puts.push(fabric.post(put).await?);
    }
    // If puts are ordered before atomics, all of this is posted without waiting in between.
    remote.add(&fabric, more | closed).await?;
    for put in puts {
        put.await?;
    }
    Ok(())
}
