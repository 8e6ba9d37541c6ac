//! The library on one rank.

use crate::{
    Communicator, Options, Result,
    collective::{Hardware, Memories},
    spool::Siblings,
};
use core::future::Future;
use rdma_fabric::{Fabric, Group, GroupMemory, provider::Boxed};

/// The library on one rank: its communicators and their matching areas.
///
/// ```
/// use fmpl::{Fmpl, Op};
/// use rdma_fabric::{Fabric, ProgramResult};
///
/// /// Even and odd ranks add up their numbers, each in a communicator of their own.
/// async fn sums(fabric: Fabric) -> ProgramResult<()> {
///     let mut fmpl = Fmpl::init(&fabric).await?;
///     let me = fmpl.world().me();
///     let half = fmpl.create(Some(me as u64 % 2), me as u64).await?.ok_or("a colour was given")?;
///     let sum = half.buffer::<i32>(1)?;
///     fabric.write(&sum, &[me as i32])?;
///     half.allreduce(&sum, Op::Sum).await?;
///     let mut total = [0];
///     fabric.read(&sum, &mut total)?;
///     assert_eq!(total, [if me % 2 == 0 { 2 } else { 4 }]);
///     Ok(fmpl.finalize().await?)
/// }
/// # checks::documented::run(4, &sums);
/// ```
#[derive(Debug)]
pub struct Fmpl {
    options: Options,
    world: Communicator,
    siblings: Siblings,
}

impl Fmpl {
    /// Initializes with the default options. Collective over the job.
    ///
    /// # Errors
    /// As [`Fmpl::init_with`].
    pub fn init(fabric: &Fabric) -> impl Future<Output = Result<Self>> {
        Self::init_with(fabric, Options::default())
    }

    /// Initializes (`fmpl_init`, `fmpl_sendbuf_set`). Collective over the job.
    ///
    /// # Errors
    /// [`FmplError::Option`](crate::FmplError::Option); [`FmplError::Fabric`](crate::FmplError::Fabric)
    /// if memory runs out, if options differ or if a rank is lost.
    pub fn init_with(fabric: &Fabric, options: Options) -> impl Future<Output = Result<Self>> {
        Self::begin(fabric, options, None)
    }

    /// Initializes with the world's matching areas in the beginning of `memory`, which the program
    /// supplies (`fmpl_init`): the same part of each rank's region, at a multiple of 64 bytes, and at
    /// least [`Options::area_bytes`] long. Its contents are overwritten. Communicators that are
    /// [created](Fmpl::create) later, and all other buffers, have memory of the library's own.
    /// Collective over the job.
    ///
    /// The program neither reads nor writes the areas before [`Fmpl::finalize`] has completed; then it
    /// may use the memory again. After an error, or if a rank drops the library without finalizing,
    /// other ranks may still write to the memory of this one. The error of a call to a member that
    /// has done so is [`FmplError::MemberLeft`](crate::FmplError::MemberLeft) only if that member has
    /// also dropped the memory.
    ///
    /// ```
    /// use fmpl::{Fmpl, Options};
    /// use rdma_fabric::{Fabric, GroupMemory, ProgramResult};
    ///
    /// async fn program(fabric: Fabric) -> ProgramResult<()> {
    ///     let options = Options::default().indices(4);
    ///     let memory = GroupMemory::symmetric(&fabric, 4096 + options.area_bytes(&fabric)?).await?;
    ///     let areas = memory.part(4096, memory.len() - 4096)?;
    ///     let fmpl = Fmpl::init_in(&fabric, options, &areas).await?;
    ///     fmpl.world().barrier().await?;
    ///     Ok(fmpl.finalize().await?)
    /// }
    /// # checks::documented::run(3, &program);
    /// ```
    ///
    /// # Errors
    /// As [`Fmpl::init_with`]; [`AreasTooSmall`](crate::FmplError::AreasTooSmall),
    /// [`AreasMisaligned`](crate::FmplError::AreasMisaligned),
    /// [`AreasOfOtherRanks`](crate::FmplError::AreasOfOtherRanks) and, at the other ranks or if parts
    /// differ, [`AreasDiffer`](crate::FmplError::AreasDiffer): then no areas are written.
    pub fn init_in(
        fabric: &Fabric,
        options: Options,
        memory: &GroupMemory,
    ) -> impl Future<Output = Result<Self>> + use<> {
        Self::begin(fabric, options, Some(memory.clone()))
    }

    fn begin(fabric: &Fabric, options: Options, memory: Option<GroupMemory>) -> Boxed<'static, Result<Self>> {
        let fabric = fabric.clone();
        Box::pin(async move {
            let options = options.checked()?;
            let memories = Hardware::memory(&fabric, &options, Some(fabric.ranks())).await?;
            let siblings = Siblings::default();
            let world = Group::world(&fabric).await?;
            let world = Communicator::new(world, &options, memory, memories, &siblings).await?;
            Ok(Fmpl { options, world, siblings })
        })
    }

    /// Returns the communicator of all ranks (`FMPL_COMM_WORLD`).
    pub fn world(&self) -> &Communicator {
        &self.world
    }

    /// Creates a communicator of all ranks that pass the same `colour` (`fmpl_comm_create`); they
    /// are numbered by `order`, then by rank. A rank that passes `None` does not join any.
    /// Collective over the job.
    ///
    /// # Errors
    /// As [`Fmpl::init_with`].
    pub fn create(&mut self, colour: Option<u64>, order: u64) -> impl Future<Output = Result<Option<Communicator>>> {
        let created: Boxed<'_, Result<Option<Communicator>>> = Box::pin(async move {
            let memories = Hardware::memory(self.world.fabric(), &self.options, None).await?;
            let Some(group) = self.world.group().split(colour, order).await? else { return Ok(None) };
            Ok(Some(Communicator::new(group, &self.options, None, memories, &self.siblings).await?))
        });
        created
    }

    /// Creates communicators as [`Fmpl::create`] does, from the members of another one; only these
    /// take part. The collectives of the result cannot use multicasts.
    ///
    /// # Errors
    /// As [`Fmpl::init_with`].
    pub fn split<'a>(
        &'a self,
        parent: &'a mut Communicator,
        colour: Option<u64>,
        order: u64,
    ) -> impl Future<Output = Result<Option<Communicator>>> + use<'a> {
        let created: Boxed<'a, Result<Option<Communicator>>> = Box::pin(async move {
            let Some(group) = parent.group().split(colour, order).await? else { return Ok(None) };
            Ok(Some(Communicator::new(group, &self.options, None, Memories::default(), &self.siblings).await?))
        });
        created
    }

    /// Shuts down (`fmpl_finalize`): waits until all messages that this rank has spooled in the
    /// world have been received, and until all ranks have called this function. Collective over the
    /// job.
    ///
    /// # Errors
    /// As [`Communicator::finish`].
    pub fn finalize(self) -> impl Future<Output = Result<()>> {
        self.world.finish()
    }
}
