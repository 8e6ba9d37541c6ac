//! Requests and their life cycle.

use crate::{
    Aggregation, Form, PrdmaError, Result,
    buffer::ClaimSet,
    collective::Reduction,
    cost,
    engine::{self, Engine, Progress},
    init::{Blocks, Channel, Made, Staged},
    packing::Packing,
};
use core::fmt;
use rdma_fabric::join;

/// A persistent exchange: made once, then started and waited for repeatedly (MPI-4, section 6.13).
///
/// ```text
/// created -> inactive --start--> active --wait, or successful test--> inactive -> dropped
/// ```
/// Iteration `k` of a member corresponds to iteration `k` of its neighbours; requests of one
/// neighbourhood may be started in different orders on different members. A wait concerns only this
/// member's blocks: a neighbour may still be one iteration behind, or one ahead.
///
/// Dropping it frees its queues, even while it is active. Data that neighbours then send to it
/// fail, so drop it only after they have waited as well.
pub struct Request {
    made: Made,
    claims: ClaimSet,
    /// The part that is executed by the CPU.
    reduction: Option<Reduction>,
    state: State,
    /// The last iteration that was started, from 1.
    iteration: u64,
    /// Scratch space for folding.
    scratch: Vec<u8>,
    packing: Packing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Inactive,
    /// A start is in progress, or was dropped half-way.
    HalfStarted,
    Active,
    Broken(Box<PrdmaError>),
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({}, iteration {}, {:?})", self.made.form, self.iteration, self.state)
    }
}

impl Request {
    pub(crate) fn new(made: Made, channels: &[Channel], blocks: &Blocks) -> Self {
        Request::of(made, ClaimSet::of_channels(channels, blocks), None)
    }

    /// Makes a request; with a reduction, that of an allreduce.
    pub(crate) fn of(made: Made, claims: ClaimSet, reduction: Option<Reduction>) -> Self {
        let claims = claims.guarded(made.guarded.is_some());
        let (scratch, packing) = (Vec::new(), Packing::serial());
        Request { made, claims, state: State::Inactive, reduction, iteration: 0, scratch, packing }
    }

    /// Sets the threads that pack and unpack at this member; by default, the calling thread.
    pub fn pack_by(&mut self, packing: Packing) {
        self.packing = packing;
    }

    /// Returns the form in which iterations are executed; the same at all members.
    pub fn form(&self) -> Form {
        self.made.form
    }

    /// Returns whether blocks travel together; the same at all members. Returns
    /// [`Aggregation::None`] even where aggregation was requested, if no two blocks have the same
    /// route or there are too few queues for it.
    pub fn aggregation(&self) -> Aggregation {
        self.made.aggregation
    }

    /// Returns why the form has fewer queues than members requested: the first obstacle that
    /// prevented this member from obtaining the queues it requested. It is
    /// [`FabricError::Unsupported`](rdma_fabric::FabricError::Unsupported) if the fabric has no
    /// control queues, [`PrdmaError::Limit`] if too few are free or an iteration needs a deeper one
    /// than the network allows, or another error of the fabric; [`PrdmaError::ElsewhereFailed`] if
    /// only another member could not obtain its queues. `None` if options alone determined the
    /// form.
    pub fn obstacle(&self) -> Option<&PrdmaError> {
        self.made.obstacle.as_ref()
    }

    /// Returns whether the request has been started and not yet waited for.
    pub fn is_active(&self) -> bool {
        self.state == State::Active
    }

    /// Returns the number of iterations started so far.
    pub fn iterations(&self) -> u64 {
        self.iteration
    }

    /// Starts an iteration (`MPI_Start`). Does not wait for other members; it is a future only
    /// because posting takes CPU time.
    ///
    /// All earlier writes to the buffers are sent. Until the request has been waited for, the
    /// program must neither write the sent blocks nor access the received blocks:
    /// [`PrdmaError::InUse`].
    ///
    /// # Errors
    /// [`PrdmaError::Active`], [`PrdmaError::Broken`]; [`PrdmaError::InUse`] if there is a view
    /// that reads a block to be received, or writes any block: then nothing was started. An error
    /// of the fabric breaks the request, as does a start that is dropped half-way
    /// ([`PrdmaError::HalfStarted`]).
    pub async fn start(&mut self) -> Result<()> {
        Ok(self.started().await?)
    }

    async fn started(&mut self) -> engine::Result<()> {
        match &self.state {
            State::Inactive => {}
            State::Active => return Err(PrdmaError::Active { iteration: self.iteration }.into()),
            State::HalfStarted => return Err(PrdmaError::Broken(self.half_started().into()).into()),
            State::Broken(error) => return Err(PrdmaError::Broken(error.clone()).into()),
        }
        self.claims.begin().map_err(Box::new)?;
        self.iteration += 1;
        // Set until the start is complete: a start that is dropped here leaves commands behind that
        // a later start would take for its own.
        self.state = State::HalfStarted;
        match self.begin().await {
            Ok(()) => {
                self.state = State::Active;
                self.claims.activate();
                Ok(())
            }
            Err(error) => {
                let error = self.broken(*error);
                self.claims.end(true);
                Err(error)
            }
        }
    }

    async fn begin(&mut self) -> engine::Result<()> {
        self.made.fabric.charge(cost::START).await;
        self.made.connections.pack(&self.packing).map_err(Box::new)?;
        if let Some(reduction) = &self.reduction {
            reduction.begin(self.iteration).map_err(Box::new)?;
        }
        if self.copies() {
            Box::pin(self.copied(&self.made.connections.packs, Reduction::begun_bytes)).await;
        }
        self.made.engine.start(self.number()).await
    }

    /// Breaks the request; returns the most specific error.
    #[cold]
    fn broken(&mut self, error: PrdmaError) -> Box<PrdmaError> {
        let error = Box::new(self.made.connections.name_loss(&self.made.fabric, error));
        self.state = State::Broken(error.clone());
        error
    }

    /// Waits until the CPU of this member has issued all puts of the iteration, for which it waits
    /// until the receivers are ready: from then on, the blocks leave without further calls.
    /// Returns immediately if session queues put them, or if the request is inactive. May be
    /// dropped and called again.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub async fn issue(&mut self) -> Result<()> {
        if self.is_complete()? {
            return Ok(());
        }
        match self.made.engine.issue().await {
            Ok(()) => Ok(()),
            Err(error) => Ok(self.end(Err(error))?),
        }
    }

    /// Waits for the end of the iteration (`MPI_Wait`): all blocks to be received have arrived
    /// (acquire), and sent blocks may be modified again. Returns immediately if the request is
    /// inactive. May be dropped and called again.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::PeerLost`] if a neighbour is lost,
    /// [`rdma_fabric::FabricError::PeersLeft`] if all neighbours have ended, and other errors of
    /// the fabric; each of them breaks the request. [`PrdmaError::Broken`] if it already was.
    pub async fn wait(&mut self) -> Result<()> {
        if self.is_complete()? {
            return Ok(());
        }
        let waited = self.made.engine.wait(self.number()).await;
        Ok(self.end_in_time(waited).await?)
    }

    /// Checks whether the iteration has ended, and ends it if so (`MPI_Test`). Returns `true` if
    /// the request is now inactive.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub async fn test(&mut self) -> Result<bool> {
        if self.is_complete()? {
            return Ok(true);
        }
        match self.made.engine.test(self.number()).await {
            Ok(Progress::Pending) => return Ok(false),
            Ok(Progress::Done) => self.end_in_time(Ok(())).await?,
            Err(error) => self.end(Err(error))?,
        }
        Ok(true)
    }

    /// Returns the number that words receive in this iteration.
    fn number(&self) -> u64 {
        self.made.guarded.unwrap_or(0) + self.iteration
    }

    /// Returns whether there is nothing to wait for.
    fn is_complete(&self) -> Result<bool> {
        match &self.state {
            State::Inactive => Ok(true),
            State::Active => Ok(false),
            State::HalfStarted => Err(PrdmaError::Broken(Box::new(self.half_started()))),
            State::Broken(error) => Err(PrdmaError::Broken(error.clone())),
        }
    }

    fn half_started(&self) -> PrdmaError {
        PrdmaError::HalfStarted { iteration: self.iteration }
    }

    /// Ends the iteration, which has ended even if the caller does not wait for the time of its
    /// copies to pass.
    async fn end_in_time(&mut self, ended: engine::Result<()>) -> engine::Result<()> {
        let ended = self.end(ended);
        if ended.is_ok() && self.copies() {
            Box::pin(self.copied(&self.made.connections.unpacks, Reduction::finished_bytes)).await;
        }
        ended
    }

    /// Returns whether the CPU copies any data.
    fn copies(&self) -> bool {
        let connections = &self.made.connections;
        !connections.packs.is_empty() || !connections.unpacks.is_empty() || self.reduction.is_some()
    }

    /// Charges the time of copying. Boxed, so that a request that copies nothing has small futures.
    async fn copied(&self, blocks: &[Staged], of_reduction: impl Fn(&Reduction) -> usize) {
        Staged::charge(&self.made.fabric, &self.packing, blocks).await;
        if let Some(reduction) = &self.reduction {
            self.made.fabric.charge_bytes(cost::COPY, of_reduction(reduction)).await;
        }
    }

    fn end(&mut self, ended: engine::Result<()>) -> engine::Result<()> {
        let ended = match ended.and_then(|()| self.unpack()) {
            Ok(()) => {
                self.state = State::Inactive;
                Ok(())
            }
            Err(error) => Err(self.broken(*error)),
        };
        self.claims.end(ended.is_err());
        ended
    }

    /// Moves the received data to their destinations.
    fn unpack(&mut self) -> engine::Result<()> {
        self.made.connections.unpack(&self.packing).map_err(Box::new)?;
        if let Some(reduction) = &self.reduction {
            reduction.finish(self.iteration, &mut self.scratch).map_err(Box::new)?;
        }
        Ok(())
    }
}

/// Starts several requests (`MPI_Startall`).
///
/// # Errors
/// The error of the first request that cannot be started; those before it are active.
pub async fn start_all(requests: &mut [Request]) -> Result<()> {
    for request in requests {
        request.start().await?;
    }
    Ok(())
}

/// Waits for several requests together (`MPI_Waitall`): none delays another.
///
/// # Errors
/// The first error in order; all requests have ended or are broken.
pub async fn wait_all(requests: &mut [Request]) -> Result<()> {
    join::join_all(requests.iter_mut().map(Request::wait)).await.into_iter().collect()
}
