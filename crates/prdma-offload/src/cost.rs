//! What this layer's software costs, charged where the code passes: names in the platforms' tables,
//! which have the times. On wall clock all of it is free.

/// The start of a request or an exchange.
pub(crate) const START: &str = "prdma.start";
/// A queue that releases its own data.
pub(crate) const CHAIN: &str = "prdma.chain";
/// Packing or unpacking blocks, for each byte.
pub(crate) const PACK: &str = "pack";
/// Copying or folding whole blocks, for each byte.
pub(crate) const COPY: &str = "copy";
