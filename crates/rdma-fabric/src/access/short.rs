//! Copies of at most 64 bytes by a few plain moves, shared by the assembly forms.
//!
//! # Safety
//! Every move of a copy of `len` bytes covers `offset..offset + width` with `offset + width <=
//! len`. Shared bytes are moved by the side's own instructions, never by accesses the compiler may
//! invent, repeat or drop.

/// One side of a copy: moves of 1 to 16 bytes, at any alignment.
pub(super) trait Side {
    /// A 16-byte register.
    type Wide: Copy;
    /// # Safety
    /// `p` is valid for the width's bytes.
    unsafe fn load1(p: *const u8) -> u8;
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn load2(p: *const u8) -> u16;
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn load4(p: *const u8) -> u32;
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn load8(p: *const u8) -> u64;
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn load16(p: *const u8) -> Self::Wide;
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn store1(p: *mut u8, value: u8);
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn store2(p: *mut u8, value: u16);
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn store4(p: *mut u8, value: u32);
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn store8(p: *mut u8, value: u64);
    /// # Safety
    /// As [`Side::load1`].
    unsafe fn store16(p: *mut u8, value: Self::Wide);
}

/// The longest copy [`short`] does.
pub(super) const SHORT: usize = 64;

/// Copies `len <= 64` bytes. Lengths that are not a power of two take two overlapping moves per
/// width; all loads of a length come before its stores.
///
/// # Safety
/// `src` and `dst` are valid for `len` bytes of the side's kind.
#[inline(always)]
pub(super) unsafe fn short<D, S>(dst: *mut u8, src: *const u8, len: usize)
where
    D: Side,
    S: Side<Wide = D::Wide>,
{
    // SAFETY: each offset below is at most `len` minus the width moved there.
    unsafe {
        match len {
            8 => D::store8(dst, S::load8(src)),
            4 => D::store4(dst, S::load4(src)),
            0 => {}
            1 => D::store1(dst, S::load1(src)),
            2 => D::store2(dst, S::load2(src)),
            3 => {
                let (low, high) = (S::load2(src), S::load1(src.add(2)));
                D::store2(dst, low);
                D::store1(dst.add(2), high);
            }
            5..=7 => {
                let (low, high) = (S::load4(src), S::load4(src.add(len - 4)));
                D::store4(dst, low);
                D::store4(dst.add(len - 4), high);
            }
            9..=15 => {
                let (low, high) = (S::load8(src), S::load8(src.add(len - 8)));
                D::store8(dst, low);
                D::store8(dst.add(len - 8), high);
            }
            16 => D::store16(dst, S::load16(src)),
            17..=32 => {
                let (low, high) = (S::load16(src), S::load16(src.add(len - 16)));
                D::store16(dst, low);
                D::store16(dst.add(len - 16), high);
            }
            _ => {
                let (a, b) = (S::load16(src), S::load16(src.add(16)));
                let (c, d) = (S::load16(src.add(len - 32)), S::load16(src.add(len - 16)));
                D::store16(dst, a);
                D::store16(dst.add(16), b);
                D::store16(dst.add(len - 32), c);
                D::store16(dst.add(len - 16), d);
            }
        }
    }
}

/// Accesses to memory that no other code touches, which the compiler may therefore optimize.
pub(super) struct Private<Wide>(core::marker::PhantomData<Wide>);

macro_rules! private_moves {
    ($($load:ident $store:ident: $t:ty),*) => {$(
        /// # Safety
        /// The requirements of [`Side`].
        #[inline(always)]
        unsafe fn $load(p: *const u8) -> $t {
            // SAFETY: guaranteed by the caller; no alignment is assumed.
            unsafe { p.cast::<$t>().read_unaligned() }
        }
        /// # Safety
        /// The requirements of [`Side`].
        #[inline(always)]
        unsafe fn $store(p: *mut u8, value: $t) {
            // SAFETY: guaranteed by the caller; no alignment is assumed.
            unsafe { p.cast::<$t>().write_unaligned(value) }
        }
    )*};
}

impl<W: Copy> Side for Private<W> {
    type Wide = W;
    private_moves!(load1 store1: u8, load2 store2: u16, load4 store4: u32, load8 store8: u64, load16 store16: W);
}
