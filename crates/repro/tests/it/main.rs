//! The workloads over simulated jobs and thread ranks, and the runs that figures are made of, at a
//! small size.

mod contention;
mod hashtable;
mod peers;
mod small_runs;
mod stencil;
mod wrapped;
