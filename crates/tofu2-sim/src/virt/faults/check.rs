//! Whether faults fit a job.

use super::{BadFault, FaultKind, Faults};

/// What a job has of everything that a fault can name.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Limits {
    pub(in super::super) ranks: u32,
    pub(in super::super) nodes: u32,
    /// Of each node.
    pub(in super::super) engines: u32,
    /// Of each engine.
    pub(in super::super) queues: u32,
}

impl Limits {
    /// What `kind` names and the job hasn't: its name, its number, and how many there are.
    fn missing(&self, kind: FaultKind) -> Option<(&'static str, u32, u32)> {
        let (rank, node) = (|rank| ("rank", rank, self.ranks), |node| ("node", node, self.nodes));
        let named = match kind {
            FaultKind::NodeStop { node: number } => vec![node(number)],
            FaultKind::LinkSlow { from, to, .. } | FaultKind::LinkDown { from, to, .. } => vec![node(from), node(to)],
            FaultKind::QueueStall { rank: number, engine, number: queue, .. } => {
                vec![rank(number), ("engine", engine.into(), self.engines), ("queue", queue.into(), self.queues)]
            }
            FaultKind::MrqOverflow { rank: number }
            | FaultKind::LateCompletion { rank: number, .. }
            | FaultKind::LateCredit { rank: number, .. }
            | FaultKind::PartialPut { rank: number } => vec![rank(number)],
        };
        named.into_iter().find(|(_, number, there)| number >= there)
    }
}

impl Faults {
    /// Whether the job has all that they name.
    ///
    /// # Errors
    /// The first that names something else.
    pub(in super::super) fn check(&self, limits: Limits) -> Result<(), BadFault> {
        for (fault, &number) in self.0.iter().zip(&self.1) {
            if let Some((what, named, there)) = limits.missing(fault.kind) {
                let problem = match there {
                    1 => format!("there is no {what} {named}, only {what} 0"),
                    there => format!("there is no {what} {named}, only 0 to {}", there.saturating_sub(1)),
                };
                return Err(BadFault { number, line: fault.to_string(), problem });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_has_not_is_named_with_its_line() {
        let limits = Limits { ranks: 8, nodes: 4, engines: 4, queues: 12 };
        for (line, problem) in [
            ("5 node-stop node=4", "there is no node 4, only 0 to 3"),
            ("5 link-down from=0 to=9 lasts=1", "there is no node 9, only 0 to 3"),
            ("5 link-slow from=4 to=0 extra=1 lasts=1", "there is no node 4, only 0 to 3"),
            ("5 mrq-overflow rank=8", "there is no rank 8, only 0 to 7"),
            ("5 late-completion rank=8 by=1", "there is no rank 8, only 0 to 7"),
            ("5 late-credit rank=8 by=1", "there is no rank 8, only 0 to 7"),
            ("5 partial-put rank=4000000000", "there is no rank 4000000000, only 0 to 7"),
            ("5 queue-stall rank=8 engine=0 number=0 lasts=1", "there is no rank 8, only 0 to 7"),
            ("5 queue-stall rank=0 engine=4 number=0 lasts=1", "there is no engine 4, only 0 to 3"),
            ("5 queue-stall rank=0 engine=0 number=12 lasts=1", "there is no queue 12, only 0 to 11"),
        ] {
            // In front of it, one that is later and fits.
            let faults: Faults = format!("9 node-stop node=3\n\n{line}\n").parse().unwrap();
            let error = faults.check(limits).unwrap_err();
            assert_eq!((error.number, error.problem.as_str()), (Some(3), problem), "{line}");
            assert_eq!(error.line.replacen(".000", "", 1), line);
        }
        assert_eq!(Faults::drawn(1, &super::super::Odds::new(8, 2)).check(limits), Ok(()));
        let alone = Limits { ranks: 1, nodes: 1, ..limits };
        let error = "1 partial-put rank=1".parse::<Faults>().unwrap().check(alone).unwrap_err();
        assert_eq!(error.problem, "there is no rank 1, only rank 0");
    }
}
