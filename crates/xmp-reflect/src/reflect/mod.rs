//! Reflects: updates of shadows.
//!
//! A node may overwrite a neighbour's shadow only when the neighbour no longer reads it. In the
//! paper, all nodes synchronise for that, before and after; here the neighbour sends READY for the
//! cells that it needs, and END follows the cells ([`prdma_offload`]). No node waits for any other
//! node, and a node may be one step ahead of another.
//!
//! Corners are exchanged directly with the nodes that own them, so no order is needed, and a
//! reflect may be in progress while the inner cells are computed.
//!
//! A [`Schedule`] is created once, by all nodes together, and kept with its array until the array
//! is dropped.

mod explain;
mod limits;
mod request;
mod schedule;
#[cfg(feature = "threads")]
mod threads;
mod transport;
mod windows;

pub use explain::{Explanation, Line};
pub use limits::RdmaLimits;
pub use request::Reflect;
pub use schedule::{Reflected, Schedule};
#[cfg(feature = "threads")]
pub use threads::Threads;
pub use transport::Transport;

use crate::{
    Array, Element, NodeSet, Result, XmpError,
    array::{Kept, Slot},
};
use std::sync::Arc;

impl NodeSet {
    /// Updates shadows of an array, and waits for completion (`reflect`): afterwards they hold the
    /// values that their owners had when they called it. Global.
    ///
    /// The first call with these arguments creates a schedule, which takes several messages to and
    /// from all nodes; later ones involve neighbours only. A call that is dropped before it
    /// completes is continued by the next one with the same arguments.
    ///
    /// # Errors
    /// [`XmpError::Plan`], [`XmpError::OtherNodes`], [`XmpError::Disagreement`],
    /// [`XmpError::ElsewhereFailed`], [`XmpError::Transport`], [`XmpError::NotWorld`], all of them
    /// before anything was moved, and as long as there is no schedule; [`XmpError::InFlight`];
    /// [`prdma_offload::PrdmaError::InUse`] if there is a view that the reflect would change;
    /// errors of the fabric, including the loss of a neighbour.
    pub async fn reflect<T: Element>(&mut self, array: &Array<T>, reflect: &Reflect) -> Result<()> {
        let mut schedule = self.schedule_of(array, reflect).await?;
        schedule.run().await
    }

    /// Starts an update of shadows (`reflect … async(id)`), and adds it to the table of
    /// communications in progress. Until [`NodeSet::wait_async`] has waited for `id`, the shadows
    /// concerned can't be read, and cells that are sent can't be changed:
    /// [`prdma_offload::PrdmaError::InUse`]. Several communications may have one id. Global.
    ///
    /// # Errors
    /// As [`NodeSet::reflect`]; [`XmpError::AsyncId`] for an id outside the set's [`RdmaLimits`].
    pub async fn reflect_async<T: Element>(&mut self, array: &Array<T>, reflect: &Reflect, id: u64) -> Result<()> {
        self.admits_id(self.transport_of(reflect), id)?;
        let mut schedule = self.schedule_of(array, reflect).await?;
        schedule.start().await?;
        let (kept, request, schedule) = schedule.in_flight(id);
        self.table.enter(id, schedule, kept, request);
        Ok(())
    }

    /// Adds the cells of shadows to the elements of which they are copies (`reduce_shadow`), the
    /// reverse of a reflect. The shadows are not changed. `add` is called with an element and a
    /// cell, in the same order each time. Calls with different functions share a schedule; a call
    /// that was dropped before it completed is completed with the function of the call that
    /// continues it. Global.
    ///
    /// # Errors
    /// As [`NodeSet::reflect`].
    pub async fn reduce_shadow<T: Element>(
        &mut self,
        array: &Array<T>,
        reflect: &Reflect,
        add: fn(T, T) -> T,
    ) -> Result<()> {
        self.reflect_with(array, reflect, add).await?.run().await
    }

    /// Starts a [`NodeSet::reduce_shadow`]; [`NodeSet::wait_async`] adds the cells that have
    /// arrived.
    ///
    /// # Errors
    /// As [`NodeSet::reflect_async`].
    pub async fn reduce_shadow_async<T: Element>(
        &mut self,
        array: &Array<T>,
        reflect: &Reflect,
        add: fn(T, T) -> T,
        id: u64,
    ) -> Result<()> {
        self.admits_id(self.transport_of(reflect), id)?;
        let mut schedule = self.reflect_with(array, reflect, add).await?;
        schedule.start().await?;
        let (kept, request, schedule) = schedule.in_flight(id);
        self.table.enter(id, schedule, kept, request);
        Ok(())
    }

    /// Returns a description of the pieces that a reflect of an array with these arguments moves.
    /// Creates the schedule if there is none yet. Global.
    ///
    /// # Errors
    /// As [`NodeSet::reflect`].
    pub async fn explain<T: Element>(&mut self, array: &Array<T>, reflect: &Reflect) -> Result<Explanation> {
        Ok(self.schedule_of(array, reflect).await?.explain())
    }

    /// Returns the transport that executes a reflect.
    fn transport_of(&self, reflect: &Reflect) -> Transport {
        reflect.transport().unwrap_or(self.transport).chosen(self.fabric()).transport
    }

    async fn schedule_of<T: Element>(&mut self, array: &Array<T>, reflect: &Reflect) -> Result<Taken> {
        if let Some(taken) = Taken::find(&array.kept, reflect)? {
            return Ok(taken);
        }
        let schedule = Schedule::new(self, &[array], reflect).await?;
        Ok(Taken::enter(&array.kept, reflect, schedule))
    }

    async fn reflect_with<T: Element>(
        &mut self,
        array: &Array<T>,
        reflect: &Reflect,
        add: fn(T, T) -> T,
    ) -> Result<Taken> {
        let reduce = reflect.clone().reducing();
        if let Some(mut taken) = Taken::find(&array.kept, &reduce)? {
            taken.add_by(add);
            return Ok(taken);
        }
        let schedule = Schedule::reducing(self, array, &reduce, add).await?;
        Ok(Taken::enter(&array.kept, &reduce, schedule))
    }
}

/// A schedule that was taken from its array, to which it returns when this is dropped.
struct Taken {
    kept: Arc<Kept>,
    /// The place among the array's schedules.
    at: usize,
    schedule: Option<Box<Schedule>>,
}

impl Taken {
    /// Takes the schedule of an array for these arguments, if there is one.
    ///
    /// # Errors
    /// [`XmpError::InFlight`].
    fn find(kept: &Arc<Kept>, reflect: &Reflect) -> Result<Option<Self>> {
        let mut all = kept.all();
        for (other, slot) in &*all {
            if let Slot::InFlight(id) = slot
                && other.meets(reflect)
            {
                return Err(XmpError::InFlight { id: *id });
            }
        }
        let Some(at) = all.iter().position(|(known, _)| known == reflect) else { return Ok(None) };
        let slot = core::mem::replace(&mut all[at].1, Slot::InFlight(0));
        let Slot::Here(schedule) = slot else { return Err(XmpError::InFlight { id: 0 }) };
        Ok(Some(Taken { kept: kept.clone(), at, schedule: Some(schedule) }))
    }

    /// Adds a schedule to those of an array, and takes it.
    fn enter(kept: &Arc<Kept>, reflect: &Reflect, schedule: Schedule) -> Self {
        let mut all = kept.all();
        all.push((reflect.clone(), Slot::InFlight(0)));
        Taken { kept: kept.clone(), at: all.len() - 1, schedule: Some(Box::new(schedule)) }
    }

    /// Moves the schedule to the table of communications in progress.
    fn in_flight(mut self, id: u64) -> (Arc<Kept>, usize, Box<Schedule>) {
        self.kept.all()[self.at].1 = Slot::InFlight(id);
        (self.kept.clone(), self.at, self.schedule.take().expect("taken once"))
    }
}

impl core::ops::Deref for Taken {
    type Target = Schedule;

    fn deref(&self) -> &Schedule {
        self.schedule.as_ref().expect("given away only by consuming")
    }
}

impl core::ops::DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Schedule {
        self.schedule.as_mut().expect("given away only by consuming")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(schedule) = self.schedule.take() {
            self.kept.all()[self.at].1 = Slot::Here(schedule);
        }
    }
}
