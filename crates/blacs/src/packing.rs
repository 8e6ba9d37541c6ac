//! The packing of matrices into messages: their runs, one after the other.
//!
//! Long runs are passed in place; short ones are collected in a scratch buffer, so that a small
//! matrix is a single piece regardless of its layout in memory.

use crate::{Memory, MemoryMut, Result, Shape, shape::Runs};
use core::ops::Range;
use fmpl::{Sink, Source};
use rdma_fabric::{Fabric, FabricError, LocalSpan};

/// The minimum length of a run that is passed in place, in bytes.
const LONG: usize = 8 << 10;
/// The size of the scratch buffer in bytes.
const SCRATCH: usize = 16 << 10;

/// A position in the message of a shape.
#[derive(Clone)]
struct Walk {
    shape: Shape,
    /// The number of bytes of an element.
    size: usize,
    /// The number of bytes of the message.
    bytes: usize,
    runs: Runs,
    /// The rest of the current run, in bytes of the memory.
    run: Range<usize>,
    /// The number of bytes of the message before the current run.
    at: usize,
}

impl Walk {
    fn new(shape: Shape, size: usize) -> Self {
        Walk { shape, size, bytes: shape.bytes(size), runs: shape.runs(), run: 0..0, at: 0 }
    }

    fn go_to(&mut self, at: usize) {
        if at < self.at {
            *self = Walk::new(self.shape, self.size);
        }
        while self.at < at && !self.take(at - self.at).is_empty() {}
    }

    /// Returns the length of the rest of the current run; 0 at the end.
    fn ahead(&mut self) -> usize {
        if self.run.is_empty() {
            self.run = self.runs.next().map_or(0..0, |run| run.start * self.size..run.end * self.size);
        }
        self.run.len()
    }

    /// Takes up to `most` bytes of the current run.
    fn take(&mut self, most: usize) -> Range<usize> {
        let taken = self.ahead().min(most);
        let range = self.run.start..self.run.start + taken;
        self.run.start = range.end;
        self.at += taken;
        range
    }

    /// Collects `first` and the short runs after it into `pieces`; returns their total length.
    fn collect(&mut self, first: Range<usize>, most: usize, longest: usize, pieces: &mut Vec<Range<usize>>) -> usize {
        let (most, mut length) = (most.min(SCRATCH), first.len());
        pieces.clear();
        pieces.push(first);
        while length < most && (1..longest).contains(&self.ahead()) {
            let piece = self.take(most - length);
            length += piece.len();
            pieces.push(piece);
        }
        length
    }

    /// Returns the part of fabric memory that contains the whole message, if it is contiguous.
    fn in_one_piece(&self, memory: Option<&LocalSpan<u8>>) -> Option<LocalSpan<u8>> {
        let mut runs = self.shape.runs();
        let (span, run) = (memory?, runs.next()?);
        match runs.next() {
            Some(_) => None,
            None => span.slice(run.start * self.size..run.end * self.size).ok(),
        }
    }
}

/// Readable memory.
pub(crate) enum View<'a> {
    Shared(&'a dyn Memory),
    /// Memory that the caller may also write.
    Own(&'a mut (dyn MemoryMut + 'a)),
}

impl View<'_> {
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        match self {
            View::Shared(memory) => memory.bytes(range),
            View::Own(memory) => memory.bytes(range),
        }
    }

    pub(crate) fn span(&self) -> Option<&LocalSpan<u8>> {
        match self {
            View::Shared(memory) => memory.span(),
            View::Own(memory) => memory.span(),
        }
    }
}

/// A matrix being sent.
pub(crate) struct Outgoing<'a> {
    fabric: &'a Fabric,
    view: View<'a>,
    walk: Walk,
    scratch: Vec<u8>,
    pieces: Vec<Range<usize>>,
    /// The whole message in fabric memory.
    span: Option<LocalSpan<u8>>,
    /// The error of a failed read of fabric memory.
    failed: Option<FabricError>,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn new(fabric: &'a Fabric, view: View<'a>, shape: Shape, size: usize) -> Self {
        let walk = Walk::new(shape, size);
        let span = walk.in_one_piece(view.span());
        Outgoing { fabric, view, walk, scratch: Vec::new(), pieces: Vec::new(), span, failed: None }
    }

    /// Returns the message in a new buffer.
    pub(crate) fn packed(mut self) -> Result<Vec<u8>> {
        let mut packed = Vec::with_capacity(self.bytes());
        while packed.len() < self.bytes() {
            let most = self.bytes() - packed.len();
            packed.extend_from_slice(self.chunk(packed.len(), most));
        }
        self.read_all()?;
        Ok(packed)
    }

    /// Returns an error if a read has failed.
    pub(crate) fn read_all(self) -> Result<()> {
        self.failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn collect(&mut self, first: Range<usize>, most: usize, longest: usize) -> &[u8] {
        let length = self.walk.collect(first, most, longest, &mut self.pieces);
        self.scratch.clear();
        match self.view.span() {
            None => self.pieces.iter().for_each(|piece| self.scratch.extend_from_slice(self.view.bytes(piece.clone()))),
            Some(span) => {
                self.scratch.resize(length, 0);
                let mut rest = &mut self.scratch[..];
                for piece in &self.pieces {
                    let (into, after) = rest.split_at_mut(piece.len());
                    let read = span.part(piece.clone()).and_then(|part| self.fabric.read(&*part, into));
                    self.failed = self.failed.take().or(read.err());
                    rest = after;
                }
            }
        }
        &self.scratch
    }
}

impl Source for Outgoing<'_> {
    fn bytes(&self) -> usize {
        self.walk.bytes
    }

    fn chunk(&mut self, at: usize, most: usize) -> &[u8] {
        self.walk.go_to(at);
        if self.view.span().is_some() {
            let first = self.walk.take(most.min(SCRATCH));
            return self.collect(first, most, usize::MAX);
        }
        let first = self.walk.take(most);
        if first.len() >= LONG || first.len() == most || self.walk.ahead() == 0 {
            return self.view.bytes(first);
        }
        self.collect(first, most, LONG)
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        self.span.as_ref()
    }
}

/// A matrix being received.
pub(crate) struct Incoming<'a> {
    fabric: &'a Fabric,
    memory: &'a mut (dyn MemoryMut + 'a),
    walk: Walk,
    scratch: Vec<u8>,
    /// The destinations of the bytes in the scratch buffer; empty if the chunk was received in place.
    pieces: Vec<Range<usize>>,
    /// The whole message in fabric memory.
    span: Option<LocalSpan<u8>>,
    /// The error of a failed write to fabric memory.
    failed: Option<FabricError>,
}

impl<'a> Incoming<'a> {
    pub(crate) fn new(fabric: &'a Fabric, memory: &'a mut (dyn MemoryMut + 'a), shape: Shape, size: usize) -> Self {
        let walk = Walk::new(shape, size);
        let span = walk.in_one_piece(memory.span());
        Incoming { fabric, memory, walk, scratch: Vec::new(), pieces: Vec::new(), span, failed: None }
    }

    /// Unpacks a message that is in one piece.
    pub(crate) fn unpack(mut self, packed: &[u8]) -> Result<()> {
        let mut at = 0;
        while at < packed.len() {
            let chunk = self.chunk(at, packed.len() - at);
            let length = chunk.len();
            chunk.copy_from_slice(&packed[at..at + length]);
            self.filled(at, length);
            at += length;
        }
        self.written_all()
    }

    /// Returns an error if a write has failed.
    pub(crate) fn written_all(self) -> Result<()> {
        self.failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn collect(&mut self, first: Range<usize>, most: usize, longest: usize) -> &mut [u8] {
        let length = self.walk.collect(first, most, longest, &mut self.pieces);
        self.scratch.resize(length, 0);
        &mut self.scratch
    }
}

impl Sink for Incoming<'_> {
    fn bytes(&self) -> usize {
        self.walk.bytes
    }

    fn chunk(&mut self, at: usize, most: usize) -> &mut [u8] {
        self.walk.go_to(at);
        if self.memory.span().is_some() {
            let first = self.walk.take(most.min(SCRATCH));
            return self.collect(first, most, usize::MAX);
        }
        let first = self.walk.take(most);
        if first.len() >= LONG || first.len() == most || self.walk.ahead() == 0 {
            self.pieces.clear();
            return self.memory.bytes_mut(first);
        }
        self.collect(first, most, LONG)
    }

    fn filled(&mut self, _: usize, len: usize) {
        let mut rest = &self.scratch[..];
        for piece in self.pieces.drain(..) {
            let (from, after) = rest.split_at(piece.len());
            rest = after;
            match self.memory.span() {
                None => self.memory.bytes_mut(piece).copy_from_slice(from),
                Some(span) => {
                    let written = span.part(piece).and_then(|part| self.fabric.write(&*part, from));
                    self.failed = self.failed.take().or(written.err());
                }
            }
        }
        debug_assert!(rest.is_empty() || rest.len() == self.scratch.len(), "{len} bytes fill no chunk");
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        self.span.as_ref()
    }
}
