//! Tests that need internal access: deaths at a given point, garbage in shared memory, the owners
//! of control queues.

#![cfg_attr(not(target_os = "linux"), allow(unused_imports))]

#[cfg(target_os = "linux")]
mod deaths;
mod garbage;
#[cfg(all(target_os = "linux", not(miri)))]
mod killed;
mod meetings;
mod routes;

use super::death::{DeathPoint, hook};
use crate::{
    job::{Job, Plan, State},
    memory::layout,
    testing,
    waiting::block_on,
};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, LocalSpan, Rank, Region, Result,
    control_queue::{
        Blocks, Command, Completion, Inline, MrqKind, Posting, QueueError, QueueId, QueueMode, QueueSpec, Stadd,
    },
};
use std::sync::Arc;

const RANKS: u32 = 3;

fn job(heap_bytes: usize) -> Arc<Job> {
    testing::job(RANKS, heap_bytes)
}

/// Returns the endpoint below a fabric.
fn inner(fabric: &Fabric) -> &crate::endpoint::Endpoint {
    crate::endpoint::Endpoint::of(fabric).unwrap()
}
