//! The in-flight table of providers that live on one thread.

use super::Token;
use core::{
    cell::{Cell, RefCell},
    fmt,
    num::NonZeroU64,
};
use std::collections::BTreeMap;

/// A provider's operations in flight, by their tokens. The table is not borrowed between calls, so
/// that operations may be polled in the meantime.
pub struct InFlightTable<T> {
    made: Cell<u64>,
    kept: RefCell<BTreeMap<NonZeroU64, T>>,
}

impl<T> Default for InFlightTable<T> {
    fn default() -> Self {
        InFlightTable { made: Cell::new(0), kept: RefCell::default() }
    }
}

impl<T> InFlightTable<T> {
    /// Stores `operation` under a new token.
    pub fn add(&self, operation: T) -> Token {
        let made = NonZeroU64::MIN.saturating_add(self.made.get());
        self.made.set(made.get());
        let token = Token(made);
        self.put_back(token, operation);
        token
    }

    /// Takes out the operation stored under `token`; [put it back](InFlightTable::put_back) unless
    /// it is complete.
    pub fn take(&self, token: Token) -> Option<T> {
        self.kept.borrow_mut().remove(&token.0)
    }

    /// Stores `operation` under its previous token.
    pub fn put_back(&self, token: Token, operation: T) {
        self.kept.borrow_mut().insert(token.0, operation);
    }
}

impl<T> fmt::Debug for InFlightTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InFlightTable({} of {})", self.kept.borrow().len(), self.made.get())
    }
}

#[cfg(test)]
mod tests {
    use super::InFlightTable;

    #[test]
    fn a_token_names_one_operation_until_it_is_taken() {
        let tokens = InFlightTable::default();
        let (a, b) = (tokens.add('a'), tokens.add('b'));
        assert_eq!((tokens.take(a), tokens.take(a)), (Some('a'), None));
        tokens.put_back(b, 'c');
        assert_ne!(tokens.add('d'), a, "no token is used twice");
        assert_eq!(tokens.take(b), Some('c'));
    }
}
