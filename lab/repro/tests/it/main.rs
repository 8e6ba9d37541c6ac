//! The workloads over simulated jobs and thread ranks, and small versions of the runs behind the
//! figures.

mod contention;
mod hashtable;
mod peers;
mod small_runs;
mod stencil;
mod wrapped;
