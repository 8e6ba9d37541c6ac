//! The software costs of this layer, charged at the point in the code where they arise. The names
//! refer to the tables of the platforms, which contain the times. In wall-clock time, nothing is
//! charged.

/// The start of a request or an exchange.
pub(crate) const START: &str = "prdma.start";
/// Packing or unpacking blocks, per byte.
pub(crate) const PACK: &str = "pack";
/// The start and the end of threads that share a copy.
pub(crate) const FORK: &str = "fork";
/// Copying or folding whole blocks, per byte.
pub(crate) const COPY: &str = "copy";
