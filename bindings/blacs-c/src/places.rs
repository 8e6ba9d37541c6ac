//! Values by number; a new value takes the lowest free number.

use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct Places<T> {
    values: Vec<Option<T>>,
    /// The numbers without a value. The time of a search does not grow with the number of values.
    free: BTreeSet<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places { values: Vec::new(), free: BTreeSet::new() }
    }
}

impl<T> Places<T> {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.values.get(at)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.values.get_mut(at)?.as_mut()
    }

    /// Returns the number of values.
    pub(crate) fn count(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Stores a value under the lowest free number, which is returned.
    pub(crate) fn keep(&mut self, value: T) -> usize {
        match self.free.pop_first() {
            Some(free) => {
                self.values[free] = Some(value);
                free
            }
            None => {
                self.values.push(Some(value));
                self.values.len() - 1
            }
        }
    }

    pub(crate) fn take(&mut self, at: usize) -> Option<T> {
        let value = self.values.get_mut(at)?.take()?;
        self.free.insert(at);
        Some(value)
    }

    /// Removes all values; the next one gets number 0.
    pub(crate) fn take_all(&mut self) -> Vec<T> {
        self.free.clear();
        self.values.drain(..).flatten().collect()
    }
}

impl<T: PartialEq> Places<T> {
    /// Returns the lowest number of a value.
    pub(crate) fn number_of(&self, value: &T) -> Option<usize> {
        self.values.iter().position(|there| there.as_ref() == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_taken_again() {
        let mut places = Places::default();
        assert_eq!(['a', 'b', 'c'].map(|value| places.keep(value)), [0, 1, 2]);
        assert_eq!([1, 1, 0, 7].map(|at| places.take(at)), [Some('b'), None, Some('a'), None]);
        assert_eq!((places.count(), places.get(1), places.number_of(&'c')), (1, None, Some(2)));
        assert_eq!(['d', 'e', 'f'].map(|value| places.keep(value)), [0, 1, 3]);
        assert_eq!((places.count(), places.take_all().len(), places.count(), places.keep('g')), (4, 4, 0, 0));
    }
}
