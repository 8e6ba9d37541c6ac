//! The names of this layer's software costs, which are charged where the code runs; the platforms'
//! tables have the times. On wall clock they cost nothing, and an operation that completes
//! immediately charges nothing.

/// The initial part of each call that sends or receives, and of a collective (paper, table 1).
pub(crate) const INIT: &str = "fmpl.init";
/// Sending a header, or another record that needs no body, from its post on (paper, table 1).
pub(crate) const HEADER: &str = "fmpl.header";
/// Sending a body and its flag, from their posts on (paper, table 1).
pub(crate) const DATA: &str = "fmpl.data";
/// A wait apart from the call that posted the receive (paper, table 2).
pub(crate) const WAIT: &str = "fmpl.wait";
/// A copy, for each byte.
pub(crate) const COPY: &str = "copy";
