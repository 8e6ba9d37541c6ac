//! Binomial-tree broadcast and the offer that carries its data.

use super::{Group, absence::Phase, compiled_here, control::Way, control::theirs};
use crate::{Pod, RegionKey, RemoteAddr, Result};

impl Group {
    /// Copy `value` of member `root` to all members.
    ///
    /// # Errors
    /// As [`Group::barrier`]; [`crate::FabricError::NoSuchRank`] if `root` is no member;
    /// [`crate::FabricError::OutOfMemory`] if the buffer can't be registered.
    pub async fn broadcast<T: Pod + Unpin>(&mut self, root: usize, value: T) -> Result<T> {
        self.rank(root)?;
        self.barrier().await?;
        let spread = self.spread(root, value).await;
        self.told(Phase::Numbered, spread).await
    }

    async fn spread<T: Pod + Unpin>(&self, root: usize, value: T) -> Result<T> {
        let n = self.len();
        // Numbering relative to the root: parent of v is v without its highest bit.
        let v = (self.me + n - root) % n;
        let buffer = self.fabric.alloc(size_of::<T>().max(1).next_multiple_of(8))?;
        let own = buffer.span::<T>(&self.fabric, 0, 1)?;
        if v == 0 {
            self.fabric.write(&own, &[value])?;
        } else {
            let round = v.ilog2();
            let parent = (v - (1 << round) + root) % n;
            self.offer(Way::FORTH, parent, round, buffer.key()).await?;
            self.receive(Way::FORTH, parent, round).await?;
        }
        let first = if v == 0 { 0 } else { v.ilog2() + 1 };
        for round in first..self.rounds() {
            let child = v + (1 << round);
            if child < n {
                self.deliver::<T, _>(Way::FORTH, (child + root) % n, round, 0, own.clone()).await?;
            }
        }
        let mut out = [value];
        self.fabric.read(&own, &mut out)?;
        Ok(out[0])
    }

    /// Tell `member` where to put the data of this round.
    pub(super) fn offer(
        &self,
        way: Way,
        member: usize,
        round: u32,
        buffer: RegionKey,
    ) -> impl Future<Output = Result<()>> {
        compiled_here(async move {
            let (rank, key) = (self.rank(member)?, self.key(member));
            let place = theirs(&self.fabric, rank, key, round, way.key)?;
            self.fabric.put_word(&place, buffer.to_bits()).await?;
            self.fabric.flush(rank).await?;
            let number = theirs(&self.fabric, rank, key, round, way.offer)?;
            self.fabric.put_word(&number, self.epoch).await
        })
    }

    /// What `member` offered for this round.
    fn offered(&self, way: Way, member: usize, round: u32) -> impl Future<Output = Result<RegionKey>> {
        compiled_here(async move {
            let offered = self.control.own(&self.fabric, round, way.offer)?;
            self.wait_for(&offered, member, self.epoch).await?;
            let key = self.fabric.load(&self.control.own(&self.fabric, round, way.key)?)?;
            Ok(RegionKey::from_bits(key))
        })
    }

    /// Put `data` at `offset` elements of what `member` offered for this round.
    pub(super) async fn deliver<T: Pod, S: crate::PutSource<T>>(
        &self,
        way: Way,
        member: usize,
        round: u32,
        offset: usize,
        data: S,
    ) -> Result<()> {
        let region = self.offered(way, member, round).await?;
        let rank = self.rank(member)?;
        let addr = RemoteAddr { rank, region, offset: (offset * size_of::<T>()) as u64 };
        let to = self.fabric.remote_span(addr, data.elements())?;
        self.fabric.put(&to, data).await?;
        self.fabric.flush(rank).await?;
        let word = theirs(&self.fabric, rank, self.key(member), round, way.delivered)?;
        self.fabric.put_word(&word, self.epoch).await
    }

    /// Wait until this round's data, of `member`, is here.
    pub(super) fn receive(&self, way: Way, member: usize, round: u32) -> impl Future<Output = Result<()>> {
        compiled_here(async move {
            let delivered = self.control.own(&self.fabric, round, way.delivered)?;
            self.wait_for(&delivered, member, self.epoch).await.map(drop)
        })
    }
}
