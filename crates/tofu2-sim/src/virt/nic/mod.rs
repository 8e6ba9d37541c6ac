//! Network interfaces: send engines, receive engines, the atomic unit of each node.

mod atomic_unit;
mod receive;
mod send;

pub(super) use atomic_unit::{AtomicUnits, Next};
pub(super) use receive::{Receivers, Room};
pub(super) use send::SendEngines;
