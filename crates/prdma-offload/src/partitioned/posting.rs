//! Calls that may be dropped while they post.

use crate::PrdmaError;
use std::sync::OnceLock;

/// While a call posts partitions; if it is dropped, the request is broken.
pub(super) struct Posting<'a> {
    broken: &'a OnceLock<PrdmaError>,
    half: Option<PrdmaError>,
}

impl<'a> Posting<'a> {
    /// A call that breaks the request with `half` if it is not [over](Posting::over).
    pub(super) fn begun(broken: &'a OnceLock<PrdmaError>, half: PrdmaError) -> Self {
        Posting { broken, half: Some(half) }
    }

    pub(super) fn over(mut self) {
        self.half = None;
    }
}

impl Drop for Posting<'_> {
    fn drop(&mut self) {
        if let Some(half) = self.half.take() {
            let _ = self.broken.set(half);
        }
    }
}
