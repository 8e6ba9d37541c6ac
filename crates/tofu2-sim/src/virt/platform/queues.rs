//! How many control queues a machine has and what they can do: Tofu2's table, and TofuD's beside it.
//!
//! Most numbers are public for TofuD only, from the behaviour of its system library; where Tofu2's table uses one, its note
//! says that it is assumed.

use super::{Constant, Platform, Unit::*, set};
use rdma_fabric::{FabricError, control_queue::QueueLimits};

/// Tofu2, FX100.
pub(super) fn tofu2() -> Vec<Constant> {
    vec![
        set("system_queues", 0, Count, &[], "assumed: CQs of a TNI that programs don't reach"),
        set("queue_contexts", 8, Count, &[], "assumed as on TofuD: normal queues that share a CQ"),
        set("session_queues", 12, Count, &[], "CQs of a TNI that may be in session mode: any"),
        set("exclusive_queues", 12, Count, &[], "assumed: CQs of a TNI that one normal queue may have for itself: any"),
        set("queue_depth", 65_536, Count, &[], "assumed: most slots of a TOQ and entries of an MRQ"),
        set("fixed_tags", 256, Count, &[], "assumed as on TofuD: steering tags that programs choose"),
        set("automatic_tags", 65_536, Count, &[], "assumed: steering tags that are given automatically"),
        set("shared_tags", 0, Count, &[], "hardware: CQs have address spaces of their own; 1: one for all of a rank"),
        set("packet_gap", 10_000, Picoseconds, &[], "assumed: idle time per unit of a command's gap"),
    ]
}

/// Tofu1, K and FX10: no session mode.
pub(super) fn tofu1() -> Vec<Constant> {
    let mut constants = tofu2();
    for constant in &mut constants {
        if constant.name == "session_queues" {
            *constant = set("session_queues", 0, Count, &[], "hardware: no session mode");
        } else if !constant.note.starts_with("assumed") {
            constant.note = "assumed as on FX100".into();
        }
    }
    constants
}

/// TofuD, Fugaku.
pub(super) fn tofud() -> Vec<Constant> {
    vec![
        set("system_queues", 1, Count, &[], "TofuD: 11 of a TNI's 12 CQs can be reached by programs"),
        set("queue_contexts", 8, Count, &[], "TofuD, its system library: normal queues that share a CQ"),
        set("session_queues", 3, Count, &[], "TofuD, its system library's default: session queues of a TNI"),
        set("exclusive_queues", 7, Count, &[], "TofuD, its system library's default: exclusive queues of a TNI"),
        set("queue_depth", 65_536, Count, &[], "assumed: most slots of a TOQ and entries of an MRQ"),
        set("fixed_tags", 256, Count, &[], "TofuD: reserved steering tags"),
        set("automatic_tags", 65_536, Count, &[], "assumed: steering tags that are given automatically"),
        set("shared_tags", 0, Count, &[], "assumed as on Tofu2: CQs have address spaces of their own"),
        set("packet_gap", 10_000, Picoseconds, &[], "assumed: idle time per unit of a command's gap"),
    ]
}

/// The table as the event path uses it.
#[derive(Clone, Debug)]
pub(in super::super) struct QueueTable {
    pub(in super::super) engines: u8,
    /// CQs of each engine that programs reach.
    pub(in super::super) numbers: u8,
    pub(in super::super) contexts: u8,
    pub(in super::super) session: u32,
    pub(in super::super) exclusive: u32,
    pub(in super::super) depth: u32,
    pub(in super::super) fixed_tags: u32,
    pub(in super::super) automatic_tags: u32,
    /// One address space for all queues of a rank.
    pub(in super::super) shared_tags: bool,
    /// Picoseconds per unit of a command's gap.
    pub(in super::super) packet_gap: u64,
    /// Bytes of the longest command.
    pub(in super::super) longest: u32,
}

impl QueueTable {
    pub(super) fn new(platform: &Platform) -> Result<Self, FabricError> {
        let most = |name: &'static str, most: u64| match platform.need(name)? {
            value if value <= most => Ok(value as u32),
            value => Err(FabricError::setting("platform constant", format!("{name} is {value}, more than {most}"))),
        };
        Ok(QueueTable {
            engines: most("engines", 16)? as u8,
            numbers: most("queues_per_engine", 255)?.saturating_sub(most("system_queues", 255)?) as u8,
            contexts: most("queue_contexts", 16)? as u8,
            session: most("session_queues", 255)?,
            exclusive: most("exclusive_queues", 255)?,
            depth: most("queue_depth", 1 << 31)?,
            fixed_tags: most("fixed_tags", 256)?,
            automatic_tags: most("automatic_tags", (1 << 24) - 0x1000)?,
            shared_tags: platform.need("shared_tags")? != 0,
            packet_gap: platform.need("packet_gap")?,
            longest: platform.need("max_transfer")?.min((1 << 24) - 1) as u32,
        })
    }

    /// What a rank is told, `free` CQs of its node being free.
    pub(in super::super) fn limits(&self, free: u32) -> QueueLimits {
        let mut limits = QueueLimits::new(self.engines, self.numbers);
        limits.contexts = self.contexts;
        limits.free = free;
        limits.most_depth = self.depth;
        limits.longest = self.longest;
        limits.fixed_tags = self.fixed_tags;
        limits.shared_address_space = self.shared_tags;
        limits
    }
}
