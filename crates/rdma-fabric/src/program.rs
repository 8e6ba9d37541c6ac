//! A program: what every rank runs, over whatever fabric it is given.

use crate::Fabric;
use core::future::Future;

/// What a program's rank ends with. Any error type converts with `?`.
pub type ProgramResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Code that all ranks of a job run.
///
/// A type and not a closure, because one closure can't be generic over the fabric; [`program!`](crate::program) writes
/// the type from an `async fn`. A program has no hidden state, clock or random source outside the fabric, so that a
/// simulated run can be replayed.
///
/// A rank whose program returns an error, or panics, is *lost* to its peers: their waits that depend
/// on it end with [`crate::FabricError::PeerLost`].
pub trait Program: Sync {
    /// What a rank produces.
    type Out: Send + 'static;

    /// Be one rank.
    fn run<F: Fabric>(&self, fabric: F) -> impl Future<Output = ProgramResult<Self::Out>>;
}

/// Code that ranks of a job over `F` run: what a launcher for one fabric needs.
///
/// Every [`Program`] is one. A program that asks for more than [`Fabric`], a barrier unit for instance, is one for those
/// fabrics only that have it; [`program!`](crate::program) writes it from `async fn name<F: BarrierFabric>(fabric: F)`.
pub trait ProgramOn<F: Fabric>: Sync {
    /// What a rank produces.
    type Out: Send + 'static;

    /// Be one rank.
    fn run_on(&self, fabric: F) -> impl Future<Output = ProgramResult<Self::Out>>;
}

impl<P: Program, F: Fabric> ProgramOn<F> for P {
    type Out = P::Out;

    fn run_on(&self, fabric: F) -> impl Future<Output = ProgramResult<Self::Out>> {
        self.run(fabric)
    }
}

impl<P: Program> Program for &P {
    type Out = P::Out;
    fn run<F: Fabric>(&self, fabric: F) -> impl Future<Output = ProgramResult<Self::Out>> {
        (**self).run(fabric)
    }
}

/// Turns an `async fn` over a fabric into a [`Program`], or into a [`ProgramOn`] if it asks for a bound.
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
            async fn run<$fabric_type: $crate::Fabric>(
                &self,
                $fabric: $same,
            ) -> $crate::ProgramResult<Self::Out> {
                $(let $arg = ::core::clone::Clone::clone(&self.$arg);)*
                $body
            }
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis async fn $name:ident<$fabric_type:ident: $bound:path>(
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

        impl<$fabric_type: $crate::Fabric + $bound> $crate::ProgramOn<$fabric_type> for $name {
            type Out = $out;
            async fn run_on(&self, $fabric: $same) -> $crate::ProgramResult<Self::Out> {
                $(let $arg = ::core::clone::Clone::clone(&self.$arg);)*
                $body
            }
        }
    };
}
