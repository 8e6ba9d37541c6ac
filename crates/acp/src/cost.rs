//! What this layer's software costs, charged where the code passes and on the core where it does:
//! names in the platforms' tables, which have the times. On wall clock all of it is free.

use crate::{Options, Threads};
use rdma_fabric::Fabric;

/// The queue and the helper, for a command.
pub(crate) const THREAD: &str = "acp.thread";
/// The server, for a request of another rank.
pub(crate) const SERVED: &str = "acp.served";
/// Posting an operation past the queue.
pub(crate) const BYPASS: &str = "acp.bypass";

/// What an operation of the network costs, apart from its descriptor.
const NETWORK: &str = "acp.network";
/// Making a descriptor that was not prepared.
const DESCRIPTOR: &str = "acp.descriptor";
/// The lock that makes calls safe for several threads.
const THREAD_SAFE: &str = "acp.thread_safe";
/// That lock, where the CPU does an atomic.
const THREAD_SAFE_CPU: &str = "acp.thread_safe_cpu";

/// Charges what a call costs if several threads may call.
pub(crate) async fn call(fabric: &Fabric, options: &Options, is_by_cpu: bool) {
    if options.threads == Threads::Many {
        fabric.charge(if is_by_cpu { THREAD_SAFE_CPU } else { THREAD_SAFE }).await;
    }
}

/// Charges whoever has an operation carried out by the network.
pub(crate) async fn network(fabric: &Fabric, options: &Options) {
    fabric.charge(NETWORK).await;
    if !options.prepared {
        fabric.charge(DESCRIPTOR).await;
    }
}
