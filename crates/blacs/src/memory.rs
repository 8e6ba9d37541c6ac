//! The memory of matrices.

#![deny(clippy::arithmetic_side_effects)]

use crate::{BlacsError, Diag, Element, Part, Result, Shape, Uplo};
use core::{fmt, marker::PhantomData, ops::Range};
use rdma_fabric::LocalSpan;

/// Memory that a matrix is sent from.
pub trait Memory: Send + Sync {
    /// Returns a range of its bytes, counted from the matrix's first element. Callers request only
    /// ranges inside the [runs](Shape::runs) of the matrix's shape, and none if there is a span.
    fn bytes(&self, range: Range<usize>) -> &[u8];

    /// Returns the memory from the matrix's first element on as a span of the fabric, if it is fabric
    /// memory.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

/// Memory that a matrix is received into.
pub trait MemoryMut: Send {
    /// Returns a range of its bytes for writing, by the rules of [`Memory::bytes`].
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8];

    /// Returns a range of its bytes, as [`Memory::bytes`] does.
    fn bytes(&self, range: Range<usize>) -> &[u8];

    /// Returns the memory as a span of the fabric, as [`Memory::span`] does.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

/// A matrix to be sent.
#[derive(Clone)]
pub struct Matrix<'a, T> {
    pub(crate) held: Held<'a>,
    pub(crate) shape: Shape,
    element: PhantomData<&'a [T]>,
}

/// A matrix to be received, or combined.
pub struct MatrixMut<'a, T> {
    pub(crate) held: HeldMut<'a>,
    pub(crate) shape: Shape,
    element: PhantomData<&'a mut [T]>,
}

/// The memory of a [`Matrix`].
#[derive(Clone)]
pub(crate) enum Held<'a> {
    Slice(&'a [u8]),
    Span(LocalSpan<u8>),
}

/// The memory of a [`MatrixMut`].
pub(crate) enum HeldMut<'a> {
    Slice(&'a mut [u8]),
    Span(LocalSpan<u8>),
}

impl Memory for Held<'_> {
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        match self {
            Held::Slice(slice) => &slice[range],
            Held::Span(_) => &[],
        }
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        match self {
            Held::Slice(_) => None,
            Held::Span(span) => Some(span),
        }
    }
}

impl MemoryMut for HeldMut<'_> {
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        match self {
            HeldMut::Slice(slice) => &mut slice[range],
            HeldMut::Span(_) => &mut [],
        }
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        match self {
            HeldMut::Slice(slice) => &slice[range],
            HeldMut::Span(_) => &[],
        }
    }

    fn span(&self) -> Option<&LocalSpan<u8>> {
        match self {
            HeldMut::Slice(_) => None,
            HeldMut::Span(span) => Some(span),
        }
    }
}

/// Returns the shape of a rectangle, which must fit into `elements` elements.
fn fitting(elements: usize, rows: usize, columns: usize, leading: usize) -> Result<Shape> {
    let shape = Shape::general(rows, columns, leading);
    let needed = shape.extent();
    if needed <= elements { Ok(shape) } else { Err(BlacsError::TooShort { needed, elements }) }
}

macro_rules! parts {
    ($name:ident) => {
        impl<T: Element> $name<'_, T> {
            /// Restricts the matrix to its upper trapezoid (`'U'`), with or without the diagonal.
            #[must_use]
            pub fn upper(self, diag: Diag) -> Self {
                let shape = self.shape.with(Part::Trapezoid { uplo: Uplo::Upper, diag });
                $name { shape, ..self }
            }

            /// Restricts the matrix to its lower trapezoid (`'L'`), with or without the diagonal.
            #[must_use]
            pub fn lower(self, diag: Diag) -> Self {
                let shape = self.shape.with(Part::Trapezoid { uplo: Uplo::Lower, diag });
                $name { shape, ..self }
            }

            /// Returns the shape of the matrix.
            pub fn shape(&self) -> Shape {
                self.shape
            }
        }

        impl<T: Element> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}<{:?}>({:?})", stringify!($name), T::PRECISION, self.shape)
            }
        }
    };
}

parts!(Matrix);
parts!(MatrixMut);

impl<'a, T: Element> Matrix<'a, T> {
    /// Creates a matrix of `rows` x `columns` whose columns are `leading` elements apart, or `rows`
    /// if that is greater.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn new(memory: &'a [T], rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(Matrix { held: Held::Slice(bytemuck::cast_slice(memory)), shape, element: PhantomData })
    }

    /// Creates such a matrix in the caller's own fabric memory. It is sent without a copy if its
    /// columns are contiguous.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn registered(memory: &'a LocalSpan<T>, rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(Matrix { held: Held::Span(memory.as_bytes()?), shape, element: PhantomData })
    }
}

impl<'a, T: Element> MatrixMut<'a, T> {
    /// Creates a matrix of `rows` x `columns` whose columns are `leading` elements apart, or `rows`
    /// if that is greater.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn new(memory: &'a mut [T], rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(MatrixMut { held: HeldMut::Slice(bytemuck::cast_slice_mut(memory)), shape, element: PhantomData })
    }

    /// Creates such a matrix in the caller's own fabric memory. It is received without a copy if its
    /// columns are contiguous.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn registered(memory: &'a LocalSpan<T>, rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(MatrixMut { held: HeldMut::Span(memory.as_bytes()?), shape, element: PhantomData })
    }
}
