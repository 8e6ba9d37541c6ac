//! Parts that a machine may lack, and the constants that describe each.

use super::Platform;
use rdma_fabric::FabricError;

/// A part that not every machine has.
pub(super) struct Part {
    /// The constant that determines whether the machine has the part: 0, or no such constant, means
    /// none.
    head: &'static str,
    /// The other constants that a machine with this part needs.
    needs: &'static [&'static str],
}

/// The unit that executes atomics, and the time of one atomic.
pub(super) const ATOMICS: Part = Part { head: "atomics", needs: &["atomic_service", "atomic_serial", "engine_room"] };

/// The barrier unit of a node.
pub(super) const GATES: Part = Part { head: "barrier_gates", needs: &["barrier_channels", "barrier_gate"] };

/// Hardware barriers by colour.
pub(super) const COLOURS: Part = Part { head: "barrier_colours", needs: &["colour_barrier"] };

/// Control queues that programs open.
pub(super) const QUEUES: Part = Part {
    head: "queue_depth",
    needs: &[
        "system_queues",
        "queue_contexts",
        "session_queues",
        "exclusive_queues",
        "fixed_tags",
        "automatic_tags",
        "shared_tags",
        "packet_gap",
        "queue_chain",
    ],
};

/// Puts that need no flush between them to become visible in order.
pub(super) const ORDERED_PUTS: Part = Part { head: "ordered_puts", needs: &[] };

/// Crossbars between the nodes, unless a job specifies another network.
pub(super) const CROSSBARS: Part = Part { head: "crossbar_row", needs: &[] };

impl Platform {
    /// Returns the value of the part's first constant, which is not 0, if the machine has the part.
    ///
    /// # Errors
    /// [`FabricError::Setting`] names a missing constant: one of a part that the machine has, or
    /// the first one of a part of which others are given.
    pub(super) fn part(&self, part: &Part) -> Result<Option<u64>, FabricError> {
        match self.value(part.head) {
            Some(0) => Ok(None),
            Some(value) => {
                part.needs.iter().try_for_each(|name| self.need(name).map(drop))?;
                Ok(Some(value))
            }
            None if part.needs.iter().any(|name| self.value(name).is_some()) => Err(self.has_none(part.head)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Timing, *};
    use rdma_fabric::Atomics;

    const PARTS: [Part; 3] = [ATOMICS, GATES, QUEUES];

    #[test]
    fn colours_need_their_time() {
        let mut platform = Platform::sr8000();
        Timing::new(&platform, 1).unwrap();
        platform.constants.retain(|constant| constant.name != "colour_barrier");
        let error = Timing::new(&platform, 1).unwrap_err().to_string();
        assert!(error.contains("\"colour_barrier\"") && error.contains("SR8000"), "{error}");
    }

    fn without(names: &[&str]) -> Platform {
        let mut platform = Platform::fx100();
        platform.constants.retain(|constant| !names.contains(&constant.name));
        platform
    }

    fn names(part: &Part) -> Vec<&'static str> {
        [&[part.head], part.needs].concat()
    }

    #[test]
    fn a_part_may_be_left_out() {
        for part in &PARTS {
            Timing::new(&without(&names(part)), 4).unwrap();
            // 0 means that there is no part, whether the other constants are given or not.
            Timing::new(&Platform::fx100().with(part.head, 0).unwrap(), 4).unwrap();
            Timing::new(&without(part.needs).with(part.head, 0).unwrap(), 4).unwrap();
        }
        let all: Vec<_> = PARTS.iter().flat_map(names).collect();
        let bare = Timing::new(&without(&all), 4).unwrap();
        assert_eq!((bare.atomics, bare.barrier_gates, bare.queues.engines), (Atomics::None, 0, 0));
        assert!(!bare.ordered_puts && bare.crossbar_row.is_none());
    }

    #[test]
    fn half_a_part_is_an_error_that_names_the_other_half() {
        for part in &PARTS {
            for missing in names(part) {
                let error = Timing::new(&without(&[missing]), 4).unwrap_err().to_string();
                assert!(error.contains(&format!("{missing:?}")) && error.contains("FX100"), "{missing}: {error}");
            }
        }
    }
}
