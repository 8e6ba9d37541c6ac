//! The software costs of this layer, charged at the point in the code and on the core where they
//! arise. The names refer to the tables of the platforms, which contain the times. In wall-clock
//! time, nothing is charged.

use crate::{Options, Threads};
use rdma_fabric::Fabric;

/// The queue and the helper, per command.
pub(crate) const THREAD: &str = "acp.thread";
/// The server, per request of another rank.
pub(crate) const SERVED: &str = "acp.served";
/// Posting an operation that bypasses the queue.
pub(crate) const BYPASS: &str = "acp.bypass";

/// An operation of the network, without its descriptor.
const NETWORK: &str = "acp.network";
/// Building a descriptor that was not prepared.
const DESCRIPTOR: &str = "acp.descriptor";
/// The lock that makes calls thread-safe.
const THREAD_SAFE: &str = "acp.thread_safe";
/// The same lock, for a CPU atomic.
const THREAD_SAFE_CPU: &str = "acp.thread_safe_cpu";

/// Charges for the lock of a call if several threads may call.
pub(crate) async fn call(fabric: &Fabric, options: &Options, is_by_cpu: bool) {
    if options.threads == Threads::Many {
        fabric.charge(if is_by_cpu { THREAD_SAFE_CPU } else { THREAD_SAFE }).await;
    }
}

/// Charges for an operation of the network.
pub(crate) async fn network(fabric: &Fabric, options: &Options) {
    fabric.charge(NETWORK).await;
    if !options.prepared {
        fabric.charge(DESCRIPTOR).await;
    }
}
