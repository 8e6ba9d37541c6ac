//! The facts of a job, and the limits of queues.

use super::{Reader, Wire, wire_enum, wire_struct};
use rdma_fabric::{
    Atomics, Caps, Existing, LockedMemory, Multicasts, PutOrder,
    control_queue::QueueLimits,
    provider::{JobFacts, Nodes},
};

wire_enum!(PutOrder { 0 = None {}, 1 = SameTarget {}, 2 = AllTargets {} });
wire_enum!(Atomics { 0 = None {}, 1 = Software {}, 2 = Hardware {} });
wire_enum!(Multicasts { 0 = None {}, 1 = Software {}, 2 = Hardware {} });
wire_enum!(Existing { 0 = None {}, 1 = Staged {}, 2 = CrossCopy {}, 3 = Direct {} });
wire_enum!(LockedMemory { 0 = None {}, 1 = Copies {}, 2 = Mapped {} });
wire_struct!(JobFacts { ranks, nodes, caps });

/// Implements [`Wire`] for a structure that may get more fields.
macro_rules! wire_fields {
    ($type:ident, $least:expr, $($field:ident),*) => {
        impl Wire for $type {
            fn put(&self, words: &mut Vec<u64>) {
                $(self.$field.put(words);)*
            }
            fn take(words: &mut Reader<'_>) -> Option<Self> {
                let mut all = $least;
                $(all.$field = Wire::take(words)?;)*
                Some(all)
            }
        }
    };
}

wire_fields!(
    QueueLimits,
    QueueLimits::NONE,
    engines,
    queues_per_engine,
    contexts,
    free,
    most_depth,
    longest,
    fixed_tags,
    shared_address_space
);
wire_fields!(
    Caps,
    Caps::weakest(),
    put_order,
    puts_in_order,
    third_party_copy,
    multicasts,
    coherent_atomics,
    atomics,
    notice_bits,
    session_queues,
    hardware_gates,
    strong_progress,
    register_existing,
    locked_memory,
    helpers,
    immediate,
    blocking_wait,
    max_transfer
);

impl Wire for Nodes {
    fn put(&self, words: &mut Vec<u64>) {
        match self {
            Nodes::Blocks(ranks) => (0u64, *ranks).put(words),
            Nodes::Table(nodes) => (1u64, nodes.to_vec()).put(words),
        }
    }

    fn take(words: &mut Reader<'_>) -> Option<Self> {
        match words.word()? {
            0 => Wire::take(words).map(Nodes::Blocks),
            1 => <Vec<u32>>::take(words).map(|nodes| Nodes::Table(nodes.into())),
            _ => None,
        }
    }
}
