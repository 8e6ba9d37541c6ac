//! The error of a fault that a simulated machine cannot have, part of [`JobError`](crate::JobError).

/// A line that is not a valid fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}`{line}` is not a fault: {problem}", in_front(*.number))]
pub struct BadFault {
    /// The line's number in the text, from 1; `None` if the fault does not come from a text.
    pub number: Option<usize>,
    /// The line.
    pub line: String,
    /// The problem with it.
    pub problem: String,
}

fn in_front(number: Option<usize>) -> String {
    number.map_or(String::new(), |number| format!("line {number}: "))
}
