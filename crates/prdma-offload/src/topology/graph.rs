//! Distributed graphs of which each member names its neighbours.

use super::{Edge, Side, Topology, TopologyError, Weights};
use std::collections::BTreeMap;

impl Topology {
    /// The neighbours of member `me` of `members`, in the order given (`MPI_Dist_graph_create_adjacent`). Local.
    ///
    /// A member may be named again, and `me` may name itself: the *k*-th slot of a destination is the *k*-th slot of
    /// `me` among that member's sources. That the other end names `me` as often is the program's duty, which
    /// [`Topology::check`] checks.
    ///
    /// # Errors
    /// [`TopologyError::NotAMember`] of `me`, [`TopologyError::NoSuchMember`].
    pub fn graph(
        members: usize,
        me: usize,
        sources: &[usize],
        destinations: &[usize],
    ) -> Result<Topology, TopologyError> {
        if me >= members {
            return Err(TopologyError::NotAMember { member: me, members });
        }
        Ok(Topology {
            sources: labelled(members, Side::Source, sources)?,
            destinations: labelled(members, Side::Destination, destinations)?,
            weights: None,
        })
    }

    /// The same with weights: how much goes along each edge, in any unit. They are hints for [`Topology::reordered`]
    /// and change nothing else.
    ///
    /// # Errors
    /// [`TopologyError::Weights`] if they are not as many as the slots of their side.
    pub fn with_weights(self, sources: &[u32], destinations: &[u32]) -> Result<Topology, TopologyError> {
        let sides = [(Side::Source, sources), (Side::Destination, destinations)];
        for (side, weights, slots) in sides.map(|(side, weights)| (side, weights.len(), self.side(side).len())) {
            if weights != slots {
                return Err(TopologyError::Weights { side, weights, slots });
            }
        }
        Ok(Topology { weights: Some(Weights { sources: sources.into(), destinations: destinations.into() }), ..self })
    }
}

/// Edges to `named`, each with the number of earlier ones to the same member.
fn labelled(members: usize, side: Side, named: &[usize]) -> Result<Box<[Option<Edge>]>, TopologyError> {
    let mut labels = BTreeMap::new();
    let edge = |(slot, member): (usize, &usize)| {
        let member = *member;
        if member >= members {
            return Err(TopologyError::NoSuchMember { side, slot, member, members });
        }
        let next: &mut u32 = labels.entry(member).or_default();
        let label = *next;
        *next += 1;
        Ok(Some(Edge { member, label }))
    };
    named.iter().enumerate().map(edge).collect()
}
