//! A program: what every rank runs, over the fabric that it is given.

use crate::Fabric;
use core::future::Future;

/// What a program's rank ends with. Any error type converts with `?`.
pub type ProgramResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Code that all ranks of a job run: an `async fn(Fabric) -> ProgramResult<Out>`, or an `async` closure that captures what all ranks share.
///
/// It is given whatever a provider can offer; [`Fabric::caps`], [`Fabric::queue_limits`] and
/// [`Fabric::barrier_limits`] tell at run time what that is. A program has no hidden state, clock or
/// random source outside the fabric, so that a simulated run can be replayed.
///
/// It keeps its fabric to itself: a rank that shares it with threads of its own is run by what providers
/// have for such ranks (`run_with`, `launch_shared`), because a job whose programs all wait is
/// told that nobody will ever wake them.
///
/// A rank whose program returns an error, or panics, is *lost* to its peers: their waits that depend
/// on it end with [`crate::FabricError::PeerLost`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a program that ranks can run",
    label = "not an `async fn` of a fabric that yields a `ProgramResult`",
    note = "write `async fn name(fabric: Fabric) -> ProgramResult<()> {{ … Ok(()) }}`, or `async |fabric: Fabric| {{ … Ok(()) }}`"
)]
pub trait Program: Sync {
    /// What a rank produces.
    type Out: Send + 'static;

    /// Be one rank.
    fn run(&self, fabric: Fabric) -> impl Future<Output = ProgramResult<Self::Out>>;
}

impl<Out: Send + 'static, P: AsyncFn(Fabric) -> ProgramResult<Out> + Sync> Program for P {
    type Out = Out;

    fn run(&self, fabric: Fabric) -> impl Future<Output = ProgramResult<Out>> {
        self(fabric)
    }
}
