//! A job whose hosts no longer reach each other goes on at one side at most.

use super::{Job, Member, mistake::Mistake};
use std::collections::BTreeSet;

/// The code of the abort at the smaller side.
pub(super) const CUT: i32 = 1;

impl Job {
    /// Returns what to say if the hosts that this coordinator does not hear any more are the larger side
    /// of a cut job: its own side must not go on then. Of two equal sides that of rank 0's host is the
    /// larger.
    ///
    /// Hosts with a rank that runs and is here are on its side; on the other those with one that may
    /// run elsewhere, which was lost in silence, or went elsewhere, in this epoch. What ended with its
    /// connection runs nowhere.
    pub(super) fn smaller_side(&self) -> Option<String> {
        let runs_here = |member: &&Member| member.line.is_some() && member.end.is_none();
        let here: BTreeSet<u32> = self.members.iter().filter(runs_here).map(|member| member.node).collect();
        let away = self.members.iter().filter(|member| member.away && !member.told);
        let away: BTreeSet<u32> = away.map(|member| member.node).filter(|node| !here.contains(node)).collect();
        let tie = here.len() == away.len() && self.mistake() != Some(Mistake::AnyHalf);
        let smaller = here.len() < away.len() || (tie && away.contains(&0));
        (smaller && self.members.iter().any(Member::is_here)).then(|| {
            format!(
                "the job is cut: {} of its hosts became silent, {} are left here, which must not go on alone",
                away.len(),
                here.len()
            )
        })
    }
}
