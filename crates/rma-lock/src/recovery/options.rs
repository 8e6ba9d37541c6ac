//! How much a lock survives.

use super::agreement::{MOST_DEATHS, MOST_EPOCHS};

/// How many deaths a [`super::RecoverableLock`] survives. Each costs memory at every rank: 192 bytes an epoch, 8 a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Epochs the lock may have, the first included, 1 to 256. Each recovery begins one; ranks that die together, or before others have noticed, take one
    /// together.
    pub epochs: usize,
    /// Ranks that may die, 0 to 4095.
    pub deaths: usize,
}

impl Recovery {
    /// So many ranks may die, one after the other.
    pub const fn of_deaths(deaths: usize) -> Self {
        Recovery { epochs: deaths + 1, deaths }.within_limits()
    }

    /// The nearest that is possible.
    pub(super) const fn within_limits(self) -> Self {
        const fn clamp(n: usize, least: usize, most: usize) -> usize {
            if n < least {
                least
            } else if n > most {
                most
            } else {
                n
            }
        }
        Recovery { epochs: clamp(self.epochs, 1, MOST_EPOCHS), deaths: clamp(self.deaths, 0, MOST_DEATHS) }
    }
}

/// 31 deaths: 6.3 KiB at each rank.
impl Default for Recovery {
    fn default() -> Self {
        Recovery::of_deaths(31)
    }
}
