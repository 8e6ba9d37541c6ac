//! The CPUs of ranks whose launcher does not bind them.

use crate::processes::placement::{self, Bind, affinity};
use rdma_fabric::Result;

/// Restricts this thread, and the threads and processes that it starts, to the CPUs of rank `nth`
/// of `ranks` ranks of this machine: those that
/// [`Placement::of_ranks`](crate::Placement::of_ranks) assigns to it, out of the CPUs that the
/// thread may use.
///
/// # Errors
/// [`FabricError::Unsupported`](rdma_fabric::FabricError::Unsupported) for [`Bind::Numa`] if the
/// system reports no NUMA nodes; [`FabricError::System`](rdma_fabric::FabricError::System).
pub fn bind_this_thread(bind: Bind, nth: usize, ranks: usize) -> Result<()> {
    match placement::of_job(bind, ranks)?.get(nth) {
        Some(cpus) => affinity::bind_this_thread(cpus),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_the_cpu_of_its_turn() {
        let order = crate::Placement::of_this_thread().unwrap().order();
        for nth in 0..3 {
            let bound = std::thread::spawn(move || {
                bind_this_thread(Bind::None, nth, 3).unwrap();
                let all = affinity::allowed().unwrap().len();
                bind_this_thread(Bind::Core, nth, 3).unwrap();
                (all, affinity::allowed().unwrap())
            });
            assert_eq!(bound.join().unwrap(), (order.len(), vec![order[nth % order.len()]]), "{nth}");
        }
    }
}
