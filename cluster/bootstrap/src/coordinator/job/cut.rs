//! A job whose hosts no longer reach each other continues on at most one side.

use super::{Job, Member, mutant::Mutant};
use std::collections::HashSet;

/// The code of the abort on the smaller side.
pub(super) const CUT: i32 = 1;

impl Job {
    /// Returns the reason for an abort if the hosts that this coordinator no longer reaches are the
    /// larger side of a partitioned job: its own side must not continue then. Of two equal sides,
    /// the one with rank 0's host is the larger.
    ///
    /// A host with a running rank that is connected belongs to this side. A host belongs to the
    /// other side if one of its ranks may run elsewhere: the rank was lost because of its silence,
    /// or changed to another coordinator, in this epoch. A rank that ended with its connection does
    /// not run anywhere.
    pub(super) fn smaller_side(&self) -> Option<String> {
        let runs_here = |member: &&Member| member.line.is_some() && member.end.is_none();
        let here: HashSet<u32> = self.members.iter().filter(runs_here).map(|member| member.node).collect();
        let away = self.members.iter().filter(|member| member.away && !member.told);
        let away: HashSet<u32> = away.map(|member| member.node).filter(|node| !here.contains(node)).collect();
        let tie = here.len() == away.len() && self.mutant() != Some(Mutant::AnyHalf);
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
