//! Measurements of single mechanisms.

pub(crate) mod delegation;
pub(crate) mod exchanges;
pub(crate) mod exchanges_by_node;
pub(crate) mod lock_pairs;
pub(crate) mod lock_waves;
pub(crate) mod queues;
pub(crate) mod simulator;
pub(crate) mod stencil;
