//! The library on one rank.

use crate::{
    Communicator, Options, Result,
    collective::{Hardware, Memories},
    spool::Siblings,
};
use core::future::Future;
use rdma_fabric::{Fabric, Group, provider::Boxed};

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
        let fabric = fabric.clone();
        let begun: Boxed<'static, Result<Self>> = Box::pin(async move {
            let options = options.checked()?;
            let memories = Hardware::memory(&fabric, &options, Some(fabric.ranks())).await?;
            let siblings = Siblings::default();
            let world = Communicator::new(Group::world(&fabric).await?, &options, memories, &siblings).await?;
            Ok(Fmpl { options, world, siblings })
        });
        begun
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
            Ok(Some(Communicator::new(group, &self.options, memories, &self.siblings).await?))
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
            Ok(Some(Communicator::new(group, &self.options, Memories::default(), &self.siblings).await?))
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
