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

use super::Event;

/// A bucket whose events have been distributed keeps its memory for reuse only up to this many
/// events.
const KEEP: usize = 512;
/// The number of bits per digit.
const BITS: u32 = 4;
const VALUES: usize = 1 << BITS;
const DIGITS: usize = 64 / BITS as usize;

#[derive(Debug)]
pub(super) struct RadixHeap {
    /// Events at time `last`, in order; those before `front` have been popped.
    now: Vec<Event>,
    front: usize,
    /// The time popped last; no event is earlier.
    last: u64,
    /// Indexed by digit and the digit's value.
    buckets: Vec<Vec<Event>>,
    /// For each digit, a bit per value whose bucket is not empty.
    values: [u16; DIGITS],
    /// A bit per digit that has such a bucket.
    digits: u16,
    len: usize,
    peak: usize,
}

const _: () = assert!(VALUES <= u16::BITS as usize && DIGITS <= u16::BITS as usize);

impl Default for RadixHeap {
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

impl RadixHeap {
    #[inline]
    fn place(&mut self, event: Event) {
        let difference = event.time ^ self.last;
        if difference == 0 {
            self.now.push(event);
            return;
        }
        let digit = (difference.ilog2() / BITS) as usize;
        let value = (event.time >> (digit as u32 * BITS)) as usize % VALUES;
        self.buckets[digit * VALUES + value].push(event);
        self.values[digit] |= 1 << value;
        self.digits |= 1 << digit;
    }

    #[inline]
    pub(super) fn push(&mut self, mut event: Event) {
        debug_assert!(event.time >= self.last, "an event was scheduled in the past");
        event.time = event.time.max(self.last);
        self.len += 1;
        self.peak = self.peak.max(self.len);
        self.place(event);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.front == self.now.len() {
            self.refill()?;
        }
        Some(self.take())
    }

    #[inline]
    pub(super) fn pop_at(&mut self, time: u64) -> Option<Event> {
        (self.last == time && self.front < self.now.len()).then(|| self.take())
    }

    #[inline]
    fn take(&mut self) -> Event {
        let event = self.now[self.front];
        self.front += 1;
        self.len -= 1;
        event
    }

    /// Returns an event that will probably be popped soon, so that its memory can be prefetched.
    #[inline]
    pub(super) fn soon(&self) -> Option<Event> {
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
            self.last = only.time;
            self.now.push(only);
            return Some(());
        }
        let mut spread = core::mem::take(&mut self.buckets[lowest]);
        self.last = spread.iter().map(|event| event.time).min()?;
        for &event in &spread {
            self.place(event);
        }
        if spread.capacity() <= KEEP {
            spread.clear();
            self.buckets[lowest] = spread;
        }
        if self.now.capacity() > KEEP && self.now.len() < KEEP / 2 {
            self.now.shrink_to(KEEP);
        }
        Some(())
    }

    pub(super) fn peak_bytes(&self) -> usize {
        self.peak * size_of::<Event>()
    }
}
