//! Sizes in bytes as people write them.

/// A number of bytes, with an optional binary suffix K, M or G (or KiB, MiB, GiB).
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        suffix => return Err(format!("`{suffix}` is none of K, M, G")),
    };
    let number: usize = digits.parse().map_err(|_| format!("`{text}` is not a number of bytes"))?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or_else(|| format!("`{text}` is 0 or too large"))
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn suffixes_are_binary() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64K"), Ok(64 << 10));
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("2G"), Ok(2 << 30));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "K", "0", "1.5M", "12X", "-1", "99999999999999999999", "18446744073709551615G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
