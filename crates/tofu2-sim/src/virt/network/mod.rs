//! How requests and data get from node to node.
//!
//! *Latency*: a fixed time per hop and no contention, one event per message. For scale.
//!
//! *Router*: packets move hop by hop and contend for links, buffers and receive engines; see [`NetworkModel::Router`]. What goes back
//! (results of atomics and gets, acknowledgements) takes its latency only, in both models; the data of a get besides occupies
//! the target's send engine.

mod router;

pub use router::Arbiter;
pub(super) use router::{Delivered, Packet, Pump, Router};

/// Which network a job has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkModel {
    /// Fixed latencies, no contention between nodes. Send engines, receive side and atomic units are still modelled.
    #[default]
    Latency,
    /// A router per node.
    ///
    /// * Input ports: one per neighbour and direction, and *one* local port that the node's engines share (assumption; each engine
    ///   has its own queue there, and loopback another, so that they don't block each other).
    /// * A link port has two virtual channels of a few packets each (assumption: credits return at once). A packet moves to the
    ///   second when it crosses a ring's wrap-around and back to the first with the next axis, so that rings can't
    ///   deadlock even with one credit (the dateline rule). On a [`super::TofuShape`] it has two more for the leg inside the target's
    ///   group, after the way between groups.
    /// * Each output is granted to one input port after the other (or to the oldest packet: [`Arbiter`]); a link is
    ///   busy for the packet's length at the link rate; the head moves on after the hop's latency (cut-through).
    /// * The last router hands a packet to the target's receive engine only when that has room; loopback competes there as
    ///   one more port. A busy receive side therefore fills the network (the parking-lot effect).
    Router,
}
