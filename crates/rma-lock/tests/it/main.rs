//! Tests of the locks' guarantees over every fabric except processes: under the explorer of
//! delivery orders and under loom, against their models, in virtual time and over threads.

mod back_off;
mod delivery;
mod dropping;
mod guards;
mod holder_limit;
mod locked;
mod loom;
mod nodes;
mod oracle;
mod recovery;
mod rw_lock;
mod sixteen;
mod sizes;
mod threads;
mod twin;
mod window;
