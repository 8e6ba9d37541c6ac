//! Guarded requests: those whose members put into memory that is lent in place.
//!
//! A put at the wrong time or to the wrong location would change the data behind a reference. So
//! all inputs of such a put are inaccessible to code outside this crate, no matter how many keys it
//! guesses:
//!
//! * Words, and the tables that members publish while the request is made, are in memory under
//!   access policies of this crate ([`crate::buffer`]).
//! * The location of a table is read from memory that any rank can write. So a member accepts a
//!   table only if it is under the access policy, [sealed](Seal) by a member that had completed it, and of
//!   the right kind. A member may still be directed to a table of another request. Therefore, the
//!   second table contains, for each channel, both ranks and both first tables that the two ends
//!   have compared ([`Binding`]): if all agree, both members have compared the same two tables, and
//!   their actions match. The ranks are included because tables of different ranks may have equal
//!   keys.
//! * The numbers that words receive start after the time at which the request is made, in
//!   nanoseconds, which no request has reached before. This holds even if other code interferes
//!   with the agreement on it, because a member does not accept a number that its own clock has not
//!   reached. Numbers that a neighbour still writes for an earlier request to words that have been
//!   freed are not a READY or an END of this one.

use super::all_succeed;
use crate::{
    Aggregation, Options, Result,
    buffer::{data_handle, lends, tables_handle, words_handle},
};
use core::time::Duration;
use rdma_fabric::{Fabric, FabricError, Group, Rank, RegionKey, Time};

/// Handles of this member that access guarded memory.
#[derive(Clone)]
pub(crate) struct Handles {
    /// Accesses words.
    pub(crate) words: Fabric,
    /// Accesses tables.
    tables: Fabric,
    /// Accesses memory that is lent.
    pub(crate) data: Fabric,
    pub(crate) guarded: bool,
}

impl Handles {
    /// Returns the handles of an unguarded request.
    pub(crate) fn open(fabric: &Fabric) -> Self {
        Handles { words: fabric.clone(), tables: fabric.clone(), data: fabric.clone(), guarded: false }
    }

    /// Opens the handles of a guarded request.
    ///
    /// # Errors
    /// As [`Fabric::protected`].
    pub(crate) fn guarded(fabric: &Fabric) -> Result<Self> {
        let (words, tables) = (words_handle(fabric)?, tables_handle(fabric)?);
        let data = data_handle(fabric)?.unwrap_or_else(|| fabric.clone());
        Ok(Handles { words, tables, data, guarded: true })
    }

    /// Returns the seal of tables of this `kind`, if the request is guarded.
    pub(crate) fn seal(&self, kind: u64) -> Option<Seal> {
        self.guarded.then(|| Seal { handle: self.tables.clone(), kind })
    }
}

/// The seal of a table of a guarded request.
pub(crate) struct Seal {
    /// Allocates and reads the table.
    pub(crate) handle: Fabric,
    /// The kind of records; not 0.
    pub(crate) kind: u64,
}

impl Seal {
    /// Returns whether a region can hold such a table.
    pub(crate) fn may_be_at(&self, rank: Rank, region: RegionKey) -> rdma_fabric::Result<bool> {
        self.handle.holds(rank, region)
    }
}

/// The tables that the two ends of a channel have compared, by their keys: 0 in a request that isn't
/// guarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) mine: u64,
    pub(crate) theirs: u64,
}

impl Binding {
    /// Returns the binding from the perspective of the other end.
    pub(crate) fn turned(self) -> Self {
        Binding { mine: self.theirs, theirs: self.mine }
    }
}

/// The requests of members in the first agreement. The least of all members applies; an error
/// precedes all of these.
///
/// Bits 60 and 61 of the vote, above the bits for [`Aggregation`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Memory isn't lent in place here.
    Unguarded = 0,
    /// The form [`Form::Cpu`](crate::Form::Cpu), and no aggregation.
    Guarded = 1,
    /// Queues, or aggregation.
    Queues = 2,
}

const SHIFT: u32 = 60;
const MOST: u64 = (1 << SHIFT) - 1;

impl Wish {
    /// Returns the wish of a member with these options.
    pub(crate) fn of(fabric: &Fabric, options: &Options) -> Self {
        match is_direct(options) {
            _ if !lends(fabric) => Wish::Unguarded,
            true => Wish::Guarded,
            false => Wish::Queues,
        }
    }

    /// Returns the vote for this wish and a `longest` block to aggregate.
    pub(crate) fn vote(self, longest: u64) -> u64 {
        (self as u64) << SHIFT | longest.min(MOST)
    }

    /// Returns whether the request is guarded according to the least vote, and the longest block to
    /// aggregate.
    pub(crate) fn of_vote(vote: u64) -> (bool, u64) {
        let longest = match vote & MOST {
            MOST => u64::MAX,
            longest => longest,
        };
        (vote >> SHIFT == Wish::Guarded as u64, longest)
    }
}

/// Returns whether a member with these options lets its neighbours put into memory that is lent.
pub(crate) fn is_direct(options: &Options) -> bool {
    options.form.most().min(options.budget) == 0 && options.aggregation == Aggregation::None
}

/// The maximum difference between the clocks of two ranks.
const MOST_APART: Duration = Duration::from_secs(10);

/// Agrees on the number after which the words of a guarded request start. Collective.
///
/// # Errors
/// [`FabricError::Corrupt`] if no member can have proposed it.
pub(crate) async fn first_number(group: &mut Group) -> Result<u64> {
    let fabric = group.fabric().clone();
    let nanos = |time: Time| time.as_picos() / 1000;
    let first = group.greatest(nanos(fabric.now())).await?;
    let reached = nanos(fabric.now() + MOST_APART) >= first;
    let corrupt = FabricError::Corrupt { rank: fabric.rank(), what: &"the number that a request starts after" };
    all_succeed(group, if reached { Ok(()) } else { Err(corrupt.into()) }).await?;
    let ahead = first.saturating_sub(nanos(fabric.now()));
    if ahead > 0 {
        fabric.sleep(Duration::from_nanos(ahead)).await;
    }
    Ok(first)
}
