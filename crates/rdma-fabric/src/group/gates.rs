//! What setting up barrier gates needs of a group: agreeing on a number, and telling partners gates, in O(log n) steps
//! and no table of members.

use super::{Group, absence::Phase, compiled_here, control::Field, control::theirs};
use crate::Result;

impl Group {
    /// The greatest `value` of all members, by dissemination: a number may arrive twice, and must not count. O(log n) steps, no table of
    /// members; the least is the greatest of the complements.
    ///
    /// # Errors
    /// As [`Group::broadcast`].
    pub fn greatest(&mut self, value: u64) -> impl Future<Output = Result<u64>> {
        compiled_here(async move {
            self.is_whole()?;
            // Who is ahead of this member by a collective writes the other of two places; by two nobody is.
            self.agreements += 1;
            let odd = self.agreements % 2 == 1;
            let (place, reached) =
                if odd { (Field::GreatestOdd, Field::AgreedOdd) } else { (Field::GreatestEven, Field::AgreedEven) };
            let found = self.agree(value, place, reached).await;
            self.told(Phase::Agreeing, found).await
        })
    }

    async fn agree(&self, value: u64, place: Field, reached: Field) -> Result<u64> {
        let (n, me, number) = (self.len(), self.me, self.agreements);
        let mut greatest = value;
        for round in 0..self.rounds() {
            let next = (me + (1 << round)) % n;
            let (rank, key) = (self.rank(next)?, self.key(next));
            self.fabric.put_word(&theirs(&self.fabric, rank, key, round, place)?, greatest).await?;
            self.fabric.flush(rank).await?;
            self.fabric.put_word(&theirs(&self.fabric, rank, key, round, reached)?, number).await?;
            let mine = self.control.own(&self.fabric, round, reached)?;
            self.wait_for(&mine, (me + n - (1 << round)) % n, number).await?;
            greatest = greatest.max(self.fabric.load(&self.control.own(&self.fabric, round, place)?)?);
            // The number must not land on that of two agreements later.
            self.fabric.flush(rank).await?;
        }
        Ok(greatest)
    }

    /// Tell `member` which gate is at the other end of a remote wire of its gate `slot`; of its source if `source`.
    pub(crate) async fn tell_gate(&self, member: usize, slot: usize, source: bool, gate: u64) -> Result<()> {
        let field = if source { Field::GateSource } else { Field::GateDestination };
        let word = theirs(&self.fabric, self.rank(member)?, self.key(member), slot as u32, field)?;
        self.fabric.put_word(&word, gate).await
    }

    /// What a member has told about gate `slot`; after a barrier.
    pub(crate) fn told_gate(&self, slot: usize, source: bool) -> Result<u64> {
        let field = if source { Field::GateSource } else { Field::GateDestination };
        self.fabric.load(&self.control.own(&self.fabric, slot as u32, field)?)
    }
}
