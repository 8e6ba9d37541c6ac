//! The least of the members' numbers.

use rdma_fabric::{Fabric, Group, GroupMemory, Result};

/// The least `value` of all members, at every member. Collective over the group; it takes O(log² n) steps and no table
/// of members.
///
/// `words` has a word at each member of `group` that nothing else uses meanwhile. It can be used again at once.
///
/// # Errors
/// As [`Group::broadcast`].
pub(crate) async fn least<F: Fabric>(group: &mut Group<F>, words: &GroupMemory<F>, value: u64) -> Result<u64> {
    let fabric = group.fabric().clone();
    let (n, me) = (group.len(), group.me());
    let mine = fabric.local_word::<u64>(words.at(fabric.rank(), 0)?)?;
    let mut least = value;
    fabric.store(&mine, least)?;
    let mut step = 1;
    while step < n {
        // Who is read in this step has its word from the one before.
        group.barrier().await?;
        if me.is_multiple_of(2 * step) && me + step < n {
            let theirs = fabric.remote_word::<u64>(words.at(group.rank(me + step)?, 0)?)?;
            least = least.min(fabric.get_word(&theirs).await?);
            fabric.store(&mine, least)?;
        }
        step *= 2;
    }
    group.broadcast(0, least).await
}
