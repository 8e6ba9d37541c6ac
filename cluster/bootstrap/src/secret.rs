//! The secret of a job, known only to its processes.

use rustix::{
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};
use siphasher::sip128::SipHasher24;
use std::{fmt, hint::black_box, io};

/// A secret shared by the processes of a job: a connection is accepted if the other side proves
/// that it knows the secret.
///
/// The text form, 64 hexadecimal digits, is meant for a pipe, a file that others can't read, or a
/// launcher's own store. Never pass it on a command line or in an environment variable, which other
/// users may read. `Debug` does not print the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

/// A text is not a [`Secret`]: 64 hexadecimal digits are required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is 64 digits of base 16; this text of {length} bytes is none")]
pub struct BadSecret {
    /// The length of the text in bytes.
    pub length: usize,
}

impl Secret {
    /// Returns a new secret from the system's random numbers.
    pub fn random() -> io::Result<Self> {
        random_bytes().map(Self)
    }

    /// Returns the text form.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses the text form, ignoring white space around it.
    pub fn from_hex(text: &str) -> Result<Self, BadSecret> {
        let text = text.trim();
        let bad = BadSecret { length: text.len() };
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad);
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| bad)?;
        }
        Ok(Self(bytes))
    }

    /// Returns the 128-bit SipHash-2-4 of the second half of the secret and `parts`, keyed by the
    /// first half. Every part has a fixed length or is the last one, so the concatenation is
    /// unambiguous.
    pub(crate) fn proof(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut key = [0; 16];
        key.copy_from_slice(&self.0[..16]);
        let mut text = self.0[16..].to_vec();
        for part in parts {
            text.extend_from_slice(part);
        }
        SipHasher24::new_with_key(&key).hash(&text).as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Compares two proofs in constant time.
pub(crate) fn same_proof(one: &[u8; 16], other: &[u8; 16]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
    black_box(difference) == 0
}

/// Returns `N` random bytes from the system.
pub(crate) fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_and_other_text_is_refused() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::from_hex(&format!(" {}\n", secret.to_hex())), Ok(secret.clone()));
        assert_ne!(secret, Secret::random().unwrap());
        assert_eq!(Secret::from_hex("12"), Err(BadSecret { length: 2 }));
        let spaced = format!("+{}", &secret.to_hex()[1..]);
        assert_eq!(Secret::from_hex(&spaced), Err(BadSecret { length: 64 }));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_proof_depends_on_every_byte_of_the_secret_and_of_the_text() {
        let base = Secret([7; 32]).proof(&[b"text"]);
        for index in 0..32 {
            let mut other = [7; 32];
            other[index] ^= 1;
            assert!(!same_proof(&base, &Secret(other).proof(&[b"text"])), "byte {index} does not count");
        }
        assert!(!same_proof(&base, &Secret([7; 32]).proof(&[b"texT"])));
        assert!(same_proof(&base, &Secret([7; 32]).proof(&[b"te", b"xt"])));
    }
}
