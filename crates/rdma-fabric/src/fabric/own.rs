//! Own memory, which is read and written by copying.

use super::{
    Fabric,
    acts::{get_now, put_now, same_length},
    waiting::read_word,
};
use crate::{
    AtomicWord, LocalSpan, LocalWord, Pod, Result,
    provider::{Place, Sink, Source},
};

impl Fabric {
    /// Load a word of own memory: what peers' visible puts and atomics left there, and everything
    /// they made visible before (acquire).
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`].
    #[inline(always)]
    pub fn load<W: AtomicWord>(&self, word: &LocalWord<W>) -> Result<W> {
        match word.place().load(W::BYTES) {
            Some(bits) => Ok(W::from_bits(bits)),
            // Taken apart, so that what is loaded at once stays in registers.
            None => match read_word(self, word.place(), false) {
                Ok(value) => Ok(value),
                Err(error) => Err(error),
            },
        }
    }

    /// Store a word of own memory, after everything stored before (release). Not atomic with peers'
    /// read-modify-writes unless [`crate::Caps::coherent_atomics`].
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`].
    #[inline(always)]
    pub fn store<W: AtomicWord>(&self, word: &LocalWord<W>, value: W) -> Result<()> {
        if word.place().store(W::BYTES, value.to_bits()).is_some() {
            self.rung(word.place());
            return Ok(());
        }
        self.write_word(word.place(), value, true)
    }

    /// [`Fabric::store`] to a word that no task of this rank waits for: one that does need not be woken by it.
    ///
    /// # Errors
    /// As [`Fabric::store`].
    #[inline(always)]
    pub fn store_unwaited<W: AtomicWord>(&self, word: &LocalWord<W>, value: W) -> Result<()> {
        match word.place().store(W::BYTES, value.to_bits()) {
            Some(()) => Ok(()),
            None => self.write_word(word.place(), value, false),
        }
    }

    /// Copy own registered memory out. If peers write it meanwhile, each byte is an old or a new one.
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`], [`crate::FabricError::LengthMismatch`].
    #[inline]
    pub fn read<T: Pod>(&self, span: &LocalSpan<T>, into: &mut [T]) -> Result<()> {
        let elements = into.len();
        let bytes = bytemuck::cast_slice_mut(into);
        if get_now(span.place(), Sink::Bytes(bytes)) {
            return Ok(());
        }
        same_length::<T>(elements, span.place())?;
        self.provider().read(span.place(), bytes, false)
    }

    /// Copy into own registered memory.
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`], [`crate::FabricError::LengthMismatch`].
    #[inline]
    pub fn write<T: Pod>(&self, span: &LocalSpan<T>, from: &[T]) -> Result<()> {
        let bytes = bytemuck::cast_slice(from);
        if put_now(self, span.place(), Source::Bytes(bytes)) {
            return Ok(());
        }
        same_length::<T>(from.len(), span.place())?;
        self.provider().write(span.place(), bytes, true)
    }

    #[cold]
    #[inline(never)]
    fn write_word<W: AtomicWord>(&self, word: &Place, value: W, waited: bool) -> Result<()> {
        self.provider().write(word, bytemuck::bytes_of(&value), waited)
    }
}
