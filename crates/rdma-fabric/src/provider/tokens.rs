//! Operations under way by their tokens, for providers that live on one thread.

use super::Token;
use core::{
    cell::{Cell, RefCell},
    fmt,
    num::NonZeroU64,
};
use std::collections::BTreeMap;

/// What a provider keeps of operations that are under way. Not borrowed between calls, so that they may be polled meanwhile.
pub struct Tokens<T> {
    made: Cell<u64>,
    kept: RefCell<BTreeMap<NonZeroU64, T>>,
}

impl<T> Default for Tokens<T> {
    fn default() -> Self {
        Tokens { made: Cell::new(0), kept: RefCell::default() }
    }
}

impl<T> Tokens<T> {
    /// A new token, under which `operation` is kept.
    pub fn add(&self, operation: T) -> Token {
        let made = NonZeroU64::MIN.saturating_add(self.made.get());
        self.made.set(made.get());
        let token = Token(made);
        self.put_back(token, operation);
        token
    }

    /// What is kept under `token`, to be [put back](Tokens::put_back) unless it is over.
    pub fn take(&self, token: Token) -> Option<T> {
        self.kept.borrow_mut().remove(&token.0)
    }

    /// Keep `operation` under the token that it had.
    pub fn put_back(&self, token: Token, operation: T) {
        self.kept.borrow_mut().insert(token.0, operation);
    }
}

impl<T> fmt::Debug for Tokens<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({} of {})", self.kept.borrow().len(), self.made.get())
    }
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn a_token_names_one_operation_until_it_is_taken() {
        let tokens = Tokens::default();
        let (a, b) = (tokens.add('a'), tokens.add('b'));
        assert_eq!((tokens.take(a), tokens.take(a)), (Some('a'), None));
        tokens.put_back(b, 'c');
        assert_ne!(tokens.add('d'), a, "no token is used twice");
        assert_eq!(tokens.take(b), Some('c'));
    }
}
