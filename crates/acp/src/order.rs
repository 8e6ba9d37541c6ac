//! Handles, and what an operation waits for.

/// An operation that was issued by this rank. Handles count from 1, and an operation is complete
/// when it and all earlier ones are over: the data is visible at its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub(crate) i64);

impl Handle {
    /// Returns the number: how many operations the rank had issued with this one.
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

/// What an operation waits for before it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Nothing. Copies of one source rank to one destination rank nevertheless become visible in
    /// the order in which they were issued.
    #[default]
    None,
    /// Every operation that this rank has issued.
    All,
    /// Every operation that this rank has issued, except that a copy between the same two ranks as
    /// the copy just before follows it in order, without waiting for its completion.
    Continue,
    /// This operation and all earlier ones. A handle that was never issued counts as complete.
    After(Handle),
}

impl From<Handle> for Order {
    fn from(handle: Handle) -> Self {
        Order::After(handle)
    }
}

impl Order {
    /// Returns the order of the C interface: 0 waits for nothing, −1 for all, −2 continues, and any
    /// other number is a handle's.
    pub const fn from_raw(order: i64) -> Self {
        match order {
            0 => Order::None,
            -1 => Order::All,
            -2 => Order::Continue,
            handle => Order::After(Handle(handle)),
        }
    }

    /// Returns the number of the C interface that stands for this order.
    pub const fn to_raw(self) -> i64 {
        match self {
            Order::None => 0,
            Order::All => -1,
            Order::Continue => -2,
            Order::After(handle) => handle.0,
        }
    }
}
