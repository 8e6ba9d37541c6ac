//! The origin of a result: command line, seed, jobs.

use crate::{quantity::count, simulate::JobRecord};

/// The origin of a table or report.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The command that reproduces it.
    pub command: String,
    /// Seed of every job.
    pub seed: u64,
    /// A description of the reductions compared to the papers, if there are any.
    pub quick: Option<String>,
    /// All jobs, in the order of their execution.
    pub jobs: Vec<JobRecord>,
}

impl Provenance {
    /// Returns the number of events of all jobs.
    pub fn events(&self) -> u64 {
        self.jobs.iter().map(|job| job.cost.events).sum()
    }

    /// Returns the CPU seconds of all jobs.
    pub fn cpu_seconds(&self) -> f64 {
        self.jobs.iter().map(|job| job.cost.cpu_seconds).sum()
    }

    /// Returns one hash over the trace hashes of all jobs, in order.
    pub fn trace_hash(&self) -> u64 {
        joint_hash(&self.jobs)
    }

    /// Returns one line: jobs, events, CPU time, seed.
    pub fn line(&self) -> String {
        format!(
            "{} jobs, {} events, {:.1} CPU s, seed {}, trace {:016x}",
            self.jobs.len(),
            count(self.events()),
            self.cpu_seconds(),
            self.seed,
            self.trace_hash()
        )
    }

    /// Returns the first halves of the jobs' trace hashes, in lines.
    pub fn hashes(&self) -> String {
        let hashes: Vec<String> = self.jobs.iter().map(|job| short(job.trace_hash)).collect();
        hashes.chunks(11).map(|line| format!("  {}\n", line.join(" "))).collect()
    }

    /// Returns the warning that precedes the results of a quick run.
    pub fn warning(&self) -> Option<String> {
        let less = self.quick.as_ref()?;
        Some(format!("QUICK RUN: {less}. It shows that everything works, not how well it agrees."))
    }
}

/// Returns one hash over the trace hashes of jobs, in order (FNV-1a over their bytes, least significant
/// first).
pub(crate) fn joint_hash(jobs: &[JobRecord]) -> u64 {
    let bytes = jobs.iter().flat_map(|job| job.trace_hash.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the first half of a trace hash: enough to see that two differ.
pub(crate) fn short(hash: u64) -> String {
    format!("{:08x}", hash >> 32)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::simulate::Cost;

    pub(crate) fn example() -> Provenance {
        let job = |label: &str, trace_hash| JobRecord {
            label: label.to_owned(),
            cost: Cost {
                ranks: 4,
                events: 16_000,
                cpu_seconds: 0.05,
                bytes_per_rank: 300,
                resident_bytes_per_rank: None,
            },
            trace_hash,
            atomics: Some(8),
            gets: Some(0),
        };
        Provenance {
            command: "onesided reproduce --seed 7".into(),
            seed: 7,
            quick: None,
            jobs: vec![job("first", 0x1234_5678_9abc_def0), job("second", 1)],
        }
    }

    #[test]
    fn the_joint_hash_depends_on_every_job_and_their_order() {
        let a = example();
        let mut b = example();
        b.jobs.swap(0, 1);
        let mut c = example();
        c.jobs[1].trace_hash = 2;
        assert_ne!(a.trace_hash(), b.trace_hash());
        assert_ne!(a.trace_hash(), c.trace_hash());
        assert_eq!(a.trace_hash(), example().trace_hash());
    }

    #[test]
    fn the_line_names_what_is_needed_to_repeat_it() {
        let line = example().line();
        assert!(line.starts_with("2 jobs, 32,000 events, 0.1 CPU s, seed 7, trace "), "{line}");
        assert_eq!(example().hashes(), "  12345678 00000000\n");
    }
}
