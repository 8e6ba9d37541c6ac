//! Positions in sequences.

use super::{Arrangement, Sequence};
use crate::{AcpError, GlobalAddress, Result};
use core::fmt;
use rdma_fabric::Pod;

/// A position in a sequence, between two elements or at an end.
///
/// It is a number: inserting and removing elsewhere changes what is behind it.
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

    /// Reads the element behind the position and goes behind it; `None` at the end.
    ///
    /// # Errors
    /// What [`Sequence::get`] meets.
    pub async fn next(&mut self) -> Result<Option<T>> {
        match self.sequence.get(self.position).await {
            Ok(element) => {
                self.position += 1;
                Ok(Some(element))
            }
            Err(AcpError::OutOfRange { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Goes so many elements on, or back. Whether there are as many is seen when the position is
    /// used; before the first there is none.
    ///
    /// # Errors
    /// [`AcpError::OutOfRange`], and the position stays.
    pub fn advance(&mut self, by: isize) -> Result<()> {
        let moved = self.position.checked_add_signed(by);
        let outside = AcpError::OutOfRange { position: by.unsigned_abs() as u64, len: self.position as u64 };
        self.position = moved.ok_or(outside)?;
        Ok(())
    }

    /// Returns where the element behind the position is.
    ///
    /// # Errors
    /// What [`Sequence::at`] meets.
    pub async fn address(&self) -> Result<GlobalAddress> {
        self.sequence.at(self.position).await
    }

    /// Returns how many elements are between this position and a later one of the sequence; negative
    /// if it is an earlier one.
    pub fn distance(&self, later: &Self) -> isize {
        later.position as isize - self.position as isize
    }
}
