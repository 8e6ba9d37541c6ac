//! How a case says what was wrong.

/// End the case with the contract's sentence unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}

/// End the case unless both are equal.
macro_rules! ensure_eq {
    ($have:expr, $want:expr, $($text:tt)+) => {
        match (&$have, &$want) {
            (have, want) if have != want => {
                return Err(format!("{}: {have:?}, not {want:?}", format_args!($($text)+)).into());
            }
            _ => {}
        }
    };
}

pub(crate) use {ensure, ensure_eq};
