//! Handles, and the order of operations.

/// An operation that was issued by this rank. Handles count from 1. An operation is complete when
/// it and all earlier ones have completed: the data is visible at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub(crate) i64);

impl Handle {
    /// Returns the number: how many operations the rank had issued, including this one.
    #[inline]
    pub const fn number(self) -> i64 {
        self.0
    }

    /// Restores a handle from [`Handle::number`]. One that was never issued counts as complete.
    #[inline]
    pub const fn from_number(number: i64) -> Self {
        Handle(number)
    }
}

/// The earlier operations that an operation waits for before it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Nothing. Copies of one source rank to one destination rank nevertheless become visible in
    /// the order in which they were issued.
    #[default]
    None,
    /// Every operation that this rank has issued.
    All,
    /// Every operation that this rank has issued, with an exception: a copy between the same two
    /// ranks as the previous copy follows it in order, without waiting for its completion.
    Continue,
    /// This operation and all earlier ones. A handle that was never issued counts as complete.
    After(Handle),
}

impl Order {
    /// Returns the number of the last of `issued` operations to wait for; 0 for none.
    pub(crate) fn last_of(self, issued: i64) -> i64 {
        match self {
            Order::All | Order::Continue => issued,
            // One that was never issued counts as complete.
            Order::After(handle) if handle.0 <= issued => handle.0,
            Order::None | Order::After(_) => 0,
        }
    }

    /// Returns the order for a number of the C interface: 0 is [`Order::None`], -1 (all bits set)
    /// [`Order::All`], -2 [`Order::Continue`], and every other number [`Order::After`] that
    /// operation; no operation has a negative number.
    #[inline]
    pub const fn from_raw(raw: i64) -> Self {
        match raw {
            0 => Order::None,
            -1 => Order::All,
            -2 => Order::Continue,
            number => Order::After(Handle(number)),
        }
    }

    /// Returns the number for this order in the C interface. The inverse of [`Order::from_raw`],
    /// except that a wait for an operation that cannot exist is a wait for nothing.
    #[inline]
    pub const fn to_raw(self) -> i64 {
        match self {
            Order::None => 0,
            Order::All => -1,
            Order::Continue => -2,
            Order::After(Handle(number)) if number > 0 => number,
            Order::After(_) => 0,
        }
    }
}

impl From<Handle> for Order {
    fn from(handle: Handle) -> Self {
        Order::After(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_numbers_are_those_of_the_c_interface() {
        let orders = [(0, Order::None), (-1, Order::All), (-2, Order::Continue), (7, Order::After(Handle(7)))];
        for (raw, order) in orders {
            assert_eq!((Order::from_raw(raw), order.to_raw()), (order, raw));
        }
        assert_eq!(Order::from_raw(-3), Order::After(Handle(-3)));
        for none in [0, -1, -2, i64::MIN] {
            assert_eq!(Order::After(Handle(none)).to_raw(), 0, "{none}");
        }
        assert_eq!((Handle(i64::MAX).number(), Handle::from_number(5)), (i64::MAX, Handle(5)));
        assert_eq!(size_of::<Order>(), 16);
    }
}
