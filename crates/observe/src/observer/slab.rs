//! Tables of state that is kept from one call to the next.

use std::{
    num::NonZeroU64,
    sync::{Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics while the lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Values stored under numbers, which are reused.
#[derive(Debug)]
pub(super) struct Slab<T>(Mutex<Places<T>>);

#[derive(Debug)]
struct Places<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab(Mutex::new(Places { values: Vec::new(), free: Vec::new() }))
    }
}

fn index(number: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}

impl<T> Slab<T> {
    /// Stores a value and returns its number.
    pub(super) fn put(&self, value: T) -> NonZeroU64 {
        let mut places = lock(&self.0);
        let index = places.free.pop().unwrap_or(places.values.len());
        match places.values.get_mut(index) {
            Some(place) => *place = Some(value),
            None => places.values.push(Some(value)),
        }
        NonZeroU64::MIN.saturating_add(index as u64)
    }

    /// Calls `f` with the value under this number, if there is one.
    pub(super) fn with<R>(&self, number: u64, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        lock(&self.0).values.get_mut(index(number)?)?.as_mut().map(f)
    }

    /// Takes the value out.
    pub(super) fn take(&self, number: u64) -> Option<T> {
        let mut places = lock(&self.0);
        let index = index(number)?;
        let value = places.values.get_mut(index)?.take()?;
        places.free.push(index);
        Some(value)
    }
}

/// One value for each thread: the last value that the thread found, for its next call.
#[derive(Debug)]
pub(super) struct Latest<T>(Mutex<Vec<(ThreadId, T)>>);

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Latest(Mutex::new(Vec::new()))
    }
}

impl<T> Latest<T> {
    /// Sets the calling thread's value.
    pub(super) fn set(&self, value: T) {
        let (mut values, here) = (lock(&self.0), thread::current().id());
        match values.iter_mut().find(|(thread, _)| *thread == here) {
            Some((_, old)) => *old = value,
            None => values.push((here, value)),
        }
    }

    /// Takes the calling thread's value.
    pub(super) fn take(&self) -> Option<T> {
        let (mut values, here) = (lock(&self.0), thread::current().id());
        let at = values.iter().position(|(thread, _)| *thread == here)?;
        Some(values.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_void_ones_find_nothing() {
        let slab = Slab::default();
        let [a, b] = ["a", "b"].map(|value| slab.put(value).get());
        assert_eq!((a, b, slab.take(a), slab.take(a)), (1, 2, Some("a"), None));
        assert_eq!(slab.put("c").get(), 1);
        assert_eq!(slab.with(1, |value| std::mem::replace(value, "d")), Some("c"));
        assert_eq!([0, 1, 2, 3, u64::MAX].map(|number| slab.take(number)), [None, Some("d"), Some("b"), None, None]);
    }

    #[test]
    fn each_thread_finds_its_own() {
        let latest = Latest::default();
        latest.set(1);
        latest.set(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(latest.take(), None);
                latest.set(3);
            });
        });
        assert_eq!((latest.take(), latest.take()), (Some(2), None));
    }
}
