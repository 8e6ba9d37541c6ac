//! Random numbers that depend only on the seed, the campaign and the case, so that a case can be
//! replayed alone.

/// A sequence of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn of(seed: u64, campaign: &str, case: usize) -> Self {
        let mut draw = Draw(seed);
        for part in campaign.bytes().map(u64::from).chain([case as u64]) {
            draw.0 = draw.next() ^ part;
        }
        draw
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_draws_the_same_alone() {
        let four = |seed, campaign, case| {
            let mut draw = Draw::of(seed, campaign, case);
            [draw.next(), draw.next(), draw.next(), draw.next()]
        };
        assert_eq!(four(1, "kills", 7), four(1, "kills", 7));
        for other in [four(2, "kills", 7), four(1, "signals", 7), four(1, "kills", 8)] {
            assert_ne!(four(1, "kills", 7), other);
        }
    }
}
