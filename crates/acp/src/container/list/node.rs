//! Elements of lists in memory, and chains of them.
//!
//! An element consists of next, previous and size of the value, then the value. The list itself
//! consists of head, tail and count at the same offsets, so it is both the element before the first
//! and the element after the last.

#![deny(clippy::arithmetic_side_effects)]

use super::ListPosition;
use crate::{Acp, AcpError, GlobalAddress, Result, address::MAX_REGION_BYTES, container::finish::finish};
use core::future::Future;
use rdma_fabric::{Rank, provider::SHORT};

pub(super) const NEXT: u64 = 0;
pub(super) const PREVIOUS: u64 = 8;
/// The offset of a list's count, and of an element's size.
pub(super) const COUNT: u64 = 16;
const HEAD_BYTES: usize = 24;

/// A list that this rank uses.
#[derive(Clone)]
pub(crate) struct RawList {
    pub(super) acp: Acp,
    pub(super) at: GlobalAddress,
}

/// The words of an element, or of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub(super) next: GlobalAddress,
    pub(super) previous: GlobalAddress,
    /// A list's count, or an element's size in bytes.
    pub(super) count: u64,
}

/// An element that was read completely.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) address: GlobalAddress,
    pub(super) links: Links,
    pub(crate) value: Vec<u8>,
}

/// Elements that are allocated, not written, and in no list: address and value of each.
pub(super) type Unwritten = Vec<(GlobalAddress, Vec<u8>)>;

impl RawList {
    pub(super) async fn create(acp: &Acp, rank: Rank) -> Result<Self> {
        let at = acp.malloc(HEAD_BYTES, rank).await?;
        acp.write(at, &[at.to_bits(), at.to_bits(), 0]).await?;
        Ok(RawList { acp: acp.clone(), at })
    }

    /// Reads the words at an address of the list or of an element.
    pub(super) async fn links(&self, address: GlobalAddress) -> Result<Links> {
        let mut words = [0u64; 3];
        self.acp.read(address, &mut words).await?;
        decode(address, words)
    }

    /// Reads an element.
    #[expect(clippy::arithmetic_side_effects, reason = "lengths of at most a short read, and of memory")]
    pub(super) async fn node(&self, address: GlobalAddress) -> Result<Node> {
        let mut first = [0u64; SHORT / 8];
        let read = self.acp.within_heap(address, SHORT).max(HEAD_BYTES);
        self.acp.read(address, &mut bytemuck::cast_slice_mut::<_, u8>(&mut first)[..read]).await?;
        let links = decode(address, [first[0], first[1], first[2]])?;
        if links.count >= MAX_REGION_BYTES {
            return Err(AcpError::Damaged { address });
        }
        let mut value = vec![0u8; links.count as usize];
        let begun = value.len().min(read - HEAD_BYTES);
        value[..begun].copy_from_slice(&bytemuck::cast_slice(&first)[HEAD_BYTES..HEAD_BYTES + begun]);
        if begun < value.len() {
            self.acp.read(address.offset_by((HEAD_BYTES + begun) as u64)?, &mut value[begun..]).await?;
        }
        Ok(Node { address, links, value })
    }

    /// Returns a count, unless the heaps of all ranks are too small for as many elements: a walk
    /// along damaged links takes no longer than one along all of memory.
    pub(super) fn possible(&self, count: u64) -> Result<u64> {
        let heap = (self.acp.options().heap_bytes as u64).checked_div(HEAD_BYTES as u64).unwrap_or(0);
        match count <= heap.saturating_mul(self.acp.ranks() as u64) {
            true => Ok(count),
            false => Err(AcpError::Damaged { address: self.at }),
        }
    }

    /// Reads address and size of all elements.
    pub(super) async fn sizes(&self) -> Result<Vec<(GlobalAddress, u64)>> {
        let Links { next: mut at, count, .. } = self.links(self.at).await?;
        let (mut sizes, mut left) = (vec![], self.possible(count)?);
        while at != self.at {
            left = left.checked_sub(1).ok_or(AcpError::Damaged { address: at })?;
            let links = self.links(at).await?;
            sizes.push((at, links.count));
            at = links.next;
        }
        Ok(sizes)
    }

    /// Reads the elements in `first..end`.
    pub(super) async fn nodes(&self, first: GlobalAddress, end: GlobalAddress) -> Result<Vec<Node>> {
        let (mut nodes, mut at, mut left) = (vec![], first, self.possible(self.links(self.at).await?.count)?);
        while at != end {
            if at == self.at {
                return Err(AcpError::NoSuchElement { address: end });
            }
            left = left.checked_sub(1).ok_or(AcpError::Damaged { address: at })?;
            let node = self.node(at).await?;
            at = node.links.next;
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// Reads all elements.
    pub(crate) async fn load(&self) -> Result<Vec<Node>> {
        self.nodes(self.links(self.at).await?.next, self.at).await
    }

    /// Returns the element at a position, or the list itself for its end.
    pub(super) fn any(&self, position: ListPosition) -> Result<GlobalAddress> {
        match position.list == self.at {
            true => Ok(position.element),
            false => Err(AcpError::NoSuchElement { address: position.element }),
        }
    }

    /// Returns the element at a position that is not the end.
    pub(super) fn element(&self, position: ListPosition) -> Result<GlobalAddress> {
        match self.any(position)? {
            end if end == self.at => Err(AcpError::NoSuchElement { address: end }),
            element => Ok(element),
        }
    }

    pub(super) fn position(&self, element: GlobalAddress) -> ListPosition {
        ListPosition { list: self.at, element }
    }

    /// Returns the address of an element's value.
    pub(super) fn value_at(element: GlobalAddress) -> Result<GlobalAddress> {
        element.offset_by(HEAD_BYTES as u64)
    }

    /// Allocates elements; if that fails, nothing stays allocated.
    pub(super) async fn allocate(&self, values: impl Iterator<Item = (Rank, Vec<u8>)>) -> Result<Unwritten> {
        let mut made = Unwritten::new();
        for (rank, value) in values {
            match self.acp.malloc(value.len().saturating_add(HEAD_BYTES), rank).await {
                Ok(address) => made.push((address, value)),
                Err(error) => {
                    self.free(made.into_iter().map(|(address, _)| address)).await?;
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    pub(super) async fn free(&self, elements: impl Iterator<Item = GlobalAddress>) -> Result<()> {
        for element in elements {
            self.acp.free(element).await?;
        }
        Ok(())
    }

    /// Runs a change to completion, even if the future is dropped; returns once the change is
    /// visible.
    pub(super) async fn changed<Change>(&self, change: impl FnOnce(Self) -> Change) -> Result<()>
    where
        Change: Future<Output = Result<()>> + Send + 'static,
    {
        let change = change(self.clone());
        let acp = self.acp.clone();
        finish(&self.acp, |_| async move {
            let done = change.await;
            acp.flush_all().await?;
            done
        })
        .await
    }
}

/// The puts of a change; no two puts of one change write the same word.
impl RawList {
    /// Links two elements to each other.
    pub(super) async fn link(&self, first: GlobalAddress, second: GlobalAddress) -> Result<()> {
        self.set_next(first, second).await?;
        self.set_previous(second, first).await
    }

    pub(super) async fn set_next(&self, of: GlobalAddress, next: GlobalAddress) -> Result<()> {
        self.acp.put(of.offset_by(NEXT)?, &[next.to_bits()]).await
    }

    pub(super) async fn set_previous(&self, of: GlobalAddress, previous: GlobalAddress) -> Result<()> {
        self.acp.put(of.offset_by(PREVIOUS)?, &[previous.to_bits()]).await
    }

    pub(super) async fn set_count(&self, count: u64) -> Result<()> {
        self.acp.put(self.at.offset_by(COUNT)?, &[count]).await
    }

    /// Writes elements with links to their neighbours `previous` and `next`, which are not changed.
    pub(super) async fn write(&self, made: Unwritten, previous: GlobalAddress, next: GlobalAddress) -> Result<()> {
        let addresses: Vec<_> = made.iter().map(|(address, _)| *address).collect();
        let mut previous = previous;
        for (n, (address, value)) in made.into_iter().enumerate() {
            let next = addresses.get(n.saturating_add(1)).copied().unwrap_or(next);
            let mut bytes = Vec::with_capacity(value.len().saturating_add(HEAD_BYTES));
            bytes.extend_from_slice(bytemuck::bytes_of(&[next.to_bits(), previous.to_bits(), value.len() as u64]));
            bytes.extend_from_slice(&value);
            self.acp.put(address, &bytes).await?;
            previous = address;
        }
        Ok(())
    }

    /// Makes the list consist of these elements in this order, all of which have been written.
    pub(super) async fn put_order(&self, order: &[GlobalAddress]) -> Result<()> {
        let around = |n: usize| order.get(n).copied().unwrap_or(self.at).to_bits();
        for (n, element) in order.iter().enumerate() {
            self.acp.put(*element, &[around(n.saturating_add(1)), around(n.wrapping_sub(1))]).await?;
        }
        let last = order.len().wrapping_sub(1);
        self.acp.put(self.at, &[around(0), around(last), order.len() as u64]).await
    }
}

fn decode(address: GlobalAddress, [next, previous, count]: [u64; 3]) -> Result<Links> {
    match (GlobalAddress::from_bits(next), GlobalAddress::from_bits(previous)) {
        (Some(next), Some(previous)) => Ok(Links { next, previous, count }),
        _ => Err(AcpError::Damaged { address }),
    }
}
