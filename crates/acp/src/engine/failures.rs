//! Failed operations that have not been reported yet.

use super::{Engine, Stage};
use crate::{AcpError, Handle, Result};
use std::cmp::Reverse;

/// The errors of failed operations, with their handles in ascending order.
#[derive(Default)]
pub(crate) struct Failures(Vec<(i64, AcpError)>);

impl Failures {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, id: i64, error: AcpError) {
        let at = self.before(id);
        self.0.insert(at, (id, error));
    }

    /// Adds all failures of another set.
    pub(crate) fn append(&mut self, other: impl IntoIterator<Item = (i64, AcpError)>) {
        other.into_iter().for_each(|(id, error)| self.add(id, error));
    }

    /// Removes the failures up to `until`, and returns the first.
    #[inline(always)]
    pub(crate) fn report(&mut self, until: i64) -> Result<()> {
        if self.is_empty() { Ok(()) } else { self.report_first(until) }
    }

    #[cold]
    fn report_first(&mut self, until: i64) -> Result<()> {
        let later = self.0.split_off(self.before(until + 1));
        let told = core::mem::replace(&mut self.0, later);
        told.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Returns the number of failures of operations before `id`.
    fn before(&self, id: i64) -> usize {
        self.0.partition_point(|(failed, _)| *failed < id)
    }
}

impl IntoIterator for Failures {
    type Item = (i64, AcpError);
    type IntoIter = std::vec::IntoIter<(i64, AcpError)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Engine {
    /// Removes and returns all failures.
    pub(crate) fn take_failures(&mut self) -> Failures {
        core::mem::take(&mut self.failed)
    }

    /// Records a failure. Operations that wait for this one will not start.
    #[cold]
    pub(crate) fn fail(&mut self, id: i64, error: AcpError) {
        let first = self.over() + 1;
        for Reverse((after, waiting)) in core::mem::take(&mut self.waiting) {
            if after < id {
                self.waiting.push(Reverse((after, waiting)));
            } else if let Some(stage) = self.pending.get_mut((waiting - first) as usize) {
                *stage = Stage::Complete;
                self.failed.add(waiting, AcpError::NotStarted { because: Handle(id) });
            }
        }
        self.failed.add(id, error);
    }
}
