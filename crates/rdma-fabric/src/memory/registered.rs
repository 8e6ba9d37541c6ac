//! Registering memory that the program already has.
//!
//! The owner moves a buffer in, and peers access it by key like any region; until the buffer is
//! [taken](Registered::take) back, the owner itself also reads and writes it by copying. So no
//! reference to bytes that others write ever exists, and the buffer is returned only when no
//! operation accesses it.

use crate::{Existing, Fabric, FabricError, LocalSpan, LocalWord, Region, Result};
use bytemuck::Pod;
use core::{any::Any, fmt, future::Future, marker::PhantomData, ops::Deref};

/// A buffer of some element type, in the form that providers use: bytes that do not move when this
/// value does.
pub struct OwnedMemory(Box<dyn Buffer>);

trait Buffer: Any + Send + Sync {
    fn bytes(&self) -> &[u8];
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl<T: Pod + Send + Sync> Buffer for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

impl OwnedMemory {
    /// Takes the buffer of a vector; its spare capacity stays unused.
    pub fn new<T: Pod + Send + Sync>(memory: Vec<T>) -> Self {
        OwnedMemory(Box::new(memory))
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Returns the bytes, for writing. A provider that derives a pointer from them calls neither
    /// method again before it is done with the pointer.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }

    /// Registers the buffer: [`Registered::new`], for callers without a vector.
    ///
    /// # Errors
    /// As [`Fabric::register`], with the memory.
    pub fn register(self, fabric: &Fabric, uses: Uses) -> Result<Region, (FabricError, Self)> {
        fabric.provider().adopt(self, uses)
    }

    /// Deregisters memory registered by [`OwnedMemory::register`], waits until no operation accesses
    /// it, and returns the memory: [`Registered::take`], for callers without a vector.
    ///
    /// # Errors
    /// As [`Registered::take`].
    pub fn take(region: Region, fabric: &Fabric) -> impl Future<Output = Result<Self>> {
        fabric.provider().release(region)
    }

    /// Returns the vector that this was made from.
    ///
    /// # Errors
    /// The buffer, unchanged.
    pub fn into_vec<T: Pod + Send + Sync>(self) -> Result<Vec<T>, Self> {
        // A failing downcast of the box would lose the buffer's trait.
        let memory: &dyn Any = &*self.0;
        if !memory.is::<Vec<T>>() {
            return Err(self);
        }
        let memory: Box<dyn Any> = self.0;
        Ok(*memory.downcast().expect("the types were compared"))
    }
}

impl fmt::Debug for OwnedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedMemory({} bytes)", self.len())
    }
}

/// The operations that peers will perform on memory that is being registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Uses {
    /// Puts and gets. Atomics may be [refused](FabricError::NoAtomics).
    #[default]
    Transfers,
    /// Atomics as well: if the buffer itself does not support them, it is staged.
    Atomics,
}

/// A failed registration. The memory is returned. `E` is the error of a layer above.
pub struct RegisterError<T, E = FabricError> {
    /// The reason.
    pub error: E,
    /// The memory that was to be registered.
    pub memory: Vec<T>,
}

impl<T, E: fmt::Debug> fmt::Debug for RegisterError<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegisterError({:?}, {} elements)", self.error, self.memory.len())
    }
}

impl<T, E: fmt::Display> fmt::Display for RegisterError<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T, E: core::error::Error> core::error::Error for RegisterError<T, E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.error.source()
    }
}

impl<T> From<RegisterError<T>> for FabricError {
    /// Drops the memory.
    fn from(refused: RegisterError<T>) -> Self {
        refused.error
    }
}

/// Memory of the program that is registered; see [`Fabric::register`].
///
/// It dereferences to the provider's region, for key and addresses. Dropping it deregisters it; the
/// memory is freed as soon as no operation accesses it.
pub struct Registered<T: Pod> {
    fabric: Fabric,
    region: Region,
    elements: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod + Send + Sync> Registered<T> {
    /// Registers memory for these uses: [`Fabric::register`], if peers only transfer.
    ///
    /// # Errors
    /// As [`Fabric::register`].
    pub fn new(fabric: &Fabric, memory: Vec<T>, uses: Uses) -> Result<Self, RegisterError<T>> {
        let elements = memory.len();
        match OwnedMemory::new(memory).register(fabric, uses) {
            Ok(region) => Ok(Registered { fabric: fabric.clone(), region, elements, element: PhantomData }),
            Err((error, memory)) => {
                Err(RegisterError { error, memory: memory.into_vec().unwrap_or_else(|_| Vec::new()) })
            }
        }
    }

    /// Deregisters and returns the buffer, with the values that peers have written.
    ///
    /// Waits until no operation accesses the buffer. Every peer's operation has then either taken
    /// effect or fails with [`FabricError::StaleRegion`], and none accesses the buffer any longer.
    /// The wait ignores ranks that died during an access.
    ///
    /// Dropping the future drops the registration.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`], [`FabricError::System`]: the provider can't determine whether
    /// an operation still accesses the buffer. It then keeps the memory, forever if necessary.
    pub async fn take(self) -> Result<Vec<T>> {
        let Registered { fabric, region, .. } = self;
        let memory = OwnedMemory::take(region, &fabric).await?;
        memory.into_vec().map_err(|_| FabricError::Unsupported { feature: &"memory of another element type" })
    }
}

impl<T: Pod> Registered<T> {
    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Resolves all elements, for [`Fabric::read`], [`Fabric::write`] and as source or sink of
    /// operations.
    ///
    /// # Errors
    /// As [`Fabric::local_span`].
    pub fn all(&self) -> Result<LocalSpan<T>> {
        self.region.span(&self.fabric, 0, self.elements)
    }

    /// Resolves the word at `offset` bytes, for [`Fabric::load`], [`Fabric::store`] and
    /// [`Fabric::wait_until`].
    ///
    /// # Errors
    /// As [`Fabric::local_word`]. Existing memory keeps its alignment: a word in a buffer of bytes
    /// may be [`FabricError::Misaligned`].
    pub fn word<W: crate::AtomicWord>(&self, offset: usize) -> Result<LocalWord<W>> {
        self.region.word(&self.fabric, offset)
    }

    /// Returns how peers access the memory.
    pub fn way(&self) -> Existing {
        self.region.existing().unwrap_or(Existing::None)
    }
}

impl<T: Pod> Deref for Registered<T> {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

impl<T: Pod> fmt::Debug for Registered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registered({:?}, {} elements, {:?})", self.region, self.elements, self.way())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_as_what_it_was() {
        let mut memory = Vec::with_capacity(10);
        memory.extend([1u32, 2, 3]);
        let (at, capacity) = (memory.as_ptr(), memory.capacity());
        let mut owned = OwnedMemory::new(memory);
        assert_eq!(owned.len(), 12);
        owned.bytes_mut()[0] = 9;
        let owned = owned.into_vec::<i32>().unwrap_err();
        let memory = owned.into_vec::<u32>().unwrap();
        assert_eq!((memory[0].to_ne_bytes()[0], memory[1], memory.capacity()), (9, 2, capacity));
        assert_eq!(memory.as_ptr(), at);
        assert!(OwnedMemory::new(Vec::<u64>::new()).is_empty());
        assert!(OwnedMemory::new(vec![(); 3]).is_empty());
    }
}
