//! Letters that stand for scopes and topologies.

use crate::error::{CallError, Result};
use blacs::{Scope, Topology};

pub(crate) fn scope(letter: u8) -> Result<Scope> {
    Scope::from_letter(letter).ok_or_else(|| bad("the scope", letter, "r, c, a"))
}

pub(crate) fn topology(letter: u8) -> Result<Topology> {
    Topology::from_letter(letter).ok_or_else(|| bad("the topology", letter, "i, d, s, m, 1 to 9, t, f, h, a space"))
}

#[cold]
fn bad(what: &'static str, letter: u8, allowed: &'static str) -> CallError {
    CallError::BadLetter { what, letter: char::from(letter), allowed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_letters_are_told() {
        assert!(matches!(scope(b'R'), Ok(Scope::Row)));
        let error = topology(b'q').map(drop).expect_err("no such topology").to_string();
        assert_eq!(error, "the topology is 'q', but must be one of i, d, s, m, 1 to 9, t, f, h, a space");
    }
}
