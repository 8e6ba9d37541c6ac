//! Inserting, erasing and moving elements.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    ListPosition,
    node::{Node, RawList, Unwritten},
};
use crate::{AcpError, GlobalAddress, Result};
use rdma_fabric::Rank;

impl RawList {
    /// Inserts a value before a position.
    pub(super) async fn insert(&self, before: ListPosition, value: &[u8], rank: Rank) -> Result<ListPosition> {
        let before = self.any(before)?;
        let made = self.allocate(core::iter::once((rank, value.to_vec()))).await?;
        self.insert_made(before, made).await
    }

    /// Inserts copies of the elements of `from` in `start..end`, each at the rank of the original.
    /// Returns the position of the first copy, or `before` if there is none.
    pub(super) async fn insert_range(
        &self,
        before: ListPosition,
        from: &RawList,
        start: ListPosition,
        end: ListPosition,
    ) -> Result<ListPosition> {
        let before = self.any(before)?;
        let made = self.copies(from.nodes(from.any(start)?, from.any(end)?).await?).await?;
        self.insert_made(before, made).await
    }

    /// Allocates copies of elements.
    async fn copies(&self, nodes: Vec<Node>) -> Result<Unwritten> {
        self.allocate(nodes.into_iter().map(|node| (node.address.rank(), node.value))).await
    }

    /// The error for a count that is not that of the list's elements.
    fn damaged(&self) -> AcpError {
        AcpError::Damaged { address: self.at }
    }

    async fn insert_made(&self, before: GlobalAddress, made: Unwritten) -> Result<ListPosition> {
        let (Some((first, _)), Some((last, _))) = (made.first(), made.last()) else { return Ok(self.position(before)) };
        let (first, last) = (*first, *last);
        let more = made.len() as u64;
        let read = async {
            let count = self.links(self.at).await?.count.checked_add(more);
            Ok((count.ok_or(self.damaged())?, self.links(before).await?.previous))
        };
        let (count, previous) = match read.await {
            Ok(read) => read,
            Err(error) => {
                self.free(made.into_iter().map(|(address, _)| address)).await?;
                return Err(error);
            }
        };
        self.changed(|list| async move {
            list.set_count(count).await?;
            list.write(made, previous, before).await?;
            list.set_next(previous, first).await?;
            list.set_previous(before, last).await
        })
        .await?;
        Ok(self.position(first))
    }

    /// Unlinks and frees the elements in `start..end`. Returns `end`.
    pub(super) async fn erase_range(&self, start: ListPosition, end: ListPosition) -> Result<ListPosition> {
        let (start, end) = (self.any(start)?, self.any(end)?);
        let nodes = self.nodes(start, end).await?;
        self.erase(nodes, end).await?;
        Ok(self.position(end))
    }

    /// Unlinks and frees an element; returns it, and the position after it.
    pub(super) async fn erase_one(&self, position: ListPosition) -> Result<(Node, ListPosition)> {
        let node = self.node(self.element(position)?).await?;
        self.erase(vec![node.clone()], node.links.next).await?;
        let next = self.position(node.links.next);
        Ok((node, next))
    }

    async fn erase(&self, nodes: Vec<Node>, end: GlobalAddress) -> Result<()> {
        let Some(first) = nodes.first() else { return Ok(()) };
        let previous = first.links.previous;
        let count = self.links(self.at).await?.count.saturating_sub(nodes.len() as u64);
        self.changed(|list| async move {
            list.set_count(count).await?;
            list.link(previous, end).await
        })
        .await?;
        self.free(nodes.into_iter().map(|node| node.address)).await
    }

    /// Moves the elements of `from` in `start..end` to before a position in this list. They keep
    /// their addresses. If the position is one of them, nothing changes.
    pub(super) async fn splice_range(
        &self,
        before: ListPosition,
        from: &RawList,
        start: ListPosition,
        end: ListPosition,
    ) -> Result<()> {
        let (before, start, end) = (self.any(before)?, from.any(start)?, from.any(end)?);
        let nodes = from.nodes(start, end).await?;
        let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return Ok(()) };
        if before == end || nodes.iter().any(|node| node.address == before) {
            return Ok(());
        }
        let (gap, first, last) = (first.links.previous, first.address, last.address);
        let previous = self.links(before).await?.previous;
        let moved = nodes.len() as u64;
        let counts = match from.at == self.at {
            true => None,
            false => {
                let here = self.links(self.at).await?.count.checked_add(moved).ok_or(self.damaged())?;
                let there = from.links(from.at).await?.count.checked_sub(moved).ok_or(from.damaged())?;
                Some((here, there))
            }
        };
        let from = from.clone();
        self.changed(|list| async move {
            if let Some((here, there)) = counts {
                list.set_count(here).await?;
                from.set_count(there).await?;
            }
            list.link(gap, end).await?;
            list.link(previous, first).await?;
            list.link(last, before).await
        })
        .await
    }

    /// Replaces all elements with copies of the elements of `from` in `start..end`.
    pub(super) async fn assign_range(&self, from: &RawList, start: ListPosition, end: ListPosition) -> Result<()> {
        let nodes = from.nodes(from.any(start)?, from.any(end)?).await?;
        let old = self.load().await?;
        let made = self.copies(nodes).await?;
        self.changed(|list| async move {
            let [first, last] = [made.first(), made.last()].map(|made| made.map_or(list.at, |(address, _)| *address));
            list.set_count(made.len() as u64).await?;
            list.write(made, list.at, list.at).await?;
            list.set_next(list.at, first).await?;
            list.set_previous(list.at, last).await
        })
        .await?;
        self.free(old.into_iter().map(|node| node.address)).await
    }
}
