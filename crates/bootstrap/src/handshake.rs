//! The challenge and answer that every connection begins with.
//!
//! The session sends [`GREETING`] bytes: magic, version, 16 random bytes. The coordinator answers
//! with [`ANSWER`] bytes: magic, version, 16 random bytes of its own, and its proof. The session
//! checks that and sends its own proof of 16 bytes. A proof is a keyed hash of the role of who makes
//! it and of both challenges: a proof that is sent back proves nothing, nor does an old one.

use crate::secret::{Secret, same_proof};

/// The protocol's version.
pub(crate) const VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"onesided";

/// The bytes of a session's first message.
pub(crate) const GREETING: usize = 8 + 4 + 16;

/// The bytes of the coordinator's answer.
pub(crate) const ANSWER: usize = 8 + 4 + 16 + 16;

/// The bytes of the session's proof.
pub(crate) const PROOF: usize = 16;

/// A side's random bytes.
pub(crate) type Challenge = [u8; 16];

/// What is wrong with the other side's first message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It is not of this protocol.
    Magic,
    /// It is of this version.
    Version(u32),
    /// Its proof is none.
    Proof,
}

/// Returns a session's first message.
pub(crate) fn greeting(mine: &Challenge) -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[..12].copy_from_slice(&head());
    bytes[12..].copy_from_slice(mine);
    bytes
}

/// Returns the session's challenge out of its first message.
pub(crate) fn read_greeting(bytes: &[u8; GREETING]) -> Result<Challenge, Wrong> {
    check_head(bytes)?;
    Ok(array(&bytes[12..]))
}

/// Returns the coordinator's answer.
pub(crate) fn answer(secret: &Secret, theirs: &Challenge, mine: &Challenge) -> [u8; ANSWER] {
    let mut bytes = [0; ANSWER];
    bytes[..12].copy_from_slice(&head());
    bytes[12..28].copy_from_slice(mine);
    bytes[28..].copy_from_slice(&secret.proof(&[b"coordinator", theirs, mine]));
    bytes
}

/// Returns the session's proof, if the coordinator's answer is right.
pub(crate) fn read_answer(secret: &Secret, mine: &Challenge, bytes: &[u8; ANSWER]) -> Result<[u8; PROOF], Wrong> {
    check_head(bytes)?;
    let theirs: Challenge = array(&bytes[12..28]);
    if !same_proof(&array(&bytes[28..]), &secret.proof(&[b"coordinator", mine, &theirs])) {
        return Err(Wrong::Proof);
    }
    Ok(secret.proof(&[b"session", mine, &theirs]))
}

/// Tells whether these may be the first bytes of an answer, or of one of another version.
pub(crate) fn may_be_answer(bytes: &[u8]) -> bool {
    let length = bytes.len().min(MAGIC.len());
    bytes[..length] == MAGIC[..length]
}

/// Tells whether the session's proof is right.
pub(crate) fn proves(secret: &Secret, theirs: &Challenge, mine: &Challenge, proof: &[u8; PROOF]) -> bool {
    same_proof(proof, &secret.proof(&[b"session", theirs, mine]))
}

fn head() -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

fn check_head(bytes: &[u8]) -> Result<(), Wrong> {
    if bytes[..8] != MAGIC[..] {
        return Err(Wrong::Magic);
    }
    match u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) {
        VERSION => Ok(()),
        other => Err(Wrong::Version(other)),
    }
}

fn array(bytes: &[u8]) -> [u8; 16] {
    let mut array = [0; 16];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_prove_themselves_and_reflections_prove_nothing() {
        let (secret, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        let (theirs, mine) = ([1; 16], [2; 16]);
        assert_eq!(read_greeting(&greeting(&theirs)), Ok(theirs));
        let answered = answer(&secret, &theirs, &mine);
        let proof = read_answer(&secret, &theirs, &answered).unwrap();
        assert!(proves(&secret, &theirs, &mine, &proof));
        assert!(!proves(&other, &theirs, &mine, &proof));
        assert!(!proves(&secret, &mine, &theirs, &proof));
        assert!(!proves(&secret, &theirs, &mine, &array(&answered[28..])), "the coordinator's own proof");
        assert_eq!(read_answer(&other, &theirs, &answered), Err(Wrong::Proof));
        assert_eq!(read_answer(&secret, &mine, &answered), Err(Wrong::Proof));
        let mut later = greeting(&theirs);
        later[8] = 9;
        assert_eq!(read_greeting(&later), Err(Wrong::Version(9)));
        assert_eq!(read_greeting(&[0; GREETING]), Err(Wrong::Magic));
    }
}
