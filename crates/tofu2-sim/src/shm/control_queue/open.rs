//! Opening queues.

use super::{
    geometry::{Geometry, MOST_DEPTH},
    node::NodeQueues,
    queue::{Open, Queue},
    words::{CONFIG, SCHEDULED, TAGS, View, directory_at},
};
use crate::shm::{endpoint::Endpoint, own::Taken, regions::Kind};
use core::sync::atomic::Ordering::{Relaxed, Release};
use rdma_fabric::{
    Result,
    control_queue::{QueueError, QueueId, QueueLimits, QueueSpec},
    provider::{self, Queues},
};
use std::sync::Arc;

impl Queues for Endpoint {
    /// The ranks of a node share its control queues: [`QueueLimits::free`] counts those of the node.
    fn limits(&self) -> QueueLimits {
        let options = self.job().queues;
        let free = NodeQueues::of(self.job(), self.me()).map_or(0, |node| node.free());
        let mut limits = options.machine.limits(free, options.shared_address_space);
        limits.most_depth = MOST_DEPTH;
        limits
    }

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn provider::Queue>> {
        let me = self.me();
        let asked = QueueId::new(me, spec.engine.unwrap_or(0).min(15), spec.number.unwrap_or(0), 0);
        let geometry = geometry(asked, &spec)?;
        let id = self.own_queues().take(self.job(), me, &spec)?;
        let opened = self.own_queues().table(self).and_then(|tags| {
            match self.take_extent(geometry.bytes(), Kind::Queue, |_, _| ()) {
                Ok(words) => Ok(Open { words, tags }),
                Err(error) => {
                    if let Some(table) = Arc::into_inner(tags) {
                        self.own().free(self.segment(), me, &table.taken);
                    }
                    Err(error)
                }
            }
        });
        let open = match opened {
            Ok(open) => open,
            Err(error) => {
                self.own_queues().give_back(self.job(), me, id);
                return Err(error);
            }
        };
        self.publish(id, &spec, geometry, &open.words, &open.tags.taken);
        let spec = QueueSpec { engine: Some(id.engine()), number: Some(id.number()), ..spec };
        Ok(Box::new(Queue::new(self.clone(), id, spec, geometry, open)))
    }
}

impl Endpoint {
    /// Write the words of a queue, which are zeros, and tell of it.
    fn publish(&self, id: QueueId, spec: &QueueSpec, geometry: Geometry, words: &Taken, tags: &Taken) {
        let segment = self.segment();
        let queue = View::own(segment, id, geometry, (words.key, words.extent.offset), tags.extent.offset);
        let Some((queue, at)) = queue.zip(directory_at(id)) else { return };
        queue.word(CONFIG).store(geometry.to_bits(), Relaxed);
        queue.word(TAGS).store(tags.key.to_bits(), Relaxed);
        queue.word(SCHEDULED).store(spec.initial_offset.into(), Relaxed);
        if queue.is_session() {
            self.own_queues().set_session(id, true);
        }
        // Release: pairs with the acquire in `View::find`.
        segment.word(at).store(words.key.to_bits(), Release);
    }
}

/// # Errors
/// [`QueueError::Limit`].
fn geometry(queue: QueueId, spec: &QueueSpec) -> Result<Geometry, QueueError> {
    let limit =
        |what, value: u32, limit: u32| QueueError::Limit { queue, what, value: value.into(), limit: limit.into() };
    let sizes =
        [("the depth (a power of two)", spec.depth, 2), ("the notices' depth (a power of two)", spec.mrq_depth, 1)];
    for (what, value, least) in sizes {
        if !value.is_power_of_two() || value < least || value > MOST_DEPTH {
            return Err(limit(what, value, MOST_DEPTH));
        }
    }
    if spec.initial_offset >= spec.depth {
        return Err(limit("the initial offset", spec.initial_offset, spec.depth - 1));
    }
    Ok(Geometry { mode: spec.mode, depth: spec.depth, mrq_depth: spec.mrq_depth, checked: spec.checked })
}
