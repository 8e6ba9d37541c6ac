//! Copies: executed directly if both places are mapped, otherwise as a get, a put or a third-party
//! copy.

use super::{DirectOp, Fabric, direct::same_length};
use crate::{
    op::Copy,
    provider::{Posted, Sink, Source},
};
use bytemuck::Pod;

impl<T: Pod> DirectOp for Copy<'_, T> {
    type Out = ();

    #[inline(always)]
    fn try_direct(self, fabric: &Fabric) -> Result<(), Self> {
        let to = self.to.place();
        if to.copy_from(self.from.place()).is_none() {
            return Err(self);
        }
        fabric.wake_if_parked(to);
        Ok(())
    }

    /// Posts a get if the destination is local memory, a put if only the source is local, and
    /// otherwise a third-party copy.
    fn post(&mut self, fabric: &Fabric) -> Posted {
        let (to, from, me) = (self.to.place(), self.from.place(), fabric.rank());
        if let Err(error) = same_length::<T>(self.from.len(), to) {
            return Posted::failed(error);
        }
        if to.rank() == me {
            fabric.provider().get(from, Sink::Place(to))
        } else if from.rank() == me {
            fabric.provider().put(to, Source::Place(from), None)
        } else {
            fabric.provider().copy(to, from)
        }
    }

    fn finish(self, _: u64) {}
}
