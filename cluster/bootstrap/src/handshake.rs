//! The challenge-response handshake at the start of every connection.
//!
//! The session sends [`GREETING`] bytes: magic, version, 16 random bytes. The coordinator answers
//! with [`ANSWER`] bytes: magic, version, 16 other random bytes, and its proof. The session
//! verifies the proof and sends its own, of 16 bytes. A proof is a keyed hash of the sender's role
//! and of both challenges, so neither a reflected nor a replayed proof is accepted.

use crate::secret::{Secret, same_proof};

/// The version of the protocol.
pub(crate) const VERSION: u32 = 2;

const MAGIC: &[u8; 8] = b"onesided";

/// The size of a session's first message in bytes.
pub(crate) const GREETING: usize = 8 + 4 + 16;

/// The size of the coordinator's answer in bytes.
pub(crate) const ANSWER: usize = 8 + 4 + 16 + 16;

/// The size of the session's proof in bytes.
pub(crate) const PROOF: usize = 16;

/// The random bytes of one side.
pub(crate) type Challenge = [u8; 16];

/// The error in the other side's first message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It does not belong to this protocol.
    Magic,
    /// It has this other version.
    Version(u32),
    /// Its proof is wrong.
    Proof,
}

/// Returns a session's first message.
pub(crate) fn greeting(mine: &Challenge) -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[..12].copy_from_slice(&head());
    bytes[12..].copy_from_slice(mine);
    bytes
}

/// Returns the session's challenge from its first message.
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

/// Returns the session's proof, if the coordinator's answer is correct.
pub(crate) fn read_answer(secret: &Secret, mine: &Challenge, bytes: &[u8; ANSWER]) -> Result<[u8; PROOF], Wrong> {
    check_head(bytes)?;
    let theirs: Challenge = array(&bytes[12..28]);
    if !same_proof(&array(&bytes[28..]), &secret.proof(&[b"coordinator", mine, &theirs])) {
        return Err(Wrong::Proof);
    }
    Ok(secret.proof(&[b"session", mine, &theirs]))
}

/// Returns whether these may be the first bytes of an answer, of this version or of another.
pub(crate) fn may_be_answer(bytes: &[u8]) -> bool {
    let length = bytes.len().min(MAGIC.len());
    bytes[..length] == MAGIC[..length]
}

/// Returns whether the session's proof is correct.
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
