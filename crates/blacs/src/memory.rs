//! The memory that matrices are in.

#![deny(clippy::arithmetic_side_effects)]

use crate::{BlacsError, Diag, Element, Part, Result, Shape, Uplo};
use core::{fmt, marker::PhantomData, ops::Range};
use rdma_fabric::LocalSpan;

/// Memory that a matrix is sent from.
pub trait Memory: Send + Sync {
    /// Returns bytes of it, counted from the matrix's first element on. Only ranges inside the
    /// [runs](Shape::runs) of the matrix's shape are ever asked for, and none if there is a span.
    fn bytes(&self, range: Range<usize>) -> &[u8];

    /// Returns it as memory of the fabric, from the matrix's first element on, if that is what it is.
    fn span(&self) -> Option<&LocalSpan<u8>> {
        None
    }
}

/// Memory that a matrix is received into.
pub trait MemoryMut: Send {
    /// Returns bytes of it to be written, by the rules of [`Memory::bytes`].
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8];

    /// Returns bytes of it, as [`Memory::bytes`] does.
    fn bytes(&self, range: Range<usize>) -> &[u8];

    /// Returns it as memory of the fabric, as [`Memory::span`] does.
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

/// What a [`Matrix`] holds.
#[derive(Clone)]
pub(crate) enum Held<'a> {
    Slice(&'a [u8]),
    Span(LocalSpan<u8>),
}

/// What a [`MatrixMut`] holds.
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

/// Returns the shape of a rectangle that fits into so many elements.
fn fitting(elements: usize, rows: usize, columns: usize, leading: usize) -> Result<Shape> {
    let shape = Shape::general(rows, columns, leading);
    let needed = shape.extent();
    if needed <= elements { Ok(shape) } else { Err(BlacsError::TooShort { needed, elements }) }
}

macro_rules! parts {
    ($name:ident) => {
        impl<T: Element> $name<'_, T> {
            /// Returns the upper trapezoid of it (`'U'`), with or without the diagonal.
            #[must_use]
            pub fn upper(self, diag: Diag) -> Self {
                let shape = self.shape.with(Part::Trapezoid { uplo: Uplo::Upper, diag });
                $name { shape, ..self }
            }

            /// Returns the lower trapezoid of it (`'L'`), with or without the diagonal.
            #[must_use]
            pub fn lower(self, diag: Diag) -> Self {
                let shape = self.shape.with(Part::Trapezoid { uplo: Uplo::Lower, diag });
                $name { shape, ..self }
            }

            /// Returns which elements belong to it.
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
    /// Takes a matrix of `rows` x `columns` whose columns are `leading` elements apart, or `rows` if
    /// that is more.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn new(memory: &'a [T], rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(Matrix { held: Held::Slice(bytemuck::cast_slice(memory)), shape, element: PhantomData })
    }

    /// Takes such a matrix in own memory of the fabric, out of which it goes without a copy if its
    /// columns lie one after the other.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn registered(memory: &'a LocalSpan<T>, rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(Matrix { held: Held::Span(memory.as_bytes()?), shape, element: PhantomData })
    }
}

impl<'a, T: Element> MatrixMut<'a, T> {
    /// Takes a matrix of `rows` x `columns` whose columns are `leading` elements apart, or `rows` if
    /// that is more.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn new(memory: &'a mut [T], rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(MatrixMut { held: HeldMut::Slice(bytemuck::cast_slice_mut(memory)), shape, element: PhantomData })
    }

    /// Takes such a matrix in own memory of the fabric, which it goes into without a copy if its columns
    /// lie one after the other.
    ///
    /// # Errors
    /// [`BlacsError::TooShort`].
    pub fn registered(memory: &'a LocalSpan<T>, rows: usize, columns: usize, leading: usize) -> Result<Self> {
        let shape = fitting(memory.len(), rows, columns, leading)?;
        Ok(MatrixMut { held: HeldMut::Span(memory.as_bytes()?), shape, element: PhantomData })
    }
}
