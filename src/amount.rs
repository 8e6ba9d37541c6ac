//! Lengths of time as the command line gives them.

use std::{str::FromStr, time::Duration};

/// A number and its unit: `500ns`, `2us`, `1.5ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) Duration);

/// Why a text is no [`Amount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no number with one of the units ns, us, ms, s, as in 2us")]
pub(crate) struct NoAmount;

impl FromStr for Amount {
    type Err = NoAmount;

    fn from_str(text: &str) -> Result<Self, NoAmount> {
        let unit = text.find(|char: char| !char.is_ascii_digit() && char != '.').ok_or(NoAmount)?;
        let (number, unit) = text.split_at(unit);
        let nanos = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return Err(NoAmount),
        };
        let seconds = number.parse::<f64>().map_err(|_| NoAmount)? * nanos / 1e9;
        Duration::try_from_secs_f64(seconds).map(Amount).map_err(|_| NoAmount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (text, nanos) in [("500ns", 500), ("2us", 2_000), ("1.5ms", 1_500_000), ("3s", 3_000_000_000), ("0ns", 0)] {
            assert_eq!(text.parse(), Ok(Amount(Duration::from_nanos(nanos))), "{text}");
        }
        for text in ["", "2", "us", "-2us", "2 us", "2m", "1.2.3us", "1e3us", "99999999999999999999999s"] {
            assert_eq!(text.parse::<Amount>(), Err(NoAmount), "{text}");
        }
    }
}
