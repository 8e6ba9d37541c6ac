//! Views: elements of a buffer that are lent to the program.
//!
//! A view of a buffer that was made [in place](Buffer::in_place) is the memory itself, where the
//! rank's own memory is mapped. Elsewhere it is a copy, made with the view, and written back when
//! the view is dropped, or a loan of a provider that stores the memory ([`Lender`]): of a reading view, and of a
//! writing one of the whole buffer. The program sees the same in all cases.
//!
//! Views are entered in the buffer's table of claims: while a view exists, no request starts that
//! would write its bytes, or read bytes that it may write; and no view is made while such a request
//! is active, or was left broken.

use super::{Allocation, Buffer, Use, claims::ClaimTable, in_place::Run};
#[cfg(doc)]
use crate::PrdmaError;
use crate::{
    Result,
    layout::{Layout, MOST_DIMS},
};
use core::{
    fmt,
    ops::{Deref, DerefMut, Range},
};
#[cfg(doc)]
use rdma_fabric::provider::Lender;
use rdma_fabric::{LocalSpan, Pod, provider::Loan};

/// An element that can be lent to a program: plain data that any thread may use.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// Elements of a buffer, to be read.
///
/// It dereferences to a slice at no cost: its place is found when the view is made.
pub struct View<'b, T: Element>(Run<'b, T, false>);

/// Elements of a buffer, to be read and written.
///
/// It dereferences to a slice at no cost, as [`View`] does.
pub struct ViewMut<'b, T: Element>(Run<'b, T, true>);

/// Rows of a buffer, to be read: runs of the same length at nested, constant distances.
///
/// A row is addressed by one index for each distance, the outermost first.
pub struct Rows<'b, T: Element>(Lent<'b, T>);

/// Rows of a buffer, to be read and written.
pub struct RowsMut<'b, T: Element>(Lent<'b, T>);

/// Elements that are entered as a view.
pub(super) struct Lent<'b, T: Element> {
    pub(super) allocation: &'b Allocation,
    /// The view's number in the table of claims. It covers the bytes of all rows.
    number: u64,
    pub(super) writes: bool,
    /// The first element of the first row.
    start: usize,
    /// The number of elements of each row.
    run: usize,
    /// For each distance: the count, and the number of elements between consecutive starts. Those
    /// after `used` are `(1, 0)`.
    dims: [(usize, usize); MOST_DIMS],
    used: usize,
    pub(super) elements: Elements<T>,
}

/// The memory of the elements of a view.
pub(super) enum Elements<T> {
    /// The mapping of the buffer.
    Mapped,
    /// The region of the buffer, as the fabric lends it, until the view ends; and the bytes that were asked for.
    Lent(Option<Loan>, LocalSpan<u64>),
    /// The rows one after the other.
    Copied(Vec<T>),
}

impl<T: Element> Buffer<T> {
    /// Lends the elements in `range`, to be read.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`] if an active or a failed request receives some of them, or a view
    /// writes them; [`rdma_fabric::FabricError::OutOfBounds`].
    pub fn view(&self, range: Range<usize>) -> Result<View<'_, T>> {
        Lent::new(self, Use::Send, range.start, range.end.saturating_sub(range.start), &[])
            .map(|lent| View(Run::new(lent)))
    }

    /// Lends the elements in `range`, to be read and written.
    ///
    /// # Errors
    /// As [`Buffer::view`], and [`PrdmaError::InUse`] if an active request sends some of them, or a
    /// view reads them.
    pub fn view_mut(&self, range: Range<usize>) -> Result<ViewMut<'_, T>> {
        Lent::new(self, Use::Receive, range.start, range.end.saturating_sub(range.start), &[])
            .map(|lent| ViewMut(Run::new(lent)))
    }

    /// Lends rows of `run` elements, to be read. The first starts at element `start`; `dims` has,
    /// for each distance, the count and the number of elements from start to start, outermost
    /// first.
    ///
    /// # Errors
    /// As [`Buffer::view`]; [`PrdmaError::Layout`].
    pub fn rows(&self, start: usize, run: usize, dims: &[(usize, usize)]) -> Result<Rows<'_, T>> {
        Lent::new(self, Use::Send, start, run, dims).map(Rows)
    }

    /// Lends rows, as [`Buffer::rows`] does, to be read and written. They must not overlap.
    ///
    /// # Errors
    /// As [`Buffer::view_mut`]; [`PrdmaError::Layout`].
    pub fn rows_mut(&self, start: usize, run: usize, dims: &[(usize, usize)]) -> Result<RowsMut<'_, T>> {
        Lent::new(self, Use::Receive, start, run, dims).map(RowsMut)
    }
}

impl<'b, T: Element> Lent<'b, T> {
    fn new(buffer: &'b Buffer<T>, used: Use, start: usize, run: usize, dims: &[(usize, usize)]) -> Result<Self> {
        let allocation = &*buffer.memory.allocation;
        let bytes = |elements: usize| elements.saturating_mul(size_of::<T>()) as u64;
        let loops: Vec<_> = dims.iter().map(|(count, distance)| (*count as u64, bytes(*distance))).collect();
        if dims.len() > MOST_DIMS {
            return Err(crate::LayoutError::TooManyDims.into());
        }
        let mut layout = Layout::strided(bytes(start), bytes(run), &loops)?;
        if used == Use::Receive {
            layout = layout.for_receiving()?;
        }
        allocation.contains(layout.offset, layout.end() - layout.offset)?;
        let mut all = [(1, 0); MOST_DIMS];
        all[..dims.len()].copy_from_slice(dims);
        let number = allocation.claims.lend(used, &layout)?;
        let writes = used == Use::Receive;
        // If there are no bytes, `start` and the distances have no meaning.
        if layout.bytes() == 0 {
            all.iter_mut().for_each(|(_, distance)| *distance = 0);
        }
        let start = if layout.bytes() == 0 { 0 } else { start };
        // From here on, dropping the view removes its entry.
        let (used, elements) = (dims.len(), Elements::Mapped);
        let mut lent = Lent { allocation, number, writes, start, run, dims: all, used, elements };
        if allocation.mapped.is_none() {
            lent.elements = match allocation.borrowed::<T>(&layout, writes)? {
                Some((loan, span)) => Elements::Lent(Some(loan), span),
                None => {
                    let mut copy = vec![T::zeroed(); dims.iter().map(|(count, _)| count).product::<usize>() * run];
                    allocation.gather_into(layout.runs(), bytemuck::cast_slice_mut(&mut copy))?;
                    Elements::Copied(copy)
                }
            };
        }
        Ok(lent)
    }

    fn dims(&self) -> &[(usize, usize)] {
        &self.dims[..self.used]
    }

    /// Returns the start of row `at`: in the buffer, and among the rows.
    ///
    /// # Panics
    /// There is no such row.
    #[inline(always)]
    fn find(&self, at: &[usize]) -> (usize, usize) {
        assert_eq!(at.len(), self.used, "a row is named by as many numbers as there are distances");
        let (mut start, mut nth) = (self.start, 0);
        for (at, (count, distance)) in at.iter().zip(self.dims()) {
            assert!(at < count, "row {at} of {count}");
            start += at * distance;
            nth = nth * count + at;
        }
        (start, nth * self.run)
    }

    #[inline(always)]
    pub(super) fn row(&self, at: &[usize]) -> &[T] {
        let (start, nth) = self.find(at);
        match &self.elements {
            Elements::Mapped => self.in_place(start, self.run),
            Elements::Copied(copy) => &copy[nth..nth + self.run],
            Elements::Lent(Some(loan), _) => loan.slice(start * size_of::<T>(), self.run).expect("aligned and inside"),
            Elements::Lent(None, _) => unreachable!("a view that has not ended"),
        }
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, at: &[usize]) -> &mut [T] {
        let ((start, nth), run) = (self.find(at), self.run);
        if let Elements::Mapped = self.elements {
            return self.in_place_mut(start, run);
        }
        match &mut self.elements {
            Elements::Copied(copy) => &mut copy[nth..nth + run],
            Elements::Lent(Some(loan), _) => loan.slice_mut(start * size_of::<T>(), run).expect("aligned and inside"),
            Elements::Mapped | Elements::Lent(None, _) => unreachable!("a view that has not ended"),
        }
    }

    fn claims(&self) -> &ClaimTable {
        &self.allocation.claims
    }

    /// Writes a copy back.
    fn write_back(&self, copy: &[T]) -> Result<()> {
        // The distance of a single row has no meaning, and may be any number.
        let bytes = |elements: usize| elements.saturating_mul(size_of::<T>()) as u64;
        let loops: Vec<_> = self.dims().iter().map(|(count, distance)| (*count as u64, bytes(*distance))).collect();
        let layout = Layout::strided(bytes(self.start), bytes(self.run), &loops)?;
        self.allocation.scatter(layout.runs(), bytemuck::cast_slice(copy))
    }
}

impl<T: Element> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        match &mut self.elements {
            Elements::Copied(copy) if self.writes && !copy.is_empty() => {
                let copy = core::mem::take(copy);
                let written = self.write_back(&copy);
                debug_assert!(written.is_ok() || std::thread::panicking(), "own memory: {written:?}");
            }
            Elements::Lent(loan, span) if self.writes => self.allocation.give_back(span, loan.take()),
            Elements::Mapped | Elements::Copied(_) | Elements::Lent(..) => {}
        }
        self.claims().take_back(self.number);
    }
}

impl<T: Element> Rows<'_, T> {
    /// Returns a row.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn row(&self, at: &[usize]) -> &[T] {
        self.0.row(at)
    }
}

impl<T: Element> RowsMut<'_, T> {
    /// Returns a row, to be read.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn row(&self, at: &[usize]) -> &[T] {
        self.0.row(at)
    }

    /// Returns a row, to be written.
    ///
    /// # Panics
    /// There is no such row.
    #[inline]
    pub fn row_mut(&mut self, at: &[usize]) -> &mut [T] {
        self.0.row_mut(at)
    }
}

impl<T: Element> Deref for View<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.as_slice()
    }
}

impl<T: Element> Deref for ViewMut<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.as_slice()
    }
}

impl<T: Element> DerefMut for ViewMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_mut_slice()
    }
}

impl<T: Element> fmt::Debug for Lent<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.elements {
            Elements::Mapped => "in place",
            Elements::Lent(..) => "lent",
            Elements::Copied(_) => "a copy",
        };
        write!(f, "{} elements from {}, {:?}, {way}", self.run, self.start, self.dims())
    }
}

macro_rules! debug {
    ($($name:ident),*) => {$(
        impl<T: Element> fmt::Debug for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }
    )*};
}
debug!(View, ViewMut, Rows, RowsMut);
