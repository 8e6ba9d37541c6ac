//! Positions and credit. Positions count slots from a queue's opening; the hardware stores them
//! only modulo the depth, which is a power of two.

/// Returns the number of slots of a ring of `depth` that may be in use at once. One always stays
/// free, so that a full ring differs from an empty one.
pub(crate) const fn usable(depth: u32) -> u64 {
    depth.saturating_sub(1) as u64
}

/// Returns the number of slots that may be executed from position `read` on, when the advances and
/// the initial offset add up to `scheduled`.
///
/// The session offset is a ring index: credit that is a whole ring ahead of the read pointer is
/// lost.
pub(crate) const fn credit(read: u64, scheduled: u64, depth: u32) -> u64 {
    scheduled.wrapping_sub(read) & (depth as u64).wrapping_sub(1)
}

/// Returns whether credit was or would be lost because the offset is a whole ring ahead. This is
/// not the case if the read pointer, read later, has passed the offset's old value.
pub(crate) const fn is_overrun(read: u64, scheduled: u64, depth: u32) -> bool {
    let ahead = scheduled.wrapping_sub(read);
    ahead >= depth as u64 && ahead < 1 << 63
}

/// Returns whether `slots` more fit behind position `write`; `None` if the positions contradict
/// each other.
pub(crate) fn has_room(read: u64, write: u64, slots: u64, depth: u32) -> Option<bool> {
    let used = write.checked_sub(read).filter(|&used| used <= usable(depth))?;
    Some(used + slots <= usable(depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 400 puts with SPS(15) into a ring of 2048 slots leave the offset at 6000 mod 2048.
    #[test]
    fn credit_larger_than_the_ring_wraps() {
        assert_eq!(credit(0, 6000, 2048), 1904);
        assert!(is_overrun(0, 6000, 2048) && is_overrun(0, 2048, 2048) && !is_overrun(0, 2047, 2048));
        assert!(!is_overrun(6001, 6000, 2048), "others have advanced it and executed that since");
        // No credit is left once that is used up, because the ring indices are equal.
        assert_eq!(credit(1904, 6000, 2048), 0);
        assert_eq!(credit(5, 2053, 2048), 0);
    }

    #[test]
    fn one_slot_stays_free() {
        assert_eq!(usable(2), 1);
        assert_eq!(has_room(10, 16, 1, 8), Some(true));
        assert_eq!(has_room(10, 16, 2, 8), Some(false));
        assert_eq!(has_room(10, 17, 1, 8), Some(false));
        assert_eq!(has_room(10, 18, 1, 8), None);
        assert_eq!(has_room(11, 10, 1, 8), None);
    }
}
