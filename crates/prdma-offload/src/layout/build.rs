//! Making layouts, in normal form.

use super::{Layout, LayoutError, MOST_DIMS};
use bytemuck::Pod;

/// Returns the number of bytes of this many elements of `T`.
fn bytes<T>(elements: usize) -> Result<u64, LayoutError> {
    elements.checked_mul(size_of::<T>()).and_then(|bytes| u64::try_from(bytes).ok()).ok_or(LayoutError::Overflow)
}

impl Layout {
    /// Makes the layout of `len` elements, starting at element `start` (`MPI_Type_contiguous`).
    ///
    /// # Errors
    /// [`LayoutError::Overflow`].
    pub fn contiguous<T: Pod>(start: usize, len: usize) -> Result<Layout, LayoutError> {
        Layout::strided(bytes::<T>(start)?, bytes::<T>(len)?, &[])
    }

    /// Makes the layout of `count` blocks of `block` elements, the first starting at element
    /// `start` and each `stride` elements after the previous one (`MPI_Type_vector`, for strides
    /// that are not negative). Blocks that overlap, `stride < block`, can be sent but not
    /// [received](Layout::for_receiving).
    ///
    /// # Errors
    /// [`LayoutError::Overflow`].
    pub fn vector<T: Pod>(start: usize, count: usize, block: usize, stride: usize) -> Result<Layout, LayoutError> {
        Layout::strided(bytes::<T>(start)?, bytes::<T>(block)?, &[(count as u64, bytes::<T>(stride)?)])
    }

    /// Makes the layout of the part of an array of `sizes` elements that has `subsizes` elements
    /// starting at `starts`, the last dimension innermost (`MPI_Type_create_subarray` in C order).
    /// An array without dimensions is one element.
    ///
    /// # Errors
    /// [`LayoutError::Dimensions`], [`LayoutError::OutsideArray`], [`LayoutError::Overflow`]; with
    /// more than eight dimensions [`LayoutError::TooManyDims`], unless the part has all elements of
    /// enough of them.
    pub fn subarray<T: Pod>(sizes: &[usize], subsizes: &[usize], starts: &[usize]) -> Result<Layout, LayoutError> {
        if sizes.len() != subsizes.len() || sizes.len() != starts.len() {
            let (sizes, subsizes, starts) = (sizes.len(), subsizes.len(), starts.len());
            return Err(LayoutError::Dimensions { sizes, subsizes, starts });
        }
        for (dim, ((&size, &subsize), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
            if start.checked_add(subsize).is_none_or(|end| end > size) {
                return Err(LayoutError::OutsideArray { dim, start, subsize, size });
            }
        }
        if subsizes.contains(&0) {
            return Ok(Layout::nothing());
        }
        let mut element = bytes::<T>(1)?;
        let run = element;
        let mut offset = 0u64;
        let mut dims = Vec::with_capacity(sizes.len());
        for ((&size, &subsize), &start) in sizes.iter().zip(subsizes).zip(starts).rev() {
            let start = element.checked_mul(start as u64).ok_or(LayoutError::Overflow)?;
            offset = offset.checked_add(start).ok_or(LayoutError::Overflow)?;
            dims.push((subsize as u64, element));
            element = element.checked_mul(size as u64).ok_or(LayoutError::Overflow)?;
        }
        dims.reverse();
        Layout::strided(offset, run, &dims)
    }

    /// Makes the layout of runs of `run` bytes in nested loops: `dims` has the count of each loop
    /// and its distance from start to start, outermost first (nested `MPI_Type_create_hvector`).
    /// The first run starts at byte `offset`. All numbers are in bytes.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`], [`LayoutError::TooManyDims`].
    pub fn strided(offset: u64, run: u64, dims: &[(u64, u64)]) -> Result<Layout, LayoutError> {
        if run == 0 || dims.iter().any(|(count, _)| *count == 0) {
            return Ok(Layout::nothing());
        }
        let mut layout = Layout { offset, run, ..Layout::nothing() };
        for (count, stride) in dims.iter().rev().copied().filter(|(count, _)| *count > 1) {
            layout.repeat(count, stride)?;
        }
        layout.dims[..usize::from(layout.used)].reverse();
        layout.checked().ok_or(LayoutError::Overflow)
    }

    /// Adds an outer loop to the layout. While loops are added, the innermost distance is the first
    /// of `dims`.
    fn repeat(&mut self, count: u64, stride: u64) -> Result<(), LayoutError> {
        let used = usize::from(self.used);
        if used == 0 && stride == self.run {
            self.run = self.run.checked_mul(count).ok_or(LayoutError::Overflow)?;
            return Ok(());
        }
        if let Some((inner, step)) = self.dims[..used].last_mut()
            && inner.checked_mul(*step) == Some(stride)
        {
            *inner = inner.checked_mul(count).ok_or(LayoutError::Overflow)?;
            return Ok(());
        }
        if used == MOST_DIMS {
            return Err(LayoutError::TooManyDims);
        }
        self.dims[used] = (count, stride);
        self.used += 1;
        Ok(())
    }

    /// Returns the layout if neither its end nor its number of bytes overflows.
    fn checked(self) -> Option<Layout> {
        let (mut end, mut bytes) = (self.offset.checked_add(self.run)?, self.run);
        for (count, stride) in self.dims() {
            end = end.checked_add((count - 1).checked_mul(*stride)?)?;
            bytes = bytes.checked_mul(*count)?;
        }
        Some(self)
    }
}
