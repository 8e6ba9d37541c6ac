//! The published locks: exclusion and progress, in virtual time with puts that arrive early and
//! late, on threads, and under every delivery order.

mod counts;
mod explored;
mod jobs;
