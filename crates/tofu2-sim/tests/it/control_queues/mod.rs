//! Control queues over shared memory, ranks as threads.

mod commands;
mod jobs;
mod lifetime;
mod model;
mod session;
mod stage;
mod waiting;
