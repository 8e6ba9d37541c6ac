//! A count of the members that have passed a mark.

use crate::Result;
use rdma_fabric::{Fabric, GroupMemory, LocalWord, PutOrder, Rank, RemoteAddr, RemoteSpan, RemoteWord};

/// Counters at member 0, and beside them each member's last mark: 1, 2, 3 …, which members pass in this
/// order.
///
/// A member passes a mark only when all have passed the one before the last, so at most two marks are
/// pending: odd and even ones have a counter each.
///
/// When member 0 drops its tally, which frees the counters, it writes its last mark to every other
/// member: those that wait for a later one return an error. It does not after the loss of a member, which
/// the others detect by themselves.
pub(super) struct Tally {
    fabric: Fabric,
    pub(super) counters: [RemoteWord<u64>; 2],
    /// The last mark that this member has passed.
    pub(super) passed: u64,
    /// 1 + the last mark that member 0 has passed, once it has dropped its tally.
    pub(super) gone: LocalWord<u64>,
    /// These words at the other members, if this is member 0.
    farewells: Box<[RemoteWord<u64>]>,
    pub(super) mark: RemoteWord<u64>,
    marks: RemoteSpan<u64>,
    me: usize,
}

/// The bytes of the counters.
const COUNTER: usize = 64;
/// The marks read at once.
const SOME: usize = 16;

impl Tally {
    pub(super) const fn bytes(members: usize) -> usize {
        COUNTER + (8 * members).next_multiple_of(64)
    }

    /// Resolves the tally at offset `at` of the members' memory, whose word that member 0 writes at last is at
    /// offset `gone`.
    pub(super) fn new(
        fabric: &Fabric,
        memory: &GroupMemory,
        ranks: &[Rank],
        me: usize,
        (at, gone): (usize, usize),
    ) -> Result<Self> {
        let members = ranks.len();
        let others = if me == 0 { &ranks[1..] } else { &[] };
        let farewells = others.iter().map(|rank| Ok(fabric.remote_word(memory.at(*rank, gone as u64)?)?));
        let farewells = farewells.collect::<Result<_>>()?;
        let gone = fabric.local_word(memory.at(ranks[me], gone as u64)?)?;
        let at = memory.at(ranks[0], at as u64)?;
        let marks = RemoteAddr { offset: at.offset + COUNTER as u64, ..at };
        let mark = RemoteAddr { offset: marks.offset + 8 * me as u64, ..at };
        Ok(Tally {
            fabric: fabric.clone(),
            passed: 0,
            gone,
            farewells,
            counters: [fabric.remote_word(at)?, fabric.remote_word(RemoteAddr { offset: at.offset + 8, ..at })?],
            mark: fabric.remote_word(mark)?,
            marks: fabric.remote_span(marks, members)?,
            me,
        })
    }

    /// Passes a mark. Returns whether this member is the last one, which then sees what each member
    /// has put to member 0 before it passed the mark.
    pub(super) async fn pass(&mut self, fabric: &Fabric, mark: u64) -> Result<bool> {
        self.passed = mark;
        fabric.put_word(&self.mark, mark).await?;
        if fabric.caps().put_order == PutOrder::None {
            fabric.flush(self.mark.rank()).await?;
        }
        let before = fabric.fetch_add(&self.counters[mark as usize % 2], 1).await?;
        Ok(self.is_last(before, mark))
    }

    /// Returns whether the member is the last one that found `before` in the counter of a mark.
    pub(super) fn is_last(&self, before: u64, mark: u64) -> bool {
        before + 1 == mark.div_ceil(2) * self.marks.len() as u64
    }

    /// Returns the next member after this one, cyclically, that has not passed a mark.
    pub(super) async fn missing(&self, fabric: &Fabric, mark: u64) -> Result<Option<usize>> {
        let members = self.marks.len();
        let mut found = None;
        for first in (0..members).step_by(SOME) {
            let (mut marks, some) = ([0; SOME], SOME.min(members - first));
            fabric.get_slice(&self.marks.slice(first..first + some)?, &mut marks[..some]).await?;
            let missing = |after: usize| (0..some).find(|n| first + n >= after && marks[*n] < mark).map(|n| first + n);
            if let Some(member) = missing(self.me + 1) {
                return Ok(Some(member));
            }
            found = found.or(missing(0));
        }
        Ok(found.filter(|member| *member != self.me))
    }

    /// Drops it without a message to the others.
    pub(super) fn silence(&mut self) {
        self.farewells = Box::default();
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let (fabric, farewells, passed) = (self.fabric.clone(), core::mem::take(&mut self.farewells), self.passed);
        if farewells.is_empty() {
            return;
        }
        self.fabric.detach(async move {
            for word in &farewells {
                // Either fails if the other member has dropped its memory.
                let _ = fabric.put_word(word, passed + 1).await;
                let _ = fabric.flush(word.rank()).await;
            }
        });
    }
}
