//! Mistakes that tests make on purpose, to see that they are found.

/// A step done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(super) enum Mistake {
    /// Whoever revokes a region is answered while an operation is under way in it.
    AnswersAtOnce,
    /// A notice is sent before the bytes of its put are there.
    NoticeFirst,
    /// All is said to be over while something is under way.
    DrainedAtOnce,
    /// A message to a rank that is not known yet is dropped.
    DropsUnmet,
    /// A command that keeps the order is begun while bytes of an earlier one are being moved.
    OvertakesMoves,
    /// Who sets gates goes on before ranks of other nodes know.
    SetsUnconfirmed,
}
