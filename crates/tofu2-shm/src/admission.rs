//! Checks, before a job's ranks take any resources, whether there is room for them.
//!
//! Needs are lower bounds: memory that ranks allocate later is checked when they do
//! ([`super::memory`]), and the other needs of their programs are unknown.

#![deny(clippy::arithmetic_side_effects)]

use super::job::Plan;
#[cfg(target_os = "linux")]
use super::memory::layout;
use crate::JobError;
use tofu2_job::available::{self, Left};

/// Minimum bytes of memory of a process: its tables in the kernel, its stack, the pages of its
/// libraries that it writes.
#[cfg(target_os = "linux")]
const PROCESS: u64 = 256 << 10;
/// Minimum bytes of memory of a rank that is a process.
#[cfg(target_os = "linux")]
const RANK_PROCESS: u64 = layout::RESERVED as u64 + PROCESS;
/// Minimum bytes of memory of a rank's thread, including the rank's own structures.
const THREAD: u64 = 32 << 10;
/// Bytes of address space of a thread's stack.
#[cfg(all(target_os = "linux", not(miri)))]
const STACK: u64 = 2 << 20;
/// Descriptors of a launcher for each rank.
#[cfg(all(target_os = "linux", not(miri)))]
const DESCRIPTORS: u64 = 2;
/// Mappings for each thread: its stack, and the page that guards it.
#[cfg(all(target_os = "linux", not(miri)))]
const MAPPINGS: u64 = 2;

/// The amount that `ranks` ranks need of one resource.
struct Need {
    ranks: usize,
    what: &'static str,
    needed: u64,
}

impl Need {
    fn of(ranks: usize, what: &'static str, each: u64, together: u64) -> Self {
        Need { ranks, what, needed: each.saturating_mul(ranks as u64).saturating_add(together) }
    }

    /// # Errors
    /// [`JobError::TooManyRanks`].
    fn within(self, left: impl Into<Option<Left>>) -> Result<(), JobError> {
        let Need { ranks, what, needed } = self;
        let Some(left) = left.into() else { return Ok(()) };
        available::check(needed, left).map_err(|Left { amount: available, limit }| JobError::TooManyRanks {
            ranks,
            what,
            needed,
            available,
            limit,
        })
    }
}

/// Checks that there is room for ranks that are processes.
///
/// # Errors
/// [`JobError::TooManyRanks`].
#[cfg(target_os = "linux")]
pub(crate) fn of_processes(plan: &Plan) -> Result<(), JobError> {
    let (ranks, control) = (plan.ranks, plan.control_bytes() as u64);
    Need::of(ranks, "bytes of memory", RANK_PROCESS, control).within(available::memory())?;
    of_file(ranks, plan.segment_at(ranks) as u64)?;
    #[cfg(not(miri))]
    {
        let system = available::System::here();
        Need::of(ranks, "processes", 1, 0).within(system.processes())?;
        Need::of(ranks, "file descriptors of the launcher", DESCRIPTORS, 0).within(system.descriptors())?;
    }
    Ok(())
}

/// Checks that there is room for ranks that are processes of a job on several nodes: the ones that
/// the launcher starts here, with `threads` threads and `descriptors` descriptors of the launcher
/// for each. [`of_part`] checks their shared resources.
///
/// # Errors
/// [`JobError::TooManyRanks`].
#[cfg(target_os = "linux")]
pub(crate) fn of_part_processes(ranks: usize, threads: u64, descriptors: u64) -> Result<(), JobError> {
    let each = threads.saturating_mul(THREAD).saturating_add(RANK_PROCESS);
    Need::of(ranks, "bytes of memory", each, 0).within(available::memory())?;
    #[cfg(not(miri))]
    {
        let system = available::System::here();
        Need::of(ranks, "processes and threads", threads.saturating_add(1), 0).within(system.processes())?;
        Need::of(ranks, "file descriptors of the launcher", descriptors, 0).within(system.descriptors())?;
    }
    let _ = descriptors;
    Ok(())
}

/// Checks that there is room for the ranks of one node of a job on several nodes, which are
/// processes that already run.
///
/// # Errors
/// [`JobError::TooManyRanks`].
#[cfg(target_os = "linux")]
pub(crate) fn of_part(plan: &Plan, local: usize, file_bytes: u64) -> Result<(), JobError> {
    let (each, control) = ((layout::RESERVED + layout::GATE_MIRRORS) as u64, plan.control_bytes() as u64);
    Need::of(local, "bytes of memory", each, control).within(available::memory())?;
    of_file(local, file_bytes)
}

/// Checks that the limits allow a file of shared memory of this length, and its mapping.
#[cfg(target_os = "linux")]
fn of_file(ranks: usize, bytes: u64) -> Result<(), JobError> {
    #[cfg(not(miri))]
    {
        let system = available::System::here();
        Need { ranks, what: "bytes of shared memory in one file", needed: bytes }.within(system.file_size())?;
        Need { ranks, what: "bytes of address space", needed: bytes }.within(system.address_space())?;
    }
    let _ = (ranks, bytes);
    Ok(())
}

/// Checks that there is room for ranks that are threads of this process.
///
/// # Errors
/// [`JobError::TooManyRanks`].
pub(crate) fn of_threads(plan: &Plan) -> Result<(), JobError> {
    let (ranks, control) = (plan.ranks, plan.control_bytes() as u64);
    Need::of(ranks, "bytes of memory", THREAD, control).within(available::private_memory())?;
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let system = available::System::here();
        let each = (plan.segment_bytes() as u64).saturating_add(STACK);
        Need::of(ranks, "bytes of address space", each, control).within(system.address_space())?;
        Need::of(ranks, "threads", 1, 0).within(system.processes())?;
        Need::of(ranks, "mappings", MAPPINGS, 0).within(system.mappings())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_number_need_limit_and_what_to_do() {
        let left = |amount| Left { amount, limit: "memory.max of the control group /job".into() };
        let need = || Need::of(1000, "bytes of memory", 500, 24);
        assert!(need().within(left(500_024)).is_ok() && need().within(None).is_ok());
        let error = need().within(left(500_023)).unwrap_err().to_string();
        assert_eq!(
            error,
            "1000 ranks need 500024 bytes of memory, and memory.max of the control group /job leaves 500023: start \
             fewer, with smaller segments, or simulate them (the program's option `--fabric virt`)"
        );
        assert!(Need::of(usize::MAX, "threads", u64::MAX, 1).within(left(u64::MAX - 1)).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn any_number_of_threads_is_compared() {
        for threads in [u64::MAX, u64::MAX - 1, u64::MAX >> 14] {
            let refused = of_part_processes(1, threads, 2);
            assert!(matches!(refused, Err(JobError::TooManyRanks { .. })), "{threads} threads: {refused:?}");
        }
    }

    /// A job that once took all memory of a machine. Only the check runs.
    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn more_ranks_than_a_machine_holds_are_refused() {
        let plan = |ranks, heap_bytes| Plan { ranks, ranks_per_node: ranks, heap_bytes, start_ns: 0 };
        for plan in [plan(3_000_000, 256 << 20), plan(16_000_000, 4096)] {
            let plan = plan.checked().unwrap();
            for refused in [
                of_processes(&plan),
                of_threads(&plan),
                of_part(&plan, plan.ranks, 1),
                of_part_processes(plan.ranks, 2, 3),
            ] {
                assert!(matches!(refused, Err(JobError::TooManyRanks { .. })), "{refused:?}");
            }
        }
        for ranks in [1, 16] {
            let plan = plan(ranks, 256 << 20).checked().unwrap();
            of_processes(&plan).unwrap();
            of_threads(&plan).unwrap();
            of_part(&plan, ranks, 1).unwrap();
            of_part_processes(ranks, 2, 3).unwrap();
        }
    }
}
