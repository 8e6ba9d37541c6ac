//! The callers' integers.

/// Fortran's `INTEGER`, and `blacs_int` of the header.
#[cfg(not(feature = "int64"))]
pub(crate) type Int = i32;
/// Fortran's `INTEGER`, and `blacs_int` of the header.
#[cfg(feature = "int64")]
pub(crate) type Int = i64;

/// Returns a number of rows or columns; 0 for negative numbers.
pub(crate) fn extent(given: Int) -> usize {
    usize::try_from(given).unwrap_or(0)
}

/// Returns a number, which is small by its nature, as the caller's integer.
pub(crate) fn int(number: usize) -> Int {
    Int::try_from(number).unwrap_or(Int::MAX)
}

/// Returns the number if it fits into 32 bits.
#[allow(clippy::useless_conversion, reason = "an `Int` may have 32 bits itself")]
pub(crate) fn narrow(given: Int) -> Option<i32> {
    i32::try_from(given).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_extents_are_empty() {
        assert_eq!([-1, 0, 7].map(extent), [0, 0, 7]);
        assert_eq!((int(7), int(usize::MAX)), (7, Int::MAX));
    }
}
