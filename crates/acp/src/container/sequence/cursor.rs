//! Positions in sequences.

use super::{Arrangement, Sequence};
use crate::{AcpError, GlobalAddress, Result};
use core::fmt;
use rdma_fabric::Pod;

/// A position in a sequence, between two elements or at an end.
///
/// It is an index, so insertions and removals elsewhere change which element follows it.
pub struct Cursor<T, A> {
    sequence: Sequence<T, A>,
    position: usize,
}

impl<T, A> Clone for Cursor<T, A> {
    fn clone(&self) -> Self {
        Cursor { sequence: self.sequence.clone(), position: self.position }
    }
}

impl<T, A> fmt::Debug for Cursor<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {} of {:?}", self.position, self.sequence)
    }
}

impl<T: Pod, A: Arrangement> Cursor<T, A> {
    pub(super) fn new(sequence: Sequence<T, A>, position: usize) -> Self {
        Cursor { sequence, position }
    }

    /// Returns the position: the number of elements before it.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Reads the element after the position and moves past it; `None` at the end.
    ///
    /// # Errors
    /// The errors of [`Sequence::get`].
    pub async fn next(&mut self) -> Result<Option<T>> {
        match self.sequence.get(self.position).await {
            Ok(element) => {
                self.position = self.position.saturating_add(1);
                Ok(Some(element))
            }
            Err(AcpError::OutOfRange { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Moves by `by` elements, forward or back. A position beyond the last element is detected when
    /// it is used; one before the first element is an error.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], with the position unchanged.
    pub fn advance(&mut self, by: isize) -> Result<()> {
        let moved = self.position.checked_add_signed(by);
        let outside = AcpError::OutOfRange { position: by.unsigned_abs() as u64, len: self.position as u64 };
        self.position = moved.ok_or(outside)?;
        Ok(())
    }

    /// Returns the address of the element after the position.
    ///
    /// # Errors
    /// The errors of [`Sequence::at`].
    pub async fn address(&self) -> Result<GlobalAddress> {
        self.sequence.at(self.position).await
    }

    /// Returns the number of elements between this position and a later one of the sequence;
    /// negative if it is an earlier one. `isize::MAX` and `isize::MIN` also stand for more elements than
    /// these.
    pub fn distance(&self, later: &Self) -> isize {
        let distance = (later.position as i128).saturating_sub(self.position as i128);
        distance.clamp(isize::MIN as i128, isize::MAX as i128) as isize
    }
}
