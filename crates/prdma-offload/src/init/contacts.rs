//! What members publish of their channels, and how each finds its neighbours' records.

use super::Channel;
use crate::{PrdmaError, Result, publish::publish};
use bytemuck::Pod;
use rdma_fabric::{Group, GroupMemory};

/// How a member names a channel to the neighbour: its own number, the channel's number, and 1 if the member only receives along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Name {
    member: u64,
    index: u64,
    receives: u64,
}

impl Name {
    /// As the member that has the channel calls it.
    pub(crate) fn of(channel: &Channel) -> Self {
        let receives = u64::from(channel.out.is_none());
        Name { member: channel.member as u64, index: u64::from(channel.index), receives }
    }

    /// What the neighbour calls it.
    pub(super) fn other(channel: &Channel, me: usize) -> Self {
        let receives = u64::from(channel.inn.is_none());
        Name { member: me as u64, index: u64::from(channel.index), receives }
    }
}

/// Publish `mine`, and find the neighbour's record of each channel of the own ones, which go to `members`.
pub(crate) async fn contacts<T: Pod + Unpin>(
    group: &mut Group,
    headers: &GroupMemory,
    channels: &[&Channel],
    mine: Result<Vec<T>>,
    name: impl Fn(&T) -> Name,
) -> Result<Vec<T>> {
    let (members, by) = neighbours(channels);
    let none = Vec::new();
    let tables = publish(group, headers, mine.as_ref().unwrap_or(&none), &members).await?;
    mine?;
    let me = group.me();
    let find = |(channel, at): (&&Channel, usize)| {
        let record = tables[at].iter().copied().find(|record| name(record) == Name::other(channel, me));
        record.ok_or(PrdmaError::Damaged { member: channel.member })
    };
    channels.iter().zip(by).map(find).collect()
}

/// The members that channels go to, each once; and by channel, which of them.
pub(super) fn neighbours(channels: &[&Channel]) -> (Vec<usize>, Vec<usize>) {
    let mut members: Vec<usize> = channels.iter().map(|channel| channel.member).collect();
    members.sort_unstable();
    members.dedup();
    let by = channels.iter().map(|channel| members.partition_point(|member| *member < channel.member)).collect();
    (members, by)
}
