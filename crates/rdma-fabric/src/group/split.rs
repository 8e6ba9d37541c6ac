//! Making smaller groups.

use super::{Group, Members, compiled_here, control::CONTROL_BYTES, control::Control};
use crate::{Pod, Rank, RegionKey, Result, Zeroable};

/// What each member contributes to a split.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Card {
    color: u64,
    order: u64,
    key: RegionKey,
    rank: Rank,
    joins: u32,
}

impl Group {
    /// Split into one group per `color`; members are numbered by `order`, then by their number here. `None`
    /// joins no group. Collective over this group.
    ///
    /// # Errors
    /// As [`Group::broadcast`].
    pub fn split(&mut self, color: Option<u64>, order: u64) -> impl Future<Output = Result<Option<Group>>> {
        compiled_here(self.make_split(color, order))
    }

    async fn make_split(&mut self, color: Option<u64>, order: u64) -> Result<Option<Group>> {
        let region = self.fabric.alloc(CONTROL_BYTES)?;
        let card = Card {
            color: color.unwrap_or(0),
            order,
            key: region.key(),
            rank: self.fabric.rank(),
            joins: u32::from(color.is_some()),
        };
        let mut cards = self.allgather(card).await?;
        let Some(color) = color else { return Ok(None) };
        cards.retain(|card| card.joins == 1 && card.color == color);
        cards.sort_by_key(|card| card.order);
        let me = cards.iter().position(|card| card.rank == self.fabric.rank()).unwrap_or(0);
        Ok(Some(Group {
            fabric: self.fabric.clone(),
            members: Members::Listed {
                ranks: cards.iter().map(|card| card.rank).collect(),
                keys: cards.iter().map(|card| card.key).collect(),
            },
            me,
            control: Control::new(&self.fabric, region)?,
            epoch: 0,
            agreements: 0,
            missing: None,
        }))
    }
}
