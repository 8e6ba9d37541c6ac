//! The state that this process keeps between calls.

use crate::{
    allocations::Allocations,
    calls::awaited::WaitingFor as _,
    contexts::Contexts,
    error::{CallError, Result},
    matrix::{Lent, Start},
    origins::Origins,
    streams,
};
use blacs::{Blacs, Grid, Options, Precision, Shape, Threads};
use onesided::Backend;
use onesided::block_on_short;
use rdma_fabric::{
    Fabric, FabricError, LocalSpan, Rank, join,
    provider::{Turn, TurnCell},
};
use std::{env, sync::LazyLock};

/// The environment variable that names the backend of a process without a launcher.
const FABRIC_VARIABLE: &str = "ONESIDED_FABRIC";

/// The library's state in this process.
#[derive(Debug, Default)]
pub(crate) struct Library {
    /// The rank of this process, once it is known.
    fabric: Option<Fabric>,
    /// Exists from the first call that needs it until `blacs_exit(0)`.
    blacs: Option<Blacs>,
    /// Exists whenever `blacs` does, and afterwards.
    origins: Option<Origins>,
    /// Whether `blacs_exit(0)` was called.
    ended: bool,
    pub(crate) contexts: Contexts,
    pub(crate) allocations: Allocations,
}

/// Locks the library, once no call of another thread uses it.
#[inline]
pub(crate) fn enter() -> Turn<'static, Library> {
    static LIBRARY: LazyLock<TurnCell<Library>> = LazyLock::new(|| TurnCell::of_any_thread(Library::default()));
    LIBRARY.enter().expect("any thread may use it")
}

impl Library {
    /// Creates the library of a process that is this rank.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn of(fabric: Fabric) -> Self {
        Library { fabric: Some(fabric), ..Library::default() }
    }

    /// Returns the rank of this process, if it is known.
    pub(crate) fn rank(&self) -> Option<&Fabric> {
        self.fabric.as_ref()
    }

    /// Returns the rank of this process; the first call determines it.
    pub(crate) fn attached(&mut self) -> Result<&Fabric> {
        if self.ended {
            return Err(CallError::Ended);
        }
        match &mut self.fabric {
            Some(fabric) => Ok(fabric),
            none => {
                let fabric = none.insert(backend()?.attach()?);
                if fabric.ranks() > 1 {
                    streams::keep_lines();
                }
                Ok(fabric)
            }
        }
    }

    /// Initializes BLACS on the first call; the initialization is collective over the job.
    pub(crate) fn begun(&mut self) -> Result<&mut Blacs> {
        if self.blacs.is_none() {
            let fabric = self.attached()?.clone();
            let begun = async {
                let origins = Origins::new(&fabric).await?;
                let options = Options::default().threads(Threads::Many);
                Ok::<_, CallError>((origins, Blacs::begin_with(&fabric, options).await?))
            };
            let (origins, blacs) = block_on_short(begun).waiting_for(|| "the other processes to begin".to_owned())?;
            (self.origins, self.blacs) = (Some(origins), Some(blacs));
        }
        self.blacs.as_mut().ok_or(CallError::Ended)
    }

    /// Returns the rank whose loss made `lost` give up; `lost` itself if it did not give up because of
    /// another rank.
    pub(crate) fn origin(&self, lost: Rank) -> Rank {
        self.fabric.as_ref().zip(self.origins.as_ref()).map_or(lost, |(fabric, origins)| origins.of(fabric, lost))
    }

    /// Publishes that this process gives up because of the loss of `origin`.
    pub(crate) fn gives_up_for(&self, origin: Rank) {
        if let Some((fabric, origins)) = self.fabric.as_ref().zip(self.origins.as_ref()) {
            block_on_short(origins.publish(fabric, origin));
        }
    }

    /// Returns the library and the contexts, to create a grid from both.
    pub(crate) fn parts(&mut self) -> Result<(&mut Blacs, &mut Contexts)> {
        self.begun()?;
        let Library { blacs, contexts, .. } = self;
        Ok((blacs.as_mut().ok_or(CallError::Ended)?, contexts))
    }

    /// Exits all contexts. The grids are exited concurrently, because their members may not have
    /// created them in the same order.
    pub(crate) fn exit_contexts(&mut self) -> Result<()> {
        let ended = block_on_short(join::join_all(self.contexts.take_all().into_iter().map(Grid::exit)));
        ended.into_iter().collect::<Result<(), _>>().map_err(CallError::from)
    }

    /// Shuts down: waits until all processes call this, and leaves the job.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.exit_contexts()?;
        if let Some(blacs) = self.blacs.take() {
            block_on_short(blacs.exit())?;
        }
        (self.fabric, self.origins, self.ended) = (None, None, true);
        Ok(())
    }

    /// Returns the caller's matrix that starts at `start`.
    #[inline]
    pub(crate) fn lent<S: Start>(&self, start: S, shape: &Shape, precision: Precision) -> Lent<S> {
        let span = self.registered(start.address(), shape, precision);
        Lent::new(start, span)
    }

    /// Returns the memory of a matrix that is one contiguous piece of fabric memory.
    #[inline]
    fn registered(&self, start: usize, shape: &Shape, precision: Precision) -> Option<LocalSpan<u8>> {
        let bytes = shape.elements().checked_mul(precision.bytes())?;
        if bytes < ZERO_COPY || !shape.is_one_run() {
            return None;
        }
        self.allocations.span(start, bytes)
    }
}

/// Smaller matrices, in bytes, are copied, which takes less time than a lookup of their memory.
const ZERO_COPY: usize = 1 << 10;

/// Returns the backend for this process. Ranks started by a launcher use shared memory.
fn backend() -> Result<Backend, FabricError> {
    match env::var(FABRIC_VARIABLE) {
        Ok(name) if env::var_os(onesided::sim::shm::JOB_VARIABLE).is_none() => {
            name.parse().map_err(|wrong| FabricError::setting(FABRIC_VARIABLE, format!("`{name}`: {wrong}")))
        }
        _ => Ok(Backend::Shm),
    }
}
