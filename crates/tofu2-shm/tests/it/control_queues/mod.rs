//! Control queues over shared memory, ranks as threads.

mod commands;
mod fixture;
mod jobs;
mod lifetime;
mod model;
mod session;
mod waiting;
