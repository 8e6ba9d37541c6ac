//! The nodes that execute together.

use crate::{
    Array, Element, Mapping, Nodes, Result, XmpError,
    asynchronous::Table,
    reflect::{RdmaLimits, Transport},
};
use core::hash::{Hash, Hasher};
use prdma_offload::Packing;
use rdma_fabric::{Fabric, Group};
use std::hash::DefaultHasher;

/// The executing node set: a group of ranks, arranged as [`Nodes`]. Node `k` is member `k` of the
/// group.
///
/// It creates arrays, and provides the calls that all nodes make together. These are *global*: all
/// nodes make the same ones, in the same order, with equal arguments.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// use xmp_reflect::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template, Widths};
///
/// /// Reads the left neighbour of each node's first element, around the ring.
/// async fn ring(fabric: Fabric) -> ProgramResult<()> {
///     let group = Group::world(&fabric).await?;
///     let nodes = Nodes::new(&[group.len()], Order::LastFastest)?;
///     let template = Template::new(&[0..40], &[Format::Block], &nodes)?;
///     let mapping = template.align(&[0..40], &[Align::with(0)])?.shadow(&[Shadow::of(1)])?;
///     let mut set = NodeSet::new(group, nodes)?;
///     let array: Array<i64> = set.array(&mapping)?;
///     array.fill(|index| index[0])?;
///
///     let periodic = Reflect::widths(&[Widths::of(1).periodic()]);
///     set.reflect_async(&array, &periodic, 1).await?;
///     // ... compute on cells that no neighbour sends or needs ...
///     set.wait_async(&[1]).await?;
///     let first = 10 * set.me() as i64;
///     assert_eq!(array.get(&[first - 1])?, (first + 39) % 40);
///     set.barrier().await?;
///     Ok(())
/// }
/// # checks::documented::run(4, &ring);
/// ```
#[derive(Debug)]
pub struct NodeSet {
    pub(crate) group: Group,
    nodes: Nodes,
    /// Communications in progress, by id.
    pub(crate) table: Table,
    /// The transport of reflects without an explicit transport.
    pub(crate) transport: Transport,
    /// The threads that pack and unpack.
    pub(crate) packing: Packing,
    pub(crate) limits: RdmaLimits,
}

impl NodeSet {
    /// Arranges a group of ranks. Reflects without an explicit transport use that of the variable
    /// [`Transport::VARIABLE`], if it is set, and [`Transport::Auto`] otherwise.
    ///
    /// # Errors
    /// [`XmpError::NodeSet`] if there are not as many nodes as ranks, [`XmpError::NoTransport`].
    pub fn new(group: Group, nodes: Nodes) -> Result<Self> {
        if group.len() != nodes.size() {
            return Err(XmpError::NodeSet { nodes: nodes.size(), ranks: group.len() });
        }
        Ok(NodeSet {
            group,
            nodes,
            table: Table::default(),
            transport: Transport::of_environment()?,
            packing: Packing::serial(),
            limits: RdmaLimits::NONE,
        })
    }

    /// Returns this set, with a transport for reflects without an explicit one.
    #[must_use]
    pub fn with_transport(self, transport: Transport) -> Self {
        NodeSet { transport, ..self }
    }

    /// Returns this set, with threads that pack and unpack at this node for the schedules that it
    /// creates from now on ([`Transport::Packed`], and blocks that other transports pack). By
    /// default, the calling thread does. Nodes may differ.
    #[must_use]
    pub fn with_packing(self, packing: Packing) -> Self {
        NodeSet { packing, ..self }
    }

    /// Returns this set, with the limits of a machine for reflects by RDMA: the same at all nodes,
    /// and before the first reflect.
    #[must_use]
    pub fn with_limits(self, limits: RdmaLimits) -> Self {
        NodeSet { limits, ..self }
    }

    /// Returns the shape of the set.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Returns the number of this node.
    pub fn me(&self) -> usize {
        self.group.me()
    }

    /// Returns the fabric.
    pub fn fabric(&self) -> &Fabric {
        self.group.fabric()
    }

    /// Returns the group, for collective calls between reflects.
    pub fn group_mut(&mut self) -> &mut Group {
        &mut self.group
    }

    /// Waits until all nodes have called it.
    ///
    /// # Errors
    /// As [`Group::barrier`].
    pub async fn barrier(&mut self) -> Result<()> {
        Ok(self.group.barrier().await?)
    }

    /// Creates a zeroed array, with this node's part of it. Local.
    ///
    /// # Errors
    /// [`XmpError::OtherNodes`] if the mapping has another node set; the errors of
    /// [`Fabric::alloc`].
    pub fn array<T: Element>(&self, mapping: &Mapping) -> Result<Array<T>> {
        self.array_through(self.fabric(), mapping)
    }

    /// Creates an array like [`NodeSet::array`], with memory that is allocated through another
    /// handle of this rank, for instance one with an observing layer, or one without.
    ///
    /// # Errors
    /// As [`NodeSet::array`].
    pub fn array_through<T: Element>(&self, fabric: &Fabric, mapping: &Mapping) -> Result<Array<T>> {
        self.executes(mapping)?;
        Array::new(fabric, mapping, self.me())
    }

    /// Checks that a mapping is onto this set.
    ///
    /// # Errors
    /// [`XmpError::OtherNodes`].
    pub(crate) fn executes(&self, mapping: &Mapping) -> Result<()> {
        if *mapping.nodes() == self.nodes {
            return Ok(());
        }
        let name = |nodes: &Nodes| format!("{:?} nodes, {:?}", nodes.extents(), nodes.order());
        Err(XmpError::OtherNodes { array: name(mapping.nodes()), executing: name(&self.nodes) })
    }

    /// Checks that all nodes have reached this call without an error, and with equal arguments.
    /// Collective.
    ///
    /// # Errors
    /// The error of this node; [`XmpError::ElsewhereFailed`] if only another node has one;
    /// [`XmpError::Disagreement`].
    pub(crate) async fn agree<T>(&mut self, what: &'static str, arguments: impl Hash, mine: Result<T>) -> Result<T> {
        let mut hasher = DefaultHasher::new();
        arguments.hash(&mut hasher);
        // 0 and the greatest number represent errors.
        let hash = hasher.finish().clamp(1, u64::MAX - 1);
        let (most, least) = if mine.is_ok() { (hash, !hash) } else { (u64::MAX, u64::MAX) };
        let most = self.group.greatest(most).await?;
        let least = !self.group.greatest(least).await?;
        match mine {
            Err(error) => Err(error),
            Ok(_) if least == 0 => Err(XmpError::ElsewhereFailed),
            Ok(_) if least != most => Err(XmpError::Disagreement { what }),
            Ok(value) => Ok(value),
        }
    }
}
