//! One accumulate in flight: atomics on its elements, several at a time.
//!
//! If the fabric has no atomic for the operation, the element is changed by compare-and-swap. The
//! first comparison is a guess without additional cost: if it fails, it serves as a read. An
//! operation that does not change the element writes nothing.

use super::op::UpdateForm;
use core::{
    pin::Pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{Amo, AtomicWord, Fabric, FabricError, Handle, Refused, RemoteAddr, Result};

/// The number of elements of one accumulate that are in flight at the same time.
const TOGETHER: usize = 32;

/// How handles are checked.
pub(super) enum Look<'a, 'b> {
    /// By a task that can be woken.
    Poll(&'a mut Context<'b>),
    /// By a caller that only needs the current state.
    Test,
}

impl Look<'_, '_> {
    pub(super) fn at<T: Unpin>(&mut self, handle: &mut Handle<T>) -> Option<Result<T>> {
        let polled = match self {
            Look::Poll(cx) => Pin::new(handle).poll(cx),
            // Polled only when complete, so that no other task's waker is displaced.
            Look::Test if handle.test() => Pin::new(handle).poll(&mut Context::from_waker(Waker::noop())),
            Look::Test => Poll::Pending,
        };
        match polled {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

/// The progress of an accumulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Operations are in flight.
    Waiting,
    /// No operation is in flight, and there was no room to post one.
    NoRoom,
    Complete,
}

/// An accumulate in flight.
pub(super) struct Update {
    /// The address of the first element.
    at: RemoteAddr,
    form: UpdateForm,
    /// Whether elements have 8 bytes instead of 4.
    wide: bool,
    /// An operand for each element; once the accumulate is complete, the previous values.
    values: Vec<u64>,
    /// The first element that has not been started.
    next: usize,
    /// Elements to compare again, each with the value to expect.
    again: Vec<(usize, u64)>,
    in_flight: Vec<ElementOp>,
    /// The error with which the accumulate failed; no further operations are started after it.
    error: Option<FabricError>,
}

struct ElementOp {
    element: usize,
    /// The value with which the element was compared.
    guess: u64,
    handle: WidthHandle,
}

enum WidthHandle {
    Narrow(Handle<u32>),
    Wide(Handle<u64>),
}

impl Update {
    pub(super) fn new(at: RemoteAddr, bytes: usize, form: UpdateForm, values: Vec<u64>) -> Self {
        let wide = bytes == u64::BYTES;
        Update { at, form, wide, values, next: 0, again: Vec::new(), in_flight: Vec::new(), error: None }
    }

    fn bytes(&self) -> usize {
        if self.wide { u64::BYTES } else { u32::BYTES }
    }

    /// Returns whether this accumulate has bytes in common with another.
    pub(super) fn overlaps(&self, other: &Update) -> bool {
        let end = |update: &Update| update.at.offset + (update.values.len() * update.bytes()) as u64;
        self.at.rank == other.at.rank && self.at.offset < end(other) && other.at.offset < end(self)
    }

    /// Returns the previous values, or the reason why the accumulate failed.
    pub(super) fn outcome(self) -> Result<Vec<u64>> {
        self.error.map_or(Ok(self.values), Err)
    }

    /// Advances the accumulate as far as possible.
    pub(super) fn advance(&mut self, fabric: &Fabric, look: &mut Look<'_, '_>) -> Progress {
        loop {
            self.land(look);
            let (posted, full) = self.post(fabric);
            if self.in_flight.is_empty() && full {
                return Progress::NoRoom;
            }
            if self.in_flight.is_empty() && (self.error.is_some() || self.begun()) {
                return Progress::Complete;
            }
            // An operation just posted may already be complete; if not, its handle must have a
            // waker.
            if !posted {
                return Progress::Waiting;
            }
        }
    }

    fn begun(&self) -> bool {
        self.again.is_empty() && self.next == self.values.len()
    }

    /// Processes the results that have arrived.
    fn land(&mut self, look: &mut Look<'_, '_>) {
        let mut position = 0;
        while let Some(op) = self.in_flight.get_mut(position) {
            let result = match &mut op.handle {
                WidthHandle::Narrow(handle) => look.at(handle).map(|result| result.map(u64::from)),
                WidthHandle::Wide(handle) => look.at(handle),
            };
            let Some(result) = result else {
                position += 1;
                continue;
            };
            let ElementOp { element, guess, .. } = self.in_flight.swap_remove(position);
            match result {
                Err(error) => self.error = self.error.take().or(Some(error)),
                Ok(old) => match self.form {
                    UpdateForm::Compute(compute) if old != guess && compute(old, self.values[element]) != old => {
                        self.again.push((element, old));
                    }
                    _ => self.values[element] = old,
                },
            }
        }
    }

    /// Posts as many operations as there is room for. Returns whether any was posted, and whether
    /// there was no room for more.
    fn post(&mut self, fabric: &Fabric) -> (bool, bool) {
        let mut posted = false;
        while self.error.is_none() && self.in_flight.len() < TOGETHER && !self.begun() {
            let (element, guess) = self.again.last().copied().unwrap_or((self.next, 0));
            let operand = self.values[element];
            let amo = match self.form {
                UpdateForm::Atomic(amo) => amo(operand),
                UpdateForm::Compute(compute) => Amo::CompareSwap { expected: guess, new: compute(guess, operand) },
                UpdateForm::Exchange(expected) => Amo::CompareSwap { expected, new: operand },
            };
            match self.begin(fabric, element, amo) {
                Ok(handle) => self.in_flight.push(ElementOp { element, guess, handle }),
                Err(Refused::Full(())) => return (posted, true),
                Err(Refused::Failed(error, ())) => {
                    self.error = Some(error);
                    break;
                }
            }
            posted = true;
            if self.again.pop().is_none() {
                self.next += 1;
            }
        }
        (posted, false)
    }

    fn begin(&self, fabric: &Fabric, element: usize, amo: Amo<u64>) -> Result<WidthHandle, Refused<()>> {
        let at = RemoteAddr { offset: self.at.offset + (element * self.bytes()) as u64, ..self.at };
        let failed = |error| Refused::Failed(error, ());
        if self.wide {
            let word = fabric.remote_word(at).map_err(failed)?;
            fabric.try_atomic(&word, amo).map(WidthHandle::Wide)
        } else {
            let word = fabric.remote_word(at).map_err(failed)?;
            fabric.try_atomic(&word, narrow(amo)).map(WidthHandle::Narrow)
        }
    }
}

fn narrow(amo: Amo<u64>) -> Amo<u32> {
    match amo {
        Amo::Add(v) => Amo::Add(v as u32),
        Amo::Swap(v) => Amo::Swap(v as u32),
        Amo::CompareSwap { expected, new } => Amo::CompareSwap { expected: expected as u32, new: new as u32 },
        Amo::Or(v) => Amo::Or(v as u32),
        Amo::And(v) => Amo::And(v as u32),
        Amo::Xor(v) => Amo::Xor(v as u32),
    }
}
