//! A program: what every rank runs, over whatever fabric it is given.

use crate::FullFabric;
use core::future::Future;

/// What a program's rank ends with. Any error type converts with `?`.
pub type ProgramResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Code that all ranks of a job run.
///
/// It is given whatever a provider can offer; [`crate::Caps`],
/// [`crate::SessionFabric::queue_limits`] and [`crate::barrier::BarrierFabric::barrier_limits`] tell at run time what that is.
///
/// A type and not a closure, because one closure can't be generic over the fabric; [`program!`](crate::program) writes
/// the type from an `async fn`. A program has no hidden state, clock or random source outside the fabric, so that a
/// simulated run can be replayed.
///
/// A rank whose program returns an error, or panics, is *lost* to its peers: their waits that depend
/// on it end with [`crate::FabricError::PeerLost`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a program that ranks can run",
    label = "neither an `async fn` nor a closure is one",
    note = "write `program! {{ async fn name<F>(fabric: F) -> () {{ … }} }}` (`onesided::program!`): that makes a struct of it, whose value is the program, as in `launch(name {{}})`"
)]
pub trait Program: Sync {
    /// What a rank produces.
    type Out: Send + 'static;

    /// Be one rank. Implementations may ask for less, as `F: Fabric`.
    fn run<F: FullFabric>(&self, fabric: F) -> impl Future<Output = ProgramResult<Self::Out>>;
}

impl<P: Program> Program for &P {
    type Out = P::Out;
    fn run<F: FullFabric>(&self, fabric: F) -> impl Future<Output = ProgramResult<Self::Out>> {
        (**self).run(fabric)
    }
}

/// Turns an `async fn` over a fabric into a [`Program`].
///
/// The function's name becomes a struct; parameters after the fabric become its public fields, cloned for
/// each rank.
///
/// ```
/// rdma_fabric::program! {
///     /// Every rank tells how many there are.
///     pub async fn count<F>(fabric: F, factor: usize) -> usize {
///         Ok(fabric.ranks() * factor)
///     }
/// }
/// let _program = count { factor: 2 };
/// ```
#[macro_export]
macro_rules! program {
    (
        $(#[$meta:meta])*
        $vis:vis async fn $name:ident<$fabric_type:ident>(
            $fabric:ident: $same:ident $(, $arg:ident: $arg_type:ty)* $(,)?
        ) -> $out:ty $body:block
    ) => {
        $(#[$meta])*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Debug)]
        $vis struct $name {
            $(
                #[allow(missing_docs)]
                $vis $arg: $arg_type,
            )*
        }

        impl $crate::Program for $name {
            type Out = $out;
            async fn run<$fabric_type: $crate::FullFabric>(
                &self,
                $fabric: $same,
            ) -> $crate::ProgramResult<Self::Out> {
                $(let $arg = ::core::clone::Clone::clone(&self.$arg);)*
                $body
            }
        }
    };
}
