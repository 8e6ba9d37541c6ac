//! Words of a POSIX shell.

/// Returns text that a POSIX shell reads as the one word `word`, which contains no byte 0, like all
/// arguments.
pub(super) fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut text = vec![b'\''];
    for &byte in word {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{ffi::OsString, os::unix::ffi::OsStringExt, process::Command};

    /// Returns the arguments that a shell reads from these words, through `depth` shells.
    fn read_by_shell(words: &[Vec<u8>], depth: usize) -> Vec<u8> {
        let mut text = b"printf '%s\\0'".to_vec();
        for word in words {
            text.push(b' ');
            text.append(&mut quoted(word));
        }
        for _ in 1..depth {
            text = [&b"exec sh -c "[..], &quoted(&text)].concat();
        }
        Command::new("sh").arg("-c").arg(OsString::from_vec(text)).output().unwrap().stdout
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_reads_the_words(
            words in prop::collection::vec(prop::collection::vec(1..=255_u8, 0..20), 1..6),
            depth in 1..4_usize,
        ) {
            let want: Vec<u8> = words.iter().flat_map(|word| [&word[..], &[0]].concat()).collect();
            prop_assert_eq!(read_by_shell(&words, depth), want);
        }
    }

    #[test]
    fn special_words_stay_whole() {
        let words: Vec<Vec<u8>> =
            ["", "'", "$HOME", "`id`", "a b", "\n", "\\", "*", "~", "-", "!", "tcp;ofi_rxm"].map(Into::into).to_vec();
        let want: Vec<u8> = words.iter().flat_map(|word| [&word[..], &[0]].concat()).collect();
        assert_eq!(read_by_shell(&words, 2), want);
        assert_eq!(quoted(b"/usr/bin/env"), b"/usr/bin/env");
    }
}
