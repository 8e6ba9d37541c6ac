//! A monotone radix heap whose buckets are first-in-first-out, so that it is stable without
//! sequence numbers.
//!
//! `now` holds the events at the time popped last. Every other event is in a bucket, chosen by the
//! highest four-bit digit in which its time differs from that time, and by the value of that digit.
//! When `now` is empty, the events of the lowest bucket of the lowest digit are distributed over
//! the buckets of lower digits, all of which are empty; appending in order keeps simultaneous
//! events in order. (Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path
//! problem, J. ACM 37, 1990.) With four bits per digit instead of one, an event moves a quarter as
//! often.

/// What the heap orders: something with a time in picoseconds.
pub(crate) trait Timed: Copy {
    fn time(&self) -> u64;

    /// Returns the same at another time.
    fn at(self, time: u64) -> Self;

    /// Returns the same at `time`, if that is later.
    #[inline]
    fn not_before(self, time: u64) -> Self {
        self.at(self.time().max(time))
    }
}

/// A bucket whose events have been distributed keeps its memory for reuse only up to this many
/// events.
const KEEP: usize = 512;
/// The number of bits per digit.
const BITS: u32 = 4;
const VALUES: usize = 1 << BITS;
const DIGITS: usize = 64 / BITS as usize;

#[derive(Debug)]
pub(crate) struct RadixHeap<E> {
    /// Events at time `last`, in order; those before `front` have been popped.
    now: Vec<E>,
    front: usize,
    /// The time popped last; no event is earlier.
    last: u64,
    /// Indexed by digit and the digit's value.
    buckets: Vec<Vec<E>>,
    /// For each digit, a bit per value whose bucket is not empty.
    values: [u16; DIGITS],
    /// A bit per digit that has such a bucket.
    digits: u16,
    len: usize,
    peak: usize,
}

const _: () = assert!(VALUES <= u16::BITS as usize && DIGITS <= u16::BITS as usize);

impl<E> Default for RadixHeap<E> {
    fn default() -> Self {
        RadixHeap {
            now: Vec::new(),
            front: 0,
            last: 0,
            buckets: (0..DIGITS * VALUES).map(|_| Vec::new()).collect(),
            values: [0; DIGITS],
            digits: 0,
            len: 0,
            peak: 0,
        }
    }
}

impl<E: Timed> RadixHeap<E> {
    #[inline]
    fn place(&mut self, event: E) {
        let difference = event.time() ^ self.last;
        if difference == 0 {
            self.now.push(event);
            return;
        }
        let digit = (difference.ilog2() / BITS) as usize;
        let value = (event.time() >> (digit as u32 * BITS)) as usize % VALUES;
        self.buckets[digit * VALUES + value].push(event);
        self.values[digit] |= 1 << value;
        self.digits |= 1 << digit;
    }

    #[inline]
    pub(crate) fn push(&mut self, event: E) {
        debug_assert!(event.time() >= self.last, "an event was scheduled in the past");
        self.len += 1;
        self.peak = self.peak.max(self.len);
        self.place(event.not_before(self.last));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<E> {
        if self.front == self.now.len() {
            self.refill()?;
        }
        Some(self.take())
    }

    #[inline]
    pub(crate) fn pop_at(&mut self, time: u64) -> Option<E> {
        (self.last == time && self.front < self.now.len()).then(|| self.take())
    }

    /// Takes all events at the earliest time, in order, into `batch`, whose memory serves for later
    /// ones. Events that are pushed for that time afterwards are another batch.
    pub(crate) fn pop_batch(&mut self, batch: &mut Vec<E>) -> Option<u64> {
        debug_assert_eq!(self.front, 0, "batches are not mixed with single events");
        batch.clear();
        if self.now.is_empty() {
            self.refill()?;
        }
        core::mem::swap(&mut self.now, batch);
        self.len -= batch.len();
        Some(self.last)
    }

    #[inline]
    fn take(&mut self) -> E {
        let event = self.now[self.front];
        self.front += 1;
        self.len -= 1;
        event
    }

    /// Returns an event that will probably be popped soon, so that its memory can be prefetched.
    #[inline]
    pub(crate) fn soon(&self) -> Option<E> {
        if let Some(&event) = self.now.get(self.front + 1) {
            return Some(event);
        }
        let digit = self.digits.trailing_zeros() as usize;
        let value = self.values.get(digit)?.trailing_zeros() as usize;
        self.buckets[digit * VALUES + value].first().copied()
    }

    fn refill(&mut self) -> Option<()> {
        self.now.clear();
        self.front = 0;
        if self.digits == 0 {
            return None;
        }
        let digit = self.digits.trailing_zeros() as usize;
        let values = &mut self.values[digit];
        let lowest = digit * VALUES + values.trailing_zeros() as usize;
        *values &= *values - 1;
        if *values == 0 {
            self.digits &= self.digits - 1;
        }
        if let [only] = self.buckets[lowest][..] {
            self.buckets[lowest].clear();
            self.last = only.time();
            self.now.push(only);
            return Some(());
        }
        let mut spread = core::mem::take(&mut self.buckets[lowest]);
        let (first, last) = spread.iter().fold((u64::MAX, 0), |(first, last), event| {
            let time = event.time();
            (first.min(time), last.max(time))
        });
        self.last = first;
        if first == last {
            core::mem::swap(&mut self.now, &mut spread);
            self.keep(lowest, spread);
            return Some(());
        }
        for &event in &spread {
            self.place(event);
        }
        self.keep(lowest, spread);
        if self.now.capacity() > KEEP && self.now.len() < KEEP / 2 {
            self.now.shrink_to(KEEP);
        }
        Some(())
    }

    /// Keeps the memory of a bucket that was distributed, if it is little.
    #[inline]
    fn keep(&mut self, bucket: usize, mut spread: Vec<E>) {
        if spread.capacity() <= KEEP {
            spread.clear();
            self.buckets[bucket] = spread;
        }
    }

    pub(crate) fn peak_bytes(&self) -> usize {
        self.peak * size_of::<E>()
    }
}
