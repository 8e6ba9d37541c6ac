//! Control queues in virtual time: properties that `crates/fabric-conformance` does not check for
//! all providers.

pub(crate) mod determinism;
mod ending;
mod model;
mod opening;
mod order;
mod paths;
mod script;
mod session_table;
mod tags;
mod timing;
mod waiting;
