//! Calls on all elements of a list, and steps along it.

use super::{
    ListPosition,
    node::{Node, RawList},
};
use crate::{AcpError, GlobalAddress, Result};
use std::collections::HashSet;

impl RawList {
    pub(super) async fn len(&self) -> Result<usize> {
        Ok(self.links(self.at).await?.count as usize)
    }

    /// Makes the list consist of these elements, its own or another list's, in this order.
    pub(super) async fn reorder(&self, order: Vec<GlobalAddress>) -> Result<()> {
        self.changed(|list| async move { list.put_order(&order).await }).await
    }

    /// Makes the list consist of these elements in this order, and empties another list.
    pub(super) async fn reorder_with(&self, other: &RawList, order: Vec<GlobalAddress>) -> Result<()> {
        let other = other.clone();
        self.changed(|list| async move {
            other.put_order(&[]).await?;
            list.put_order(&order).await
        })
        .await
    }

    /// Makes the list consist of its elements in the given order.
    pub(super) async fn arrange(&self, positions: &[ListPosition]) -> Result<()> {
        let mut left: HashSet<_> = self.sizes().await?.into_iter().map(|(address, _)| address.to_bits()).collect();
        let mut order = Vec::with_capacity(left.len());
        for position in positions {
            let element = self.element(*position)?;
            if !left.remove(&element.to_bits()) {
                return Err(AcpError::NoSuchElement { address: element });
            }
            order.push(element);
        }
        match left.into_iter().min().and_then(GlobalAddress::from_bits) {
            Some(address) => Err(AcpError::NoSuchElement { address }),
            None => self.reorder(order).await,
        }
    }

    pub(super) async fn clear(&self) -> Result<()> {
        self.keep(|_, _| false).await.map(drop)
    }

    pub(super) async fn destroy(self) -> Result<()> {
        self.clear().await?;
        self.acp.free(self.at).await
    }

    pub(super) async fn reverse(&self) -> Result<()> {
        self.reorder(self.load().await?.iter().rev().map(|node| node.address).collect()).await
    }

    pub(super) async fn dedup(&self) -> Result<usize> {
        self.keep(|before, node| before.is_none_or(|before| before.value != node.value)).await
    }

    pub(super) async fn remove(&self, value: &[u8]) -> Result<usize> {
        self.keep(|_, node| node.value != value).await
    }

    /// Removes all elements for which `stays` returns false, given the last kept element before it;
    /// returns the number of removed elements.
    async fn keep(&self, stays: impl Fn(Option<&Node>, &Node) -> bool) -> Result<usize> {
        let (mut kept, mut gone) = (Vec::<Node>::new(), vec![]);
        for node in self.load().await? {
            if stays(kept.last(), &node) {
                kept.push(node);
            } else {
                gone.push(node.address);
            }
        }
        if !gone.is_empty() {
            self.reorder(kept.into_iter().map(|node| node.address).collect()).await?;
        }
        let removed = gone.len();
        self.free(gone.into_iter()).await?;
        Ok(removed)
    }

    pub(super) async fn swap(&self, other: &RawList) -> Result<()> {
        if self.at == other.at {
            return Ok(());
        }
        let (mine, theirs) = (self.links(self.at).await?, self.links(other.at).await?);
        let other = other.clone();
        self.changed(|list| async move {
            for (list, links, before) in [(&list, theirs, other.at), (&other, mine, list.at)] {
                list.set_count(links.count).await?;
                // The links of an empty list refer to the list itself.
                let [first, last] = [links.next, links.previous].map(|end| if end == before { list.at } else { end });
                list.link(list.at, first).await?;
                if last != list.at {
                    list.link(last, list.at).await?;
                }
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn begin(&self) -> Result<ListPosition> {
        Ok(self.position(self.links(self.at).await?.next))
    }

    /// Returns the position of the last element; the end if there is none.
    pub(super) async fn last(&self) -> Result<ListPosition> {
        Ok(self.position(self.links(self.at).await?.previous))
    }

    /// Returns the position after another one.
    pub(super) async fn next(&self, position: ListPosition) -> Result<ListPosition> {
        Ok(self.position(self.links(self.element(position)?).await?.next))
    }

    /// Returns the position before another one.
    pub(super) async fn previous(&self, position: ListPosition) -> Result<ListPosition> {
        let previous = self.position(self.links(self.any(position)?).await?.previous);
        self.element(previous)?;
        Ok(previous)
    }

    pub(super) async fn advance(&self, mut position: ListPosition, steps: i64) -> Result<ListPosition> {
        for _ in 0..steps.unsigned_abs() {
            position = if steps > 0 { self.next(position).await? } else { self.previous(position).await? };
        }
        Ok(position)
    }

    pub(super) async fn distance(&self, first: ListPosition, last: ListPosition) -> Result<usize> {
        let (mut at, last, mut steps) = (self.any(first)?, self.any(last)?, 0);
        let count = self.possible(self.links(self.at).await?.count)? as usize;
        while at != last {
            if at == self.at || steps > count {
                return Err(AcpError::NoSuchElement { address: last });
            }
            at = self.links(at).await?.next;
            steps += 1;
        }
        Ok(steps)
    }
}
