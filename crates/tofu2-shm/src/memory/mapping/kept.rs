//! Parts of a mapping that are kept together with it.

#![allow(unsafe_code)]

use super::Mapping;
use core::{ops::Deref, ptr::NonNull};
use std::sync::Arc;

/// A part of a mapping, which stays mapped as long as this exists.
#[derive(Debug)]
pub(crate) struct Kept<T: ?Sized> {
    part: NonNull<T>,
    _mapping: Arc<Mapping>,
}

// SAFETY: it gives `&T` to any thread, and nothing else.
unsafe impl<T: ?Sized + Sync> Send for Kept<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: ?Sized + Sync> Sync for Kept<T> {}

impl Mapping {
    /// Keeps the part that `find` returns.
    pub(crate) fn keep<T: ?Sized>(
        self: &Arc<Self>,
        find: impl for<'a> FnOnce(&'a Mapping) -> Option<&'a T>,
    ) -> Option<Kept<T>> {
        let part = NonNull::from(find(self)?);
        Some(Kept { part, _mapping: self.clone() })
    }
}

impl<T: ?Sized> Deref for Kept<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `find` returned it for every lifetime for which a mapping is borrowed, so it is valid
        // as long as the mapping, which is kept.
        unsafe { self.part.as_ref() }
    }
}
