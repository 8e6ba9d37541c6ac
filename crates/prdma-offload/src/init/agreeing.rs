//! What members agree on with few words.

use crate::{Form, PrdmaError, Result};
use rdma_fabric::{Fabric, FabricError, Group};

/// Meet the others: an error of anybody is one of all.
pub(crate) async fn together<T>(group: &mut Group, mine: Result<T>) -> Result<T> {
    let failed = group.greatest(u64::from(mine.is_err())).await? > 0;
    match mine {
        Ok(_) if failed => Err(PrdmaError::ElsewhereFailed),
        mine => mine,
    }
}

/// The least value of all members.
pub(crate) async fn least(group: &mut Group, value: u64) -> Result<u64> {
    Ok(!group.greatest(!value).await?)
}

/// Both in one round: meet the others, and the least value of all. A block has no more bytes than `u64::MAX - 1`, which is told as `u64::MAX`.
pub(crate) async fn least_together(group: &mut Group, mine: Result<u64>) -> Result<u64> {
    // 0 is of who has failed.
    let told = mine.as_ref().map_or(0, |value| value.saturating_add(1));
    match least(group, told).await? {
        0 => Err(mine.err().unwrap_or(PrdmaError::ElsewhereFailed)),
        u64::MAX => Ok(u64::MAX),
        least => Ok(least - 1),
    }
}

/// As many queues as this member wishes to use, of which it can have so `few`; `needs` is what the wish takes in all.
#[derive(Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) most: u64,
    pub(crate) few: u64,
    pub(crate) needs: u64,
}

impl Wish {
    /// The fewest of all members; and, if that is not what the member with the fewest wished, what keeps this one from having more.
    pub(crate) async fn agree(self, group: &mut Group) -> Result<(u64, Option<PrdmaError>)> {
        let short = self.few < self.most;
        // Of two members with the same number the one that is short counts.
        let told = least(group, self.few.min(self.most) << 1 | u64::from(!short)).await?;
        let cut = told & 1 == 0;
        let limits = group.fabric().queue_limits();
        let why = match short {
            // Nobody was short, or this member has what it wished.
            _ if !cut || told >> 1 >= self.most => None,
            false => Some(PrdmaError::ElsewhereFailed),
            true if limits.engines == 0 => {
                Some(PrdmaError::Fabric(FabricError::Unsupported { feature: &"control queues" }))
            }
            true => {
                let (what, limit) = ("control queues that are free", u64::from(limits.free));
                Some(PrdmaError::Limit { what, value: self.needs, limit })
            }
        };
        Ok((told >> 1, why))
    }
}

/// What came of opening queues.
pub(crate) struct Outcome<T> {
    pub(crate) form: Form,
    /// Why it is not the form that was wished for.
    pub(crate) obstacle: Option<PrdmaError>,
    /// `None` for [`Form::Cpu`].
    pub(crate) opened: Option<T>,
}

/// Open what `form` needs, at all members or at none; where it can't be, what the next form needs, and so on. An `obstacle` may be known already.
pub(crate) async fn open_everywhere<T>(
    group: &mut Group,
    (mut form, mut obstacle): (Form, Option<PrdmaError>),
    next: impl Fn(Form) -> Form,
    open: impl Fn(Form) -> Result<T>,
) -> Result<Outcome<T>> {
    while form != Form::Cpu {
        let opened = open(form);
        if group.greatest(u64::from(opened.is_err())).await? == 0 {
            return Ok(Outcome { form, obstacle, opened: Some(opened?) });
        }
        // Closed everywhere before anybody opens again.
        let mine = opened.map_or_else(|error| error, |_| PrdmaError::ElsewhereFailed);
        // What happened here says more than that something happened elsewhere.
        if obstacle.as_ref().is_none_or(|known| *known == PrdmaError::ElsewhereFailed) {
            obstacle = Some(mine);
        }
        group.barrier().await?;
        form = next(form);
    }
    Ok(Outcome { form, obstacle, opened: None })
}

/// The most bytes of one transfer, whole words.
pub(crate) fn longest(fabric: &Fabric) -> u64 {
    let longest = match fabric.queue_limits().longest {
        0 => u32::MAX,
        longest => longest,
    };
    u64::from(longest & !7).max(8)
}
