//! The operations that failed, until somebody is told.

use super::{Engine, Stage};
use crate::{AcpError, Handle, Result};
use std::{cmp::Reverse, collections::BTreeMap};

impl Engine {
    /// Takes all failures.
    pub(crate) fn take_failures(&mut self) -> BTreeMap<i64, AcpError> {
        core::mem::take(&mut self.failed)
    }

    /// Notes a failure. What waits for the operation will not start.
    #[cold]
    pub(crate) fn fail(&mut self, id: i64, error: AcpError) {
        let first = self.over + 1;
        for Reverse((after, waiting)) in core::mem::take(&mut self.waiting) {
            if after < id {
                self.waiting.push(Reverse((after, waiting)));
            } else if let Some(stage) = self.pending.get_mut((waiting - first) as usize) {
                *stage = Stage::Over;
                self.failed.insert(waiting, AcpError::NotStarted { because: Handle(id) });
            }
        }
        self.failed.insert(id, error);
    }

    /// Takes the failures up to `until`, and returns the first.
    #[inline(always)]
    pub(super) fn report(&mut self, until: i64) -> Result<()> {
        if self.failed.is_empty() { Ok(()) } else { self.report_first(until) }
    }

    #[cold]
    fn report_first(&mut self, until: i64) -> Result<()> {
        let later = self.failed.split_off(&(until + 1));
        let told = core::mem::replace(&mut self.failed, later);
        told.into_values().next().map_or(Ok(()), Err)
    }
}
