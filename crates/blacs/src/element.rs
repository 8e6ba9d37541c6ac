//! Element types of matrices.

use rdma_fabric::Pod;

/// The type of a matrix's elements, by its letter in BLACS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `i32`.
    I,
    /// `i64`: the integers of BLACS built with integers of 8 bytes.
    Long,
    /// `f32`.
    S,
    /// `f64`.
    D,
    /// `[f32; 2]`: complex numbers, real part first.
    C,
    /// `[f64; 2]`: complex numbers, real part first.
    Z,
}

impl Precision {
    /// Returns the number of bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Precision::I | Precision::S => 4,
            Precision::Long | Precision::D | Precision::C => 8,
            Precision::Z => 16,
        }
    }
}

/// An element type: `i32`, `i64`, `f32`, `f64`; `[f32; 2]` and `[f64; 2]`, which are complex numbers;
/// with the feature `num-complex` also the types of that crate.
pub trait Element: Pod + Arithmetic {
    /// The letter of the type.
    const PRECISION: Precision;
}

/// The arithmetic that combines use.
pub trait Arithmetic: Sized {
    /// The type of magnitudes.
    type Magnitude: PartialOrd;

    /// Returns the sum; sums of integers wrap around.
    fn plus(self, other: Self) -> Self;

    /// Returns the absolute value; of a complex number |re| + |im|.
    fn magnitude(&self) -> Self::Magnitude;

    /// Returns whether this element is preferred over `other`, which has the same magnitude. The
    /// greater element is preferred; of complex numbers, the one with the greater real part, then
    /// the one with the greater imaginary part.
    fn precedes(&self, other: &Self) -> bool;
}

macro_rules! integer {
    ($($element:ty: $precision:ident, $magnitude:ty;)*) => {$(
        impl Element for $element {
            const PRECISION: Precision = Precision::$precision;
        }

        impl Arithmetic for $element {
            type Magnitude = $magnitude;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn magnitude(&self) -> $magnitude {
                self.unsigned_abs()
            }

            #[inline]
            fn precedes(&self, other: &Self) -> bool {
                self > other
            }
        }
    )*};
}

macro_rules! float {
    ($($element:ty: $precision:ident, $complex:ident;)*) => {$(
        impl Element for $element {
            const PRECISION: Precision = Precision::$precision;
        }

        impl Arithmetic for $element {
            type Magnitude = $element;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn magnitude(&self) -> $element {
                self.abs()
            }

            #[inline]
            fn precedes(&self, other: &Self) -> bool {
                self.total_cmp(other).is_gt()
            }
        }

        impl Element for [$element; 2] {
            const PRECISION: Precision = Precision::$complex;
        }

        impl Arithmetic for [$element; 2] {
            type Magnitude = $element;

            #[inline]
            fn plus(self, [re, im]: Self) -> Self {
                [self[0] + re, self[1] + im]
            }

            #[inline]
            fn magnitude(&self) -> $element {
                self[0].abs() + self[1].abs()
            }

            #[inline]
            fn precedes(&self, [re, im]: &Self) -> bool {
                self[0].total_cmp(re).then(self[1].total_cmp(im)).is_gt()
            }
        }

        #[cfg(feature = "num-complex")]
        impl Element for num_complex::Complex<$element> {
            const PRECISION: Precision = Precision::$complex;
        }

        #[cfg(feature = "num-complex")]
        impl Arithmetic for num_complex::Complex<$element> {
            type Magnitude = $element;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn magnitude(&self) -> $element {
                [self.re, self.im].magnitude()
            }

            #[inline]
            fn precedes(&self, other: &Self) -> bool {
                [self.re, self.im].precedes(&[other.re, other.im])
            }
        }
    )*};
}

integer! {
    i32: I, u32;
    i64: Long, u64;
}

float! {
    f32: S, C;
    f64: D, Z;
}
