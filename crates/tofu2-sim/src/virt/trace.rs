//! The trace hash: 64 bits that two runs share only if they went the same way.

/// Folds what happened, event by event. A fixed function: the value may be recorded in tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace(u64);

impl Trace {
    pub(super) fn new() -> Self {
        Trace(0x243f_6a88_85a3_08d3)
    }

    #[inline]
    pub(super) fn fold(&mut self, time: u64, kind: u8, who: u32) {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        let what = u64::from(kind) << 32 | u64::from(who);
        let mixed = (self.0.rotate_left(23) ^ time).wrapping_mul(MULTIPLIER);
        self.0 = (mixed ^ mixed >> 29 ^ what).wrapping_mul(MULTIPLIER);
    }

    pub(super) fn value(self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
