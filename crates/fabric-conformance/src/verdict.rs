//! Macros that end a case with a description of the failure.

/// Ends the calling case, which returns a [`ProgramResult`](rdma_fabric::ProgramResult), with this
/// text unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+).into());
        }
    };
}

/// Ends the calling case, which returns a [`ProgramResult`](rdma_fabric::ProgramResult), with this
/// text and both values unless they are equal.
#[macro_export]
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
