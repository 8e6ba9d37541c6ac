//! Opening the queues of a request.

use crate::{PrdmaError, Result};
use rdma_fabric::{
    ControlQueue, Fabric, FabricError,
    control_queue::{QueueError, QueueMode, QueueSpec},
};

/// Open the queue `number` of a request, for two iterations of `notices`. Queues of a request are on different engines, and so are the first queues of a
/// node's ranks; where an engine has no queue left, any will do.
///
/// # Errors
/// As [`rdma_fabric::Fabric::open_queue`]; [`PrdmaError::Limit`].
pub(crate) fn open_queue(
    fabric: &Fabric,
    number: usize,
    mode: QueueMode,
    depth: u64,
    notices: u64,
    initial_offset: u32,
) -> Result<ControlQueue> {
    let limits = fabric.queue_limits();
    let (mrq, limit) = ((2 * notices + 2).next_power_of_two().max(16), u64::from(limits.most_depth));
    if depth.max(mrq) > limit {
        return Err(PrdmaError::Limit { what: "slots or notices of a queue", value: depth.max(mrq), limit });
    }
    let spec = QueueSpec { depth: depth as u32, mrq_depth: mrq as u32, initial_offset, ..QueueSpec::new(mode) };
    let engine = ((number + number_on_node(fabric)) % usize::from(limits.engines.max(1))) as u8;
    match fabric.open_queue(spec.on(engine)) {
        Err(FabricError::Queue(error)) if matches!(*error, QueueError::NoneFree(_)) => Ok(fabric.open_queue(spec)?),
        other => Ok(other?),
    }
}

/// Which of its node's ranks this is.
fn number_on_node(fabric: &Fabric) -> usize {
    let Ok(node) = fabric.node(fabric.rank()) else { return 0 };
    let mut ranks = (0..).map_while(|number| fabric.rank_on(node, number));
    ranks.position(|rank| rank == fabric.rank()).unwrap_or(0)
}
