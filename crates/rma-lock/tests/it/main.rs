//! Tests of the locks' guarantees against their models, in virtual time and over threads.

mod back_off;
mod dropping;
mod guards;
mod holder_limit;
mod locked;
mod nodes;
mod oracle;
mod recovery;
mod rw_lock;
mod sixteen;
mod sizes;
mod threads;
mod twin;
mod window;
