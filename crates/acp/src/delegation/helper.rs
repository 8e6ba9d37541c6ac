//! The delegation helper, which only serves other ranks, on its own core.

use super::{
    AREA_QUEUE, AREA_STOP,
    queues::{Listening, Name},
    serve,
};
use crate::{AcpError, Result, directory::Resolver};
use core::fmt;
use rdma_fabric::{
    Deps, Fabric, LocalWord, Rank, Region, RemoteAddr,
    join::{Either, race},
};
use std::sync::{Arc, Mutex, PoisonError};

/// A helper that serves other ranks. Dropping this ends it.
pub(crate) struct Serving {
    fabric: Fabric,
    words: Words,
    /// The reason why the helper has no control queue.
    refused: Arc<Mutex<Option<AcpError>>>,
}

/// The words through which the helper and the task that started it wait for each other.
#[derive(Debug)]
struct Words {
    /// Not 0 if the helper has to end.
    stop: LocalWord<u64>,
    /// The name of the helper's control queue, 0 if there is none, or [`REFUSED`].
    queue: LocalWord<u64>,
}

const REFUSED: u64 = u64::MAX;

impl Words {
    fn new(fabric: &Fabric, area: RemoteAddr) -> Result<Self> {
        let word = |at| fabric.local_word::<u64>(RemoteAddr { offset: area.offset + at, ..area });
        Ok(Words { stop: word(AREA_STOP)?, queue: word(AREA_QUEUE)? })
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Serving({:?})", self.words.queue)
    }
}

impl Serving {
    /// Starts the delegation helper of rank `me`. If `listens` is set, it also serves requests that
    /// arrive at its own control queue.
    pub(crate) fn start(memory: &Resolver, world: &Arc<Region>, me: Rank, listens: bool) -> Result<Self> {
        let fabric = memory.fabric().clone();
        let area = memory.world_at(me, memory.layout().delegation())?;
        let words = Words::new(&fabric, area)?;
        let refused = Arc::<Mutex<Option<AcpError>>>::default();
        let (memory, world, told) = (memory.clone(), world.clone(), refused.clone());
        fabric.helper("acp delegation", move |fabric| async move {
            let (memory, words) = (memory.fresh(&fabric), Words::new(&fabric, area)?);
            let slots = memory.layout().slots();
            let opened = listens.then(|| Listening::open(&fabric, &world, area, slots)).transpose();
            let listening = match opened {
                Ok(listening) => listening,
                Err(error) => {
                    *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return Ok(fabric.store(&words.queue, REFUSED)?);
                }
            };
            if let Some(listening) = &listening {
                fabric.store(&words.queue, listening.name().to_bits())?;
            }
            let stopped = fabric.wait_until(&words.stop, Deps::One(fabric.rank()), |stop| stop != 0);
            match race(stopped, serve(memory, me, listening)).await {
                Either::First(stopped) => drop(stopped?),
                Either::Second(served) => served?,
            }
            // The queue has been closed.
            Ok(fabric.store(&words.queue, 0)?)
        })?;
        Ok(Serving { fabric, words, refused })
    }

    /// Waits until the helper listens on its queue; returns the queue's name.
    ///
    /// # Errors
    /// The reason why there is no queue.
    pub(super) async fn listens(&self) -> Result<Name> {
        let me = Deps::One(self.fabric.rank());
        let name = self.fabric.wait_until(&self.words.queue, me, |name| name != 0).await?;
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        refused.map_or_else(|| Ok(Name::from_bits(name).expect("the helper wrote a name")), Err)
    }

    /// Ends the helper, and waits until it has closed its queue.
    pub(crate) async fn end(self) -> Result<()> {
        self.fabric.store(&self.words.stop, 1)?;
        let me = Deps::One(self.fabric.rank());
        self.fabric.wait_until(&self.words.queue, me, |name| name == 0).await?;
        Ok(())
    }
}

impl Drop for Serving {
    /// If the store fails, the memory no longer exists, and neither does the helper.
    fn drop(&mut self) {
        let _ = self.fabric.store(&self.words.stop, 1);
    }
}
