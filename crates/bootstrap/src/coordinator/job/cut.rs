//! A job whose hosts no longer reach each other goes on at one side at most.

use super::Job;
use std::collections::BTreeSet;

/// The code of the abort at the smaller side.
pub(super) const CUT: i32 = 1;

impl Job {
    /// Returns what to say if the hosts that have just become silent are the larger side of a cut
    /// job: the coordinator's side must not go on then. Of two equal sides that of rank 0's host is
    /// the larger.
    ///
    /// Only hosts of which no rank is here count as silent, and of these only those with a rank that
    /// was lost in silence in this epoch: what ended with its connection was reachable.
    pub(super) fn smaller_side(&self) -> Option<String> {
        let here: BTreeSet<u32> =
            self.members.iter().filter(|member| member.is_here()).map(|member| member.node).collect();
        let silent = self.members.iter().filter(|member| member.silent && !member.told);
        let silent: BTreeSet<u32> = silent.map(|member| member.node).filter(|node| !here.contains(node)).collect();
        let smaller = here.len() < silent.len() || (here.len() == silent.len() && silent.contains(&0));
        (smaller && !here.is_empty()).then(|| {
            format!(
                "the job is cut: {} of its hosts became silent, {} are left here, which must not go on alone",
                silent.len(),
                here.len()
            )
        })
    }
}
