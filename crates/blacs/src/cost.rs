//! The name of this layer's software cost, which is charged where the code runs; the platforms'
//! tables have the time. On wall clock it costs nothing, and an operation that completes immediately
//! charges nothing.

/// A call that sends, receives, broadcasts or combines a matrix, above FMPL (paper, section 6.1). A
/// barrier has no matrix.
pub(crate) const MATRIX: &str = "blacs";
