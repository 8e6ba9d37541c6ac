//! Numbered objects, which C programs identify by numbers in the form of pointers.

use super::call::{CallError, Result};
use core::ffi::c_void;
use std::collections::BTreeMap;

/// A number in the form of a pointer, which is never followed; null is none.
pub(super) type Handle = *mut c_void;

pub(super) fn handle(number: u64) -> Handle {
    core::ptr::without_provenance_mut(number as usize)
}

pub(super) fn number(handle: Handle) -> u64 {
    handle.addr() as u64
}

/// Objects by number. No number is used twice, so that an object's handle does not denote a later
/// one.
#[derive(Debug)]
pub(super) struct Handles<T> {
    made: u64,
    objects: BTreeMap<u64, T>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles { made: 0, objects: BTreeMap::new() }
    }
}

impl<T> Handles<T> {
    pub(super) fn add(&mut self, object: T) -> Handle {
        self.made += 1;
        self.objects.insert(self.made, object);
        handle(self.made)
    }

    pub(super) fn get(&mut self, of: Handle) -> Result<&mut T> {
        self.objects.get_mut(&number(of)).ok_or(NONE)
    }

    pub(super) fn take(&mut self, of: Handle) -> Result<T> {
        self.objects.remove(&number(of)).ok_or(NONE)
    }

    /// Returns an object that was taken for the time of a call.
    pub(super) fn put_back(&mut self, of: Handle, object: T) {
        self.objects.insert(number(of), object);
    }

    pub(super) fn take_all(&mut self) -> BTreeMap<u64, T> {
        core::mem::take(&mut self.objects)
    }
}

const NONE: CallError = CallError::Argument("a handle that was freed or never existed");

#[cfg(test)]
mod tests {
    use super::{Handles, handle};

    #[test]
    fn freed_handles_stay_unknown() {
        let mut handles = Handles::default();
        let (one, two) = (handles.add(1), handles.add(2));
        assert_eq!(handles.take(one).ok(), Some(1));
        assert!(handles.get(one).is_err() && handles.take(one).is_err() && handles.get(handle(0)).is_err());
        assert_eq!(handles.get(two).ok(), Some(&mut 2));
        let three = handles.add(3);
        assert!(three != one && handles.take_all().len() == 2 && handles.get(two).is_err());
    }
}
