//! Buffers for bytes that do not fit into a slot.

/// Maximum total number of bytes of an endpoint's buffers, unless a single buffer is longer.
const MOST: usize = 64 << 20;
/// The shortest buffer in bytes.
const SHORTEST: usize = 4096;

/// Buffers of an endpoint, by size: powers of two. `B` is a buffer.
///
/// The pool grows on demand, and reuses returned buffers.
#[derive(Debug)]
pub(crate) struct Pool<B> {
    /// Unused buffers; those at index `i` have `SHORTEST << i` bytes.
    free: Vec<Vec<B>>,
    /// Number of bytes of all buffers, including those in use.
    bytes: usize,
}

impl<B> Pool<B> {
    pub(crate) fn new() -> Self {
        Self { free: Vec::new(), bytes: 0 }
    }

    fn class(len: usize) -> usize {
        len.div_ceil(SHORTEST).next_power_of_two().trailing_zeros() as usize
    }

    /// Returns a buffer of at least `len` bytes, which `make` creates if none is free; `None` if
    /// the buffers in use take up all the space.
    pub(crate) fn take<E>(&mut self, len: usize, make: impl FnOnce(usize) -> Result<B, E>) -> Result<Option<B>, E> {
        let class = Self::class(len);
        if let Some(buffer) = self.free.get_mut(class).and_then(Vec::pop) {
            return Ok(Some(buffer));
        }
        let size = SHORTEST << class;
        if self.bytes + size > MOST {
            for (class, free) in self.free.iter_mut().enumerate() {
                self.bytes -= free.len() * (SHORTEST << class);
                free.clear();
            }
        }
        if self.bytes > 0 && self.bytes + size > MOST {
            return Ok(None);
        }
        let buffer = make(size)?;
        self.bytes += size;
        Ok(Some(buffer))
    }

    /// Takes back a buffer that was taken for `len` bytes.
    pub(crate) fn put_back(&mut self, len: usize, buffer: B) {
        let class = Self::class(len);
        if self.free.len() <= class {
            self.free.resize_with(class + 1, Vec::new);
        }
        self.free[class].push(buffer);
    }

    /// Records that a buffer that was taken for `len` bytes will not be returned.
    pub(crate) fn lose(&mut self, len: usize) {
        self.bytes -= SHORTEST << Self::class(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(size: usize) -> Result<usize, ()> {
        Ok(size)
    }

    #[test]
    fn buffers_are_long_enough_and_used_again() {
        let mut pool = Pool::new();
        for (len, size) in [(1, 4096), (4096, 4096), (4097, 8192), (1 << 20, 1 << 20), ((1 << 20) + 1, 2 << 20)] {
            assert_eq!(pool.take(len, made), Ok(Some(size)));
            pool.put_back(len, size);
            assert_eq!(pool.take(len, |_| Err(())), Ok(Some(size)), "no other is made");
        }
    }

    #[test]
    fn there_is_an_end_and_buffers_of_other_lengths_make_room() {
        let mut pool = Pool::new();
        for _ in 0..4 {
            assert!(pool.take(MOST / 4, made).unwrap().is_some());
        }
        assert_eq!(pool.take(1, made), Ok(None));
        pool.put_back(MOST / 4, MOST / 4);
        assert_eq!(pool.take(1, made), Ok(Some(SHORTEST)));
        assert_eq!(pool.take(MOST / 4, made), Ok(None));
        pool.lose(1);
        assert_eq!(pool.take(MOST / 4, made), Ok(Some(MOST / 4)));
    }

    #[test]
    fn one_buffer_may_be_longer_than_all_should_be() {
        let mut pool = Pool::new();
        assert_eq!(pool.take(4 * MOST, made), Ok(Some(4 * MOST)));
        assert_eq!(pool.take(1, made), Ok(None));
    }

    proptest! {
        #[test]
        fn a_buffer_holds_what_was_asked_for(len in 1_usize..1 << 40) {
            let size = Pool::new().take(len, made).unwrap().unwrap();
            prop_assert!(size >= len && size < 2 * len.max(SHORTEST));
        }
    }
}
