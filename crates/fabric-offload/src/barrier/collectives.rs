//! Barriers and reductions of a group: built once, used many times.

use super::{
    GateValue, GraphShape, Progress, ReduceOp, Values, Wave,
    channel::{Channel, Form},
};
use core::{fmt, marker::PhantomData, ops::Deref};
use rdma_fabric::{Group, Result};

/// Ordered by the number of steps, for any number of members: recursive doubling, and the ring only
/// if a unit has too few gates for log₂ n steps.
const BY_SIZE: [Form; 2] = [Form::All(GraphShape::RecursiveDoubling), Form::All(GraphShape::Ring)];

/// A barrier in the barrier units of a group's members.
///
/// Persistent: build it once, then [`start`](Barrier::start) and [`wait`](Barrier::wait) any number
/// of times. Between the two the rank may compute: its CPU is not needed. Dropping it frees its
/// gates; members that are still in a barrier with it then receive [`super::GateError::Freed`].
///
/// It does not make puts visible: flush them before [`start`](Barrier::start).
///
/// ```
/// use fabric_offload::barrier::Barrier;
/// use rdma_fabric::{Fabric, Group, ProgramResult};
/// async fn steps(fabric: Fabric) -> ProgramResult<()> {
///     let mut world = Group::world(&fabric).await?;
///     let mut barrier = Barrier::new(&mut world).await?;
///     for _ in 0..10 {
///         barrier.start()?;
///         // … compute …
///         barrier.wait().await?;
///     }
///     Ok(())
/// }
/// # tofu2_sim::shm::Threads::new(3).run(&steps).unwrap();
/// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 3).run(&steps).unwrap();
/// ```
pub struct Barrier(Channel);

impl Barrier {
    /// Allocates and connects the gates, in the shape that suits the group's size. Collective.
    ///
    /// # Errors
    /// [`super::GateError::NoGates`] at all members if any of them has too few gates, and as
    /// [`Group::barrier`].
    pub async fn new(group: &mut Group) -> Result<Self> {
        Channel::build(group, &BY_SIZE).await.map(Barrier)
    }

    /// Allocates and connects the gates in a given shape. Collective.
    ///
    /// # Errors
    /// As [`Barrier::new`]; [`super::GateError::Disagreement`] if members differ.
    pub async fn with_shape(group: &mut Group, shape: GraphShape) -> Result<Self> {
        Channel::build(group, &[Form::All(shape)]).await.map(Barrier)
    }

    /// Enters the barrier. Never blocks.
    ///
    /// # Errors
    /// [`super::GateError::Outstanding`] if the previous barrier isn't complete.
    pub fn start(&mut self) -> Result<()> {
        self.0.start(Values::BARRIER)
    }

    /// Returns whether every member has entered; if so, the next barrier may be started. Never
    /// blocks.
    ///
    /// # Errors
    /// As [`Barrier::wait`].
    pub fn test(&mut self) -> Result<bool> {
        Ok(self.0.test()? != Progress::NotCompleted)
    }

    /// Waits until every member has entered.
    ///
    /// # Errors
    /// [`super::GateError::Idle`] if the barrier was not started, [`FabricError::PeerLost`](rdma_fabric::FabricError::PeerLost)
    /// if a member died, otherwise as [`GateUnit::poll`](super::GateUnit::poll).
    pub async fn wait(&mut self) -> Result<()> {
        self.0.wait().await.map(drop)
    }
}

/// The values that a reduction yields.
#[derive(Clone, Copy, PartialEq)]
pub struct Reduced<T> {
    /// Values after `len` are zero.
    values: [T; <u64 as GateValue>::MOST],
    len: usize,
}

impl<T: GateValue> Reduced<T> {
    fn new(values: &Values) -> Self {
        let mut all = [T::default(); <u64 as GateValue>::MOST];
        all.iter_mut().enumerate().for_each(|(at, value)| *value = values.get(at).unwrap_or_default());
        Reduced { values: all, len: values.len() }
    }
}

impl<T> Deref for Reduced<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values[..self.len]
    }
}

impl<T: fmt::Debug> fmt::Debug for Reduced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A reduction of a group's values by its members' barrier units. Every member receives the result.
///
/// `T` is `u64`, at most 6 values, or `f64`, at most 3. Persistent, like [`Barrier`].
pub struct Reduction<T> {
    channel: Channel,
    /// This member's values, in a group of one.
    own: Option<Values>,
    of: PhantomData<fn() -> T>,
}

impl<T: GateValue> Reduction<T> {
    /// Allocates and connects the gates, in the shape that suits the group's size. Collective.
    ///
    /// # Errors
    /// As [`Barrier::new`].
    pub async fn new(group: &mut Group) -> Result<Self> {
        let channel = Channel::build(group, &BY_SIZE).await?;
        Ok(Reduction { channel, own: None, of: PhantomData })
    }

    /// Allocates and connects the gates in a given shape. Collective.
    ///
    /// # Errors
    /// As [`Barrier::with_shape`].
    pub async fn with_shape(group: &mut Group, shape: GraphShape) -> Result<Self> {
        let channel = Channel::build(group, &[Form::All(shape)]).await?;
        Ok(Reduction { channel, own: None, of: PhantomData })
    }

    /// Contributes this member's values. All members contribute the same number of values, for the
    /// same operation. Never blocks.
    ///
    /// # Errors
    /// As [`Values::new`]; [`super::GateError::Outstanding`] if the previous reduction isn't
    /// complete.
    pub fn start(&mut self, op: ReduceOp, values: &[T]) -> Result<()> {
        let values = Values::new(op, values)?;
        self.channel.start(values)?;
        self.own = self.channel.alone.then_some(values);
        Ok(())
    }

    /// Returns the result, if it has arrived; the next reduction may then be started. Never blocks.
    ///
    /// # Errors
    /// As [`Reduction::wait`].
    pub fn test(&mut self) -> Result<Option<Reduced<T>>> {
        match self.channel.test()? {
            Progress::NotCompleted => Ok(None),
            Progress::Completed(values) => self.result(values).map(Some),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// [`super::GateError::Idle`] if nothing was started, [`super::GateError::Mismatch`] if members
    /// passed different operations or numbers of values, [`FabricError::PeerLost`](rdma_fabric::FabricError::PeerLost) if a
    /// member died, otherwise as [`GateUnit::poll`](super::GateUnit::poll).
    pub async fn wait(&mut self) -> Result<Reduced<T>> {
        let values = self.channel.wait().await?;
        self.result(values)
    }

    fn result(&mut self, values: Option<Values>) -> Result<Reduced<T>> {
        let values = match (values, self.own.take()) {
            (Some(values), _) => values,
            (None, Some(own)) => Wave::enter(&own).leave()?,
            (None, None) => Values::BARRIER,
        };
        Ok(Reduced::new(&values))
    }
}

/// A reduction along a ring whose result goes only to its owner.
///
/// The other members are done as soon as their values have been sent; they are at most two rounds
/// ahead of the member that takes the values. Otherwise like [`Reduction`].
pub struct ReductionTo<T> {
    inner: Reduction<T>,
    owns: bool,
}

impl<T: GateValue> ReductionTo<T> {
    /// Allocates and connects the gates; member `owner` receives the results. Collective.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`](rdma_fabric::FabricError::NoSuchRank) if `owner` is not a member, otherwise as
    /// [`Barrier::with_shape`].
    pub async fn new(group: &mut Group, owner: usize) -> Result<Self> {
        group.rank(owner)?;
        let channel = Channel::build(group, &[Form::To(owner)]).await?;
        Ok(ReductionTo { inner: Reduction { channel, own: None, of: PhantomData }, owns: group.me() == owner })
    }

    /// Contributes this member's values. All members contribute the same number of values, for the
    /// same operation. Never blocks.
    ///
    /// # Errors
    /// As [`Reduction::start`].
    pub fn start(&mut self, op: ReduceOp, values: &[T]) -> Result<()> {
        self.inner.start(op, values)
    }

    /// Returns `Some` if the operation is complete, with the result inside if this member is the
    /// owner. Never blocks.
    ///
    /// # Errors
    /// As [`Reduction::wait`].
    pub fn test(&mut self) -> Result<Option<Option<Reduced<T>>>> {
        let over = self.inner.test()?;
        Ok(over.map(|reduced| self.owns.then_some(reduced)))
    }

    /// Waits until the values have been sent; the owner waits for the result.
    ///
    /// # Errors
    /// As [`Reduction::wait`].
    pub async fn wait(&mut self) -> Result<Option<Reduced<T>>> {
        let reduced = self.inner.wait().await?;
        Ok(self.owns.then_some(reduced))
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Barrier({:?})", self.0)
    }
}

impl<T> fmt::Debug for Reduction<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reduction({:?})", self.channel)
    }
}

impl<T> fmt::Debug for ReductionTo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReductionTo({:?})", self.inner.channel)
    }
}
