//! The time that a program prints.

/// Returns the ns of the first time that is followed by `a` and what it is of: `1.5µs a step`.
pub(super) fn time_in(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(3).filter(|words| words[1] == "a").find_map(|words| nanoseconds(words[0]))
}

/// Returns the ns of a duration as Rust formats it for debugging.
fn nanoseconds(text: &str) -> Option<f64> {
    let unit = text.find(|letter: char| letter != '.' && !letter.is_ascii_digit())?;
    let scale = match &text[unit..] {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    text[..unit].parse::<f64>().ok().map(|number| number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn times_of_both_sides_are_found() {
        assert_eq!(time_in("123.500ns a step; the same as computed by one rank"), Some(123.5));
        for time in
            [Duration::from_nanos(7), Duration::from_nanos(1_500), Duration::from_micros(2_250), Duration::new(3, 0)]
        {
            let line = format!("96 by 96 cells on 2 by 1 ranks, a form: {time:?} a step; 400 steps");
            let found = time_in(&line).expect("a time");
            assert!((found - time.as_nanos() as f64).abs() < 1e-3, "{line}: {found}");
        }
        for line in ["", "a step", "7 a step", "7ns per step", "ns a step", "1.5.5ns a step", "7min a step"] {
            assert_eq!(time_in(line), None, "{line}");
        }
    }
}
