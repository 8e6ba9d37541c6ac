//! Everything that the contracts know.

use crate::{SessionFabric, barrier::BarrierFabric};

/// What a program is launched on: a fabric with everything that the contracts know, be it that it says at run time what it
/// has not. Protocols ask for less: [`crate::Fabric`], [`SessionFabric`] or [`BarrierFabric`].
pub trait FullFabric: SessionFabric + BarrierFabric {}

impl<F: SessionFabric + BarrierFabric> FullFabric for F {}
