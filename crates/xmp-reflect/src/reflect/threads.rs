//! Threads that pack and unpack faces together.

use crate::{Result, XmpError};
use core::fmt;
use prdma_offload::{Packer, Packing};
use std::{sync::Arc, thread};

/// Threads of this process among which packing and unpacking are divided: the calling thread, and
/// others that are started once and sleep in between.
///
/// They access the memory of the rank, so they are for providers in wall-clock time. In virtual
/// time, where ranks do not leave their thread, use [`Packing::modelled`].
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// use xmp_reflect::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template, Threads, Transport, Widths};
///
/// /// A torus whose faces in the second dimension are packed by two threads.
/// async fn torus(fabric: Fabric) -> ProgramResult<()> {
///     let group = Group::world(&fabric).await?;
///     let nodes = Nodes::new(&[1, group.len()], Order::LastFastest)?;
///     let template = Template::new(&[0..64, 0..64], &[Format::Block, Format::Block], &nodes)?;
///     let mapping = template.align(&[0..64, 0..64], &[Align::with(0), Align::with(1)])?.shadow(&[Shadow::of(1); 2])?;
///     let packing = Threads::new(2)?.packing_above(256);
///     let mut set = NodeSet::new(group, nodes)?.with_transport(Transport::Packed).with_packing(packing);
///     let array: Array<f64> = set.array(&mapping)?;
///     array.fill(|index| (index[0] * 64 + index[1]) as f64)?;
///     let reflect = Reflect::widths(&[Widths::of(1).periodic(); 2]);
///     set.reflect(&array, &reflect).await?;
///     let first = array.part().block(1).expect("a block").start;
///     assert_eq!(array.get(&[5, first - 1])?, (5 * 64 + (first + 63) % 64) as f64);
///     assert!(set.explain(&array, &reflect).await?.sends.iter().any(|line| line.threads == 2));
///     set.barrier().await?;
///     Ok(())
/// }
/// # checks::jobs::threads(2).run(&torus).expect("threads");
/// ```
pub struct Threads {
    /// All but the calling thread; `None` if there are no others.
    others: Option<rayon::ThreadPool>,
    threads: usize,
}

impl Threads {
    /// The size of a face, in bytes, above which [`Threads::packing`] divides it: 1 MiB.
    ///
    /// Measured by `cargo measure transports` (its last table) on two cores of an AMD EPYC: where
    /// both are free, two threads update faces of 2 MiB and more in two thirds of the time of one.
    /// Faces of 1 MiB and less are in the cache of one core, and starting the other one costs more
    /// than it saves.
    pub const ABOVE: u64 = 1 << 20;

    /// Starts threads, so that there are this many with the calling one; 0 counts as 1.
    ///
    /// # Errors
    /// [`XmpError::Threads`] if the system refuses.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = threads.max(1);
        let name = |number| format!("xmp-pack-{number}");
        let others = (threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(name).build())
            .transpose()
            .map_err(|error| XmpError::Threads { threads, why: error.to_string() })?;
        Ok(Threads { others, threads })
    }

    /// Starts as many threads as there are processors that the process may use for each of the
    /// ranks that share them.
    ///
    /// # Errors
    /// As [`Threads::new`].
    pub fn of_machine(ranks: usize) -> Result<Self> {
        Threads::new(thread::available_parallelism().map_or(1, usize::from) / ranks.max(1))
    }

    /// Returns packing by these threads of faces of more than [`Threads::ABOVE`] bytes.
    pub fn packing(self) -> Packing {
        self.packing_above(Threads::ABOVE)
    }

    /// Returns packing by these threads of faces of more than this many bytes.
    pub fn packing_above(self, bytes: u64) -> Packing {
        Packing::by(Arc::new(self), bytes)
    }
}

impl Packer for Threads {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, shares: usize, share: &(dyn Fn(usize) + Sync)) {
        let Some(others) = &self.others else { return (0..shares).for_each(share) };
        others.in_place_scope(|scope| {
            (1..shares).for_each(|number| scope.spawn(move |_| share(number)));
            if shares > 0 {
                share(0);
            }
        });
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.threads)
    }
}
