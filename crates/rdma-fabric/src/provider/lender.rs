//! The interface of a provider that stores memory itself and lends it to the rank that owns it.

use super::Place;
use bytemuck::Pod;
use core::ops::Range;
use std::sync::Arc;

/// The words of a whole region, lent to the rank that owns it: see [`Lender`].
#[derive(Debug)]
pub struct Loan(Arc<Box<[u64]>>);

impl Loan {
    /// Lends words that the provider may share with the program.
    pub fn new(words: Arc<Box<[u64]>>) -> Self {
        Loan(words)
    }

    /// Returns the words.
    pub fn into_words(self) -> Arc<Box<[u64]>> {
        self.0
    }

    /// Returns the `len` elements that begin at byte `offset`; `None` if they are not inside, not aligned, or
    /// need more alignment than a word.
    #[inline]
    pub fn slice<T: Pod>(&self, offset: usize, len: usize) -> Option<&[T]> {
        let bytes = bytemuck::cast_slice::<u64, u8>(&self.0).get(range::<T>(offset, len)?)?;
        bytemuck::try_cast_slice(bytes).ok()
    }

    /// As [`Loan::slice`], to be written; `None` also for words that the provider shares.
    #[inline]
    pub fn slice_mut<T: Pod>(&mut self, offset: usize, len: usize) -> Option<&mut [T]> {
        let words = Arc::get_mut(&mut self.0)?;
        let bytes = bytemuck::cast_slice_mut::<u64, u8>(words).get_mut(range::<T>(offset, len)?)?;
        bytemuck::try_cast_slice_mut(bytes).ok()
    }
}

/// Returns the range of bytes of elements; `None` if its end overflows, or they need more alignment than a word.
fn range<T: Pod>(offset: usize, len: usize) -> Option<Range<usize>> {
    let end = len.checked_mul(size_of::<T>())?.checked_add(offset)?;
    (align_of::<T>() <= align_of::<u64>()).then_some(offset..end)
}

/// Lends memory that only this provider stores, so that the program need not copy it. For ranks of one thread. Sentence
/// M11 of the contract (`docs/contract/fabric.md`).
pub trait Lender {
    /// Lends the region of a place of this rank, as it is now: to be read, or, if `writes` is set, to be written and
    /// [given back](Lender::give_back). `None` where the provider does not lend it, or a copy of the place takes
    /// less; then nothing changes.
    ///
    /// While a region is lent to be read, other accesses take effect, and are not seen in the loan. While it is lent
    /// to be written, the program has the only copy: other reads return zeros, and other writes are lost. So the
    /// caller ensures that there are none.
    fn lend(&self, place: &Place, writes: bool) -> Option<Loan>;
    /// Takes back a loan to be written of [`Lender::lend`], of the same place. The region's words are those of the loan
    /// from now on, as after [`Provider::write`](super::Provider::write). Does nothing with another loan.
    fn give_back(&self, place: &Place, loan: Loan);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_inside_and_aligned() {
        let words = |words: &[u64]| Arc::new(words.to_vec().into_boxed_slice());
        let mut loan = Loan::new(words(&[1, 2, 3]));
        assert_eq!(loan.slice::<u64>(8, 2), Some(&[2, 3][..]));
        assert_eq!(loan.slice::<u32>(4, 0), Some(&[][..]));
        for (offset, len) in [(8, 3), (1, 1), (usize::MAX, 1), (0, usize::MAX), (32, 0)] {
            assert_eq!(loan.slice::<u64>(offset, len), None);
            assert_eq!(loan.slice_mut::<u64>(offset, len), None);
        }
        assert_eq!(loan.slice::<u128>(0, 1), None);
        loan.slice_mut::<u8>(9, 1).unwrap()[0] = 1;
        let shared = loan.into_words();
        assert_eq!(shared[..], [1, 2 + if cfg!(target_endian = "little") { 256 } else { 1 << 48 }, 3]);
        assert_eq!(Loan::new(Arc::clone(&shared)).slice_mut::<u64>(0, 1), None);
    }
}
