//! Allgather by Bruck's algorithm: blocks double each round, any number of members.

use super::{Group, absence::Phase, control::Way};
use crate::{Pod, Result};

impl Group {
    /// Every member's `value`, in member order.
    ///
    /// # Errors
    /// As [`Group::broadcast`].
    pub async fn allgather<T: Pod + Unpin>(&mut self, value: T) -> Result<Vec<T>> {
        self.barrier().await?;
        let gathered = self.gather(value).await;
        self.told(Phase::Numbered, gathered).await
    }

    async fn gather<T: Pod + Unpin>(&self, value: T) -> Result<Vec<T>> {
        let (n, me) = (self.len(), self.me);
        let buffer = self.fabric.alloc((n * size_of::<T>()).max(1).next_multiple_of(8))?;
        // Block i of the buffer is that of member me + i.
        let blocks = buffer.span::<T>(&self.fabric, 0, n)?;
        self.fabric.write(&blocks.slice(0..1)?, &[value])?;
        for round in 0..self.rounds() {
            let have = 1usize << round;
            let count = have.min(n - have);
            let from = (me + have) % n;
            let to = (me + n - have) % n;
            self.offer(Way::BACK, from, round, buffer.key()).await?;
            self.deliver::<T, _>(Way::BACK, to, round, have, blocks.slice(0..count)?).await?;
            self.receive(Way::BACK, from, round).await?;
        }
        let mut relative = vec![value; n];
        self.fabric.read(&blocks, &mut relative)?;
        relative.rotate_right(me);
        // A peer may still be writing its own copy from here; nobody writes into mine any more.
        Ok(relative)
    }
}
