//! How much a lock survives.

use super::agreement::{MOST_DEATHS, MOST_EPOCHS};
use crate::{LockError, Result};

/// How many deaths a [`super::RecoverableLock`] survives. Each costs memory at every rank: 192 bytes an epoch, 8 a death.
///
/// A lock is not made beyond the limits below: [`LockError::RecoveryLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Epochs the lock may have, the first included, 1 to 256. Each recovery begins one; ranks that die together, or before others have noticed, take one
    /// together.
    pub epochs: usize,
    /// Ranks that may die, 0 to 4095.
    pub deaths: usize,
}

impl Recovery {
    /// So many ranks may die, one after the other: 0 to 255.
    pub const fn of_deaths(deaths: usize) -> Self {
        Recovery { epochs: deaths.saturating_add(1), deaths }
    }

    /// The same, if it is possible.
    ///
    /// # Errors
    /// [`LockError::RecoveryLimits`].
    pub(super) fn checked(self) -> Result<Self> {
        if self == self.within_limits() {
            return Ok(self);
        }
        let told = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Err(LockError::RecoveryLimits { epochs: told(self.epochs), deaths: told(self.deaths) })
    }

    /// The nearest that is possible: for which memory is allocated before what is not is refused.
    pub(super) fn within_limits(self) -> Self {
        Recovery { epochs: self.epochs.clamp(1, MOST_EPOCHS), deaths: self.deaths.min(MOST_DEATHS) }
    }
}

/// 31 deaths: 6.3 KiB at each rank.
impl Default for Recovery {
    fn default() -> Self {
        Recovery::of_deaths(31)
    }
}
