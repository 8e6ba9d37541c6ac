//! The machine of a replay: the parameters of the LogGPS model.

use core::{fmt, str::FromStr};

/// Picoseconds in a nanosecond.
pub(super) const NANOSECOND: u64 = 1000;

/// The parameters of the LogGPS model. Times are picoseconds.
///
/// As text, `L=2500,o=1500,g=1000,G=6,O=0,S=65535`, times are nanoseconds with up to three decimals;
/// those that are left out have their defaults, which are the numbers in this example and those of
/// LogGOPSim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGps {
    /// L: the latency of the network.
    pub latency: u64,
    /// o: the CPU's time for each message, at the sender and at the receiver.
    pub overhead: u64,
    /// g: the least time between the starts of two messages of an interface, in each direction.
    pub gap: u64,
    /// G: the interface's time for each further byte.
    pub gap_per_byte: u64,
    /// O: the CPU's time for each further byte.
    pub overhead_per_byte: u64,
    /// S: the longest message, in bytes, whose send ends without waiting for its receive.
    pub eager_bytes: u64,
}

impl Default for LogGps {
    fn default() -> Self {
        LogGps {
            latency: 2500 * NANOSECOND,
            overhead: 1500 * NANOSECOND,
            gap: 1000 * NANOSECOND,
            gap_per_byte: 6 * NANOSECOND,
            overhead_per_byte: 0,
            eager_bytes: 65535,
        }
    }
}

/// A text that is not a list of LogGPS parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a parameter: L, o, g, G, O (nanoseconds, up to three decimals) or S (bytes), as in L=2500,G=0.08"
)]
pub struct BadLogGps(String);

impl FromStr for LogGps {
    type Err = BadLogGps;

    fn from_str(text: &str) -> Result<Self, BadLogGps> {
        let mut parameters = LogGps::default();
        for item in text.split(',') {
            let bad = || BadLogGps(item.to_owned());
            let (name, value) = item.trim().split_once('=').ok_or_else(bad)?;
            if name == "S" {
                parameters.eager_bytes = value.parse().map_err(|_| bad())?;
                continue;
            }
            let field = match name {
                "L" => &mut parameters.latency,
                "o" => &mut parameters.overhead,
                "g" => &mut parameters.gap,
                "G" => &mut parameters.gap_per_byte,
                "O" => &mut parameters.overhead_per_byte,
                _ => return Err(bad()),
            };
            *field = picoseconds(value).ok_or_else(bad)?;
        }
        Ok(parameters)
    }
}

/// Returns the picoseconds of a decimal number of nanoseconds.
fn picoseconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(decimals) || decimals.len() > 3 {
        return None;
    }
    let decimals: u64 = format!("{decimals:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(NANOSECOND)?.checked_add(decimals)
}

impl fmt::Display for LogGps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogGps { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_bytes } = *self;
        for (name, time) in [("L", latency), ("o", overhead), ("g", gap), ("G", gap_per_byte), ("O", overhead_per_byte)]
        {
            write!(f, "{name}={},", Nanoseconds(time))?;
        }
        write!(f, "S={eager_bytes}")
    }
}

/// Picoseconds, displayed as nanoseconds, with decimals only where there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanoseconds(
    /// Picoseconds.
    pub u64,
);

impl fmt::Display for Nanoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / NANOSECOND, self.0 % NANOSECOND);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_written() {
        let parameters: LogGps = "L=700.5,G=0.08,S=4096".parse().expect("parameters");
        assert_eq!((parameters.latency, parameters.gap_per_byte, parameters.eager_bytes), (700_500, 80, 4096));
        assert_eq!(parameters.overhead, LogGps::default().overhead);
        assert_eq!(parameters.to_string(), "L=700.5,o=1500,g=1000,G=0.08,O=0,S=4096");
        assert_eq!(parameters.to_string().parse(), Ok(parameters));
        for wrong in ["", "L", "L=", "L=1.0001", "L=-1", "P=8", "S=1.5", "L=1,,o=2", "L=99999999999999999999", "L=.5"] {
            assert!(wrong.parse::<LogGps>().is_err(), "{wrong}");
        }
    }
}
