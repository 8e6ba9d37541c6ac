//! The collectives: barrier, agreement on the greatest number, broadcast, allgather.
//!
//! * Barrier and agreement: dissemination; in round k every member writes to the member 2^k after
//!   it.
//! * Broadcast: a binomial tree.
//! * Allgather: Bruck's algorithm; blocks double each round, for any number of members.

use super::{
    Group,
    absence::Phase,
    compiled_here,
    control::{Field, Way},
};
use crate::{Pod, PutSource, RegionKey, RemoteAddr, Result, fabric::whole_words};
use core::future::Future;

impl Group {
    /// Waits until every member has called this function. Puts that any member flushed before are
    /// visible to all members afterwards.
    ///
    /// # Errors
    /// [`crate::FabricError::PeerLost`] if a member died; [`crate::FabricError::MemberLeft`] if one
    /// finished without calling it, and [`crate::FabricError::StaleRegion`] if one has dropped its
    /// part of the group. Every member that calls it receives the error.
    pub async fn barrier(&mut self) -> Result<()> {
        self.is_whole()?;
        self.epoch += 1;
        let met = self.meet().await;
        self.announced(Phase::Numbered, met).await
    }

    async fn meet(&self) -> Result<()> {
        for round in 0..self.rounds() {
            let next = self.further(1 << round);
            let word = self.word_of(next, round, Field::Barrier)?;
            // Puts are not ordered among themselves: the number of the previous barrier, if still
            // in flight, must not overwrite this one.
            self.fabric.flush(self.rank(next)?).await?;
            self.fabric.put_word(&word, self.epoch).await?;
            let mine = self.own_word(round, Field::Barrier)?;
            self.wait_for(&mine, self.before(1 << round), self.epoch).await?;
        }
        Ok(())
    }

    /// Agrees on the greatest `value` of all members, by dissemination: a number may arrive twice,
    /// which does not matter for a maximum. O(log n) steps, no table of members; the minimum is the
    /// complement of the maximum of the complements.
    ///
    /// # Errors
    /// As [`Group::broadcast`].
    pub fn greatest(&mut self, value: u64) -> impl Future<Output = Result<u64>> {
        compiled_here(async move {
            self.is_whole()?;
            // A member that is one collective ahead of this one writes the other one of two words;
            // no member is two ahead.
            self.agreements += 1;
            let odd = self.agreements % 2 == 1;
            let (greatest, agreed) =
                if odd { (Field::GreatestOdd, Field::AgreedOdd) } else { (Field::GreatestEven, Field::AgreedEven) };
            let found = self.agree(value, greatest, agreed).await;
            self.announced(Phase::Agreeing, found).await
        })
    }

    async fn agree(&self, value: u64, field: Field, agreed: Field) -> Result<u64> {
        let (mut greatest, number) = (value, self.agreements);
        for round in 0..self.rounds() {
            let next = self.further(1 << round);
            let rank = self.rank(next)?;
            self.fabric.put_word(&self.word_of(next, round, field)?, greatest).await?;
            self.fabric.flush(rank).await?;
            self.fabric.put_word(&self.word_of(next, round, agreed)?, number).await?;
            let mine = self.own_word(round, agreed)?;
            self.wait_for(&mine, self.before(1 << round), number).await?;
            greatest = greatest.max(self.fabric.load(&self.own_word(round, field)?)?);
            // The number must not overwrite that of two agreements later.
            self.fabric.flush(rank).await?;
        }
        Ok(greatest)
    }

    /// Copies `value` of member `root` to all members.
    ///
    /// # Errors
    /// As [`Group::barrier`]; [`crate::FabricError::NoSuchRank`] if `root` is not a member;
    /// [`crate::FabricError::OutOfMemory`] if the buffer can't be registered.
    pub async fn broadcast<T: Pod + Unpin>(&mut self, root: usize, value: T) -> Result<T> {
        self.rank(root)?;
        self.barrier().await?;
        let spread = self.spread(root, value).await;
        self.announced(Phase::Numbered, spread).await
    }

    async fn spread<T: Pod + Unpin>(&self, root: usize, value: T) -> Result<T> {
        let n = self.len();
        // Numbering relative to the root: the parent of v is v without its highest bit.
        let v = (self.me + n - root) % n;
        let buffer = self.fabric.alloc(whole_words::<T>(1))?;
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

    /// Gathers every member's `value`, in member order.
    ///
    /// # Errors
    /// As [`Group::broadcast`].
    pub async fn allgather<T: Pod + Unpin>(&mut self, value: T) -> Result<Vec<T>> {
        self.barrier().await?;
        let gathered = self.gather(value).await;
        self.announced(Phase::Numbered, gathered).await
    }

    async fn gather<T: Pod + Unpin>(&self, value: T) -> Result<Vec<T>> {
        let n = self.len();
        let buffer = self.fabric.alloc(whole_words::<T>(n))?;
        // Block i of the buffer belongs to member me + i.
        let blocks = buffer.span::<T>(&self.fabric, 0, n)?;
        self.fabric.write(&blocks.slice(0..1)?, &[value])?;
        for round in 0..self.rounds() {
            let have = 1usize << round;
            let count = have.min(n - have);
            let (from, to) = (self.further(have), self.before(have));
            self.offer(Way::BACK, from, round, buffer.key()).await?;
            self.deliver::<T, _>(Way::BACK, to, round, have, blocks.slice(0..count)?).await?;
            self.receive(Way::BACK, from, round).await?;
        }
        let mut relative = vec![value; n];
        self.fabric.read(&blocks, &mut relative)?;
        relative.rotate_right(self.me);
        // Other members may still be filling their buffers, but none of them still writes into this
        // one.
        Ok(relative)
    }

    /// Offers `member` a buffer for the data of this round.
    fn offer(&self, way: Way, member: usize, round: u32, buffer: RegionKey) -> impl Future<Output = Result<()>> {
        compiled_here(async move {
            self.fabric.put_word(&self.word_of(member, round, way.key)?, buffer.to_bits()).await?;
            self.fabric.flush(self.rank(member)?).await?;
            self.fabric.put_word(&self.word_of(member, round, way.offer)?, self.epoch).await
        })
    }

    /// Waits for the buffer that `member` offers for this round.
    fn offered(&self, way: Way, member: usize, round: u32) -> impl Future<Output = Result<RegionKey>> {
        compiled_here(async move {
            self.wait_for(&self.own_word(round, way.offer)?, member, self.epoch).await?;
            self.fabric.load(&self.own_word(round, way.key)?).map(RegionKey::from_bits)
        })
    }

    /// Puts `data` into the buffer that `member` offers for this round, at `offset` elements.
    async fn deliver<T: Pod, S: PutSource<T>>(
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
        self.fabric.put_word(&self.word_of(member, round, way.delivered)?, self.epoch).await
    }

    /// Waits until this round's data from `member` has arrived.
    fn receive(&self, way: Way, member: usize, round: u32) -> impl Future<Output = Result<()>> {
        compiled_here(async move { self.wait_for(&self.own_word(round, way.delivered)?, member, self.epoch).await })
    }
}
