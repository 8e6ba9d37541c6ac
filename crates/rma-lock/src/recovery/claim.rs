//! Who answers for what a rank still does in an epoch that is closed.
//!
//! Whoever opens the next epoch puts a *stand-in* into it for each survivor that may be inside the old one: a reader in its count, or the writer that is
//! active. The survivor takes its stand-in out when its own part in the old epoch is over. A word of the survivor in each epoch, which both change by
//! atomics only, says who came first.

/// The word of a rank in one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim(u64);

impl Claim {
    /// The rank does nothing any more in this epoch.
    pub(super) const OVER: u64 = 1;
    /// A stand-in of the rank, from an older epoch, is in this one.
    pub(super) const HOSTS: u64 = 2;
    /// It has a stand-in in a later epoch …
    const STAND_IN: u64 = 4;
    /// … which is the active writer there.
    const WRITES: u64 = 8;
    const EPOCH: u32 = 8;

    pub(super) fn of_bits(bits: u64) -> Self {
        Claim(bits)
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn is_over(self) -> bool {
        self.0 & Claim::OVER != 0
    }

    pub(super) fn hosts(self) -> bool {
        self.0 & Claim::HOSTS != 0
    }

    /// The epoch in which it has a stand-in, and whether that writes.
    pub(super) fn stand_in(self) -> Option<(usize, bool)> {
        (self.0 & Claim::STAND_IN != 0).then_some(((self.0 >> Claim::EPOCH) as usize, self.0 & Claim::WRITES != 0))
    }

    /// The same with a stand-in in `epoch`.
    pub(super) fn with_stand_in(self, epoch: usize, writes: bool) -> Self {
        let writes = if writes { Claim::WRITES } else { 0 };
        Claim(self.0 & (Claim::OVER | Claim::HOSTS) | Claim::STAND_IN | writes | (epoch as u64) << Claim::EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_who_stands_where() {
        let hosting = Claim::of_bits(Claim::HOSTS);
        assert_eq!((hosting.stand_in(), hosting.hosts(), hosting.is_over()), (None, true, false));
        let marked = hosting.with_stand_in(255, true).with_stand_in(3, false);
        assert_eq!((marked.stand_in(), marked.hosts()), (Some((3, false)), true));
        assert!(Claim::of_bits(marked.bits() | Claim::OVER).is_over());
    }
}
