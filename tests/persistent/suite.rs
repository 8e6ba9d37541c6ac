//! How the conformance suite runs a case and says what was wrong.

#[path = "../conformance/provider.rs"]
pub(crate) mod provider;
#[path = "../conformance/verdict.rs"]
pub(crate) mod verdict;
