//! Quantities as text, with about three digits.

use serde::Serialize;

/// The unit of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    Nanoseconds,
    Bytes,
    /// Parts of a CPU.
    Core,
    /// Per second.
    Rate,
    /// A ratio of two figures.
    Times,
}

impl Unit {
    pub(crate) fn text(self, figure: f64) -> String {
        match self {
            Unit::Nanoseconds => time(figure),
            Unit::Bytes => format!("{figure:.0} B"),
            Unit::Core => format!("{:.2} %", figure * 100.0),
            Unit::Rate => rate(figure),
            Unit::Times => format!("×{figure:.2}"),
        }
    }
}

/// Formats nanoseconds.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{} ns", three(ns)),
        ns if ns < 1e6 => format!("{} µs", three(ns * 1e-3)),
        ns if ns < 1e9 => format!("{} ms", three(ns * 1e-6)),
        ns => format!("{} s", three(ns * 1e-9)),
    }
}

/// Formats a rate per second.
pub(crate) fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 1e3 => three(rate),
        rate if rate < 1e6 => format!("{} k", three(rate * 1e-3)),
        rate => format!("{} M", three(rate * 1e-6)),
    }
}

/// Formats a number with three digits.
pub(crate) fn three(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Formats a power of two in its unit.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0 => "–".into(),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_well() {
        assert_eq!([0, 8, 65_536, 16 << 20].map(size), ["–", "8 B", "64 KiB", "16 MiB"]);
        assert_eq!(
            [1.234, 54.32, 230.4, 1_234.0, 54_321.0, 645_000.0, 1_234_567.0, 1.5e9].map(time),
            ["1.23 ns", "54.3 ns", "230 ns", "1.23 µs", "54.3 µs", "645 µs", "1.23 ms", "1.50 s"]
        );
        assert_eq!([31.0, 1234.0, 5.6e7].map(rate), ["31.0", "1.23 k", "56.0 M"]);
        assert_eq!((Unit::Bytes.text(1024.0), Unit::Core.text(0.0123)), ("1024 B".into(), "1.23 %".into()));
        assert_eq!(Unit::Times.text(1.5), "×1.50");
    }
}
