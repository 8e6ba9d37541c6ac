//! Agreements of the members by exchanging a few words.

use crate::{
    Form, Options, PrdmaError, Result,
    engine::{Demand, OpenQueues, assign_queues, widest},
};
use fabric_offload::ControlQueue;
use rdma_fabric::{Fabric, FabricError, Group};

/// Synchronizes with the other members: an error of any member becomes an error of all,
/// [`PrdmaError::ElsewhereFailed`] where this member had none. Collective.
pub(crate) async fn all_succeed<T>(group: &mut Group, mine: Result<T>) -> Result<T> {
    let failed = group.greatest(u64::from(mine.is_err())).await? > 0;
    match mine {
        Ok(_) if failed => Err(PrdmaError::ElsewhereFailed),
        mine => mine,
    }
}

/// Yields the minimum of the values of all members. Collective.
pub(crate) async fn least(group: &mut Group, value: u64) -> Result<u64> {
    Ok(!group.greatest(!value).await?)
}

/// Yields the minimum of the values of all members if all have one, in a single round. A block has
/// at most `u64::MAX - 1` bytes, which counts as `u64::MAX`. Collective.
pub(crate) async fn all_succeed_least(group: &mut Group, mine: Result<u64>) -> Result<u64> {
    // 0 represents a failure.
    let vote = mine.as_ref().map_or(0, |value| value.saturating_add(1));
    match least(group, vote).await? {
        0 => Err(mine.err().unwrap_or(PrdmaError::ElsewhereFailed)),
        u64::MAX => Ok(u64::MAX),
        least => Ok(least - 1),
    }
}

/// The number of queues that a member requests, and the number that it can have.
#[derive(Clone, Copy)]
pub(crate) struct QueueBudget {
    /// The number of queues wanted for its widest stage.
    pub(crate) wanted: u64,
    /// The number of these that it can have.
    pub(crate) available: u64,
    /// The total over all stages of the wanted queues.
    pub(crate) needs: u64,
}

impl QueueBudget {
    /// Yields the fewest queues that any member can have and, if the member with the fewest wanted
    /// more, the reason why this member cannot have more. Collective.
    pub(crate) async fn agree(self, group: &mut Group) -> Result<(u64, Option<PrdmaError>)> {
        let short = self.available < self.wanted;
        // Of two members with the same number, the one that is short takes precedence.
        let vote = least(group, self.available.min(self.wanted) << 1 | u64::from(!short)).await?;
        let cut = vote & 1 == 0;
        let limits = ControlQueue::limits(group.fabric());
        let why = match short {
            // No member was short, or this member has all that it wanted.
            _ if !cut || vote >> 1 >= self.wanted => None,
            false => Some(PrdmaError::ElsewhereFailed),
            true if limits.engines == 0 => {
                Some(PrdmaError::Fabric(FabricError::Unsupported { feature: &"control queues" }))
            }
            true => {
                let (what, limit) = ("control queues that are free", u64::from(limits.free));
                Some(PrdmaError::Limit { what, value: self.needs, limit })
            }
        };
        Ok((vote >> 1, why))
    }
}

/// The form for which all members could open queues.
pub(crate) struct Outcome<T> {
    pub(crate) form: Form,
    /// The reason why this is not the requested form.
    pub(crate) obstacle: Option<PrdmaError>,
    /// `None` for [`Form::Cpu`].
    pub(crate) opened: Option<T>,
}

/// Opens the queues for `form`, at all members or at none; where that is impossible, those for the
/// next form, and so on. An `obstacle` may be known already.
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
        // Closed everywhere before any member opens again.
        let mine = opened.map_or_else(|error| error, |_| PrdmaError::ElsewhereFailed);
        // An error of this member is more informative than the fact that another member failed.
        if obstacle.as_ref().is_none_or(|known| *known == PrdmaError::ElsewhereFailed) {
            obstacle = Some(mine);
        }
        group.barrier().await?;
        form = next(form);
    }
    Ok(Outcome { form, obstacle, opened: None })
}

/// Agrees on a form, and opens its queues: for each request, queues for channels with these
/// demands, whose data arrive in this many `partitions`. Collective.
pub(crate) async fn open(
    group: &mut Group,
    requests: &[Vec<Demand>],
    partitions: u64,
    options: &Options,
) -> Result<Outcome<Vec<OpenQueues>>> {
    let fabric = group.fabric().clone();
    // The number of queues needed if a stage has at most `most`.
    let needs = |most: u32| {
        let form = Form::with_most(most, u32::MAX);
        requests.iter().map(|demands| assign_queues(form, demands).queues.len() as u64).sum::<u64>()
    };
    let widest = requests.iter().map(|demands| widest(demands)).max().unwrap_or(0);
    let can = |afford: u32| {
        let affordable = |most: &u32| needs(*most) <= u64::from(afford);
        if affordable(&u32::MAX) { u32::MAX } else { (1..=afford.min(widest)).rev().find(affordable).unwrap_or(0) }
    };
    let most = options.form.most().min(can(options.budget));
    let available = most.min(can(ControlQueue::limits(&fabric).free.min(options.budget)));
    let budget = QueueBudget { wanted: most.into(), available: available.into(), needs: needs(most) };
    let (thriftiest, obstacle) = budget.agree(group).await?;
    let degree = group.greatest(u64::from(widest)).await? as u32;
    let next = |form: Form| form.thriftier(degree);
    open_everywhere(group, (Form::with_most(thriftiest as u32, degree), obstacle), next, |form| {
        requests.iter().map(|demands| OpenQueues::open(&fabric, form, demands, partitions)).collect()
    })
    .await
}

/// Returns the maximum number of bytes of one transfer, in whole words.
pub(crate) fn longest(fabric: &Fabric) -> u64 {
    let longest = match ControlQueue::limits(fabric).longest {
        0 => u32::MAX,
        longest => longest,
    };
    u64::from(longest & !7).max(8)
}
