//! Numbers for display: three or four significant digits and a unit.

/// Formats `value` with four significant digits, without an exponent, without grouping, with
/// trailing zeros dropped.
pub fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats `value` and its unit.
pub fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() { number(value) } else { format!("{} {unit}", number(value)) }
}

/// Formats a time in a suitable unit, with three significant digits.
pub fn seconds(value: f64) -> String {
    let (scale, unit) = match value {
        value if value >= 1.0 => (1.0, "s"),
        value if value >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    let scaled = value * scale;
    let decimals = if scaled >= 100.0 {
        0
    } else if scaled >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$} {unit}")
}

/// Formats a relative deviation in per cent, with its sign.
pub fn deviation(share: f64) -> String {
    // Avoids "-0.0 %": a value that rounds to zero has no sign.
    let percent = (share * 1000.0).round() / 10.0 + 0.0;
    if percent == 0.0 {
        "0.0 %".into()
    } else {
        format!("{}{:.1} %", if percent > 0.0 { "+" } else { "−" }, percent.abs())
    }
}

/// Formats a count with groups of three digits, e.g. `663,552`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_significant_digits() {
        assert_eq!(number(2.3), "2.3");
        assert_eq!(number(137.9842), "138");
        assert_eq!(number(0.069), "0.069");
        assert_eq!(number(0.0454545), "0.04545");
        assert_eq!(number(876.923), "876.9");
        assert_eq!(number(32767.0), "32767");
        assert_eq!(number(-0.5), "-0.5");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn deviations_have_signs_except_nothing() {
        assert_eq!(deviation(0.0612), "+6.1 %");
        assert_eq!(deviation(-0.063), "−6.3 %");
        assert_eq!(deviation(-0.0001), "0.0 %");
        assert_eq!(deviation(-0.64), "−64.0 %");
    }

    #[test]
    fn times_have_their_unit() {
        let told = [0.3594, 0.045_04, 2.3e-6, 1.0, 104e-6].map(seconds);
        assert_eq!(told, ["359 ms", "45.0 ms", "2.30 µs", "1.00 s", "104 µs"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(663_552), "663,552");
    }
}
