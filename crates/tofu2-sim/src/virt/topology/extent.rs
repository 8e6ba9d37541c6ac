//! One axis: how long it is, and whether it closes to a ring.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Extent {
    pub(super) length: u32,
    pub(super) wraps: bool,
}

impl Extent {
    /// Number of steps from `a` to `b` on the shorter side, and whether they go upwards: so if both sides are equal.
    #[inline]
    pub(super) fn steps(self, a: u32, b: u32) -> (u32, bool) {
        if !self.wraps {
            return (a.abs_diff(b), b >= a);
        }
        let up = if b >= a { b - a } else { b + self.length - a };
        let down = if up == 0 { 0 } else { self.length - up };
        if up <= down { (up, true) } else { (down, false) }
    }

    /// One step from `a`, and whether it goes over the wrap-around. At the end of a line it leads to the other end too, where
    /// no route goes.
    #[inline]
    pub(super) fn step(self, a: u32, up: bool) -> (u32, bool) {
        let last = self.length - 1;
        match up {
            true if a == last => (0, true),
            true => (a + 1, false),
            false if a == 0 => (last, true),
            false => (a - 1, false),
        }
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.length, if self.wraps { "" } else { "m" })
    }
}
