//! Memory of the program that shares its pages with the rank's heap.
//!
//! Programs in C register whatever memory they have: blocks of `malloc`, arrays of the program, the
//! stack. For other ranks to access such memory like the heap, with atomics and without system
//! calls, its pages are *replaced*: their bytes are copied to pages of the job's memory file, which
//! are then mapped in their place. The program keeps its addresses; the pages stay shared until the
//! program unmaps them.
//!
//! | module | responsibility |
//! |---|---|
//! | [`windows`] | the part of the heap that stands for each part of the address space |
//! | [`areas`] | the mappings of this process, read from the system |
//! | [`replace`] | copying and replacing pages |
//! | [`faults`] | threads that write to a page while it is replaced |
//!
//! Registrations share pages: two blocks of `malloc` may have bytes on one page. So a *window* of
//! the heap stands for a whole neighbourhood of addresses, and every page has one place in it.

pub(crate) mod areas;
mod faults;
mod replace;
pub(crate) mod windows;

use super::{
    allocator::{Allocator, Pages, out_of_memory},
    regions::{self, RegionKind},
};
use crate::endpoint::Endpoint;
use core::{ops::Range, ptr::NonNull};
use rdma_fabric::{FabricError, Region, RegionKey};
use std::os::fd::{AsFd, BorrowedFd};
use windows::Window;

/// Why memory of the program could not be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShareError {
    /// A page has no memory, or none that may be read.
    #[error("there is no readable memory at address {0:#x}")]
    NotMapped(usize),
    /// A page that other mappings share cannot be replaced.
    #[error("the memory at address {0:#x} is shared with other processes or files, or holds code")]
    NotPrivate(usize),
    /// Registered memory lies in a window that ends within the range.
    #[error(
        "the memory at address {0:#x} continues beyond what was set aside for its neighbourhood; larger segments set more aside"
    )]
    Straddles(usize),
    /// The heap, the table of regions or the system has no room.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// A rank's registered memory of the program.
#[derive(Debug, Default)]
pub(crate) struct ProgramMemory {
    windows: Vec<Window>,
    /// The registered bytes, as addresses, and the entry of each region.
    registered: Vec<(Range<usize>, u32)>,
}

impl ProgramMemory {
    /// Returns whether all pages of `pages` belong to registrations, so that none needs replacing.
    fn covers(&self, pages: &Range<usize>) -> bool {
        let page = rustix::param::page_size();
        let outer = |bytes: &Range<usize>| bytes.start / page * page..bytes.end.next_multiple_of(page);
        self.registered.iter().map(|(bytes, _)| outer(bytes)).any(|of| of.start <= pages.start && pages.end <= of.end)
    }
}

impl Allocator {
    /// Ends a registration of the program's memory. Its pages stay where they are.
    pub(crate) fn end_program_region(&mut self, segment: &super::Mapping, key: RegionKey) {
        self.program.registered.retain(|(_, index)| *index != key.index);
        let index = key.index as usize;
        if regions::deregister(segment, index) {
            self.give_index(index);
        }
    }

    /// Finds the window for `pages`, or takes one from the heap.
    fn window_for(&mut self, endpoint: &Endpoint, pages: &Range<usize>) -> Result<Window, ShareError> {
        let segment = endpoint.segment();
        let known = &self.program.windows;
        if let Some(window) = known.iter().find(|window| window.contains(pages)) {
            return Ok(window.clone());
        }
        if let Some(window) = known.iter().find(|window| window.overlaps(pages)) {
            let live = self.program.registered.iter().any(|(bytes, _)| window.overlaps(bytes));
            if live {
                return Err(ShareError::Straddles(pages.start));
            }
            // No other rank accesses its bytes; pages of it that are still in place are copied.
            let window = window.clone();
            self.program.windows.retain(|other| *other != window);
        }
        let len = pages.end.saturating_sub(pages.start);
        let heap = segment.heap_len();
        let mut refused = None;
        for margin in windows::margins(heap) {
            let wanted = windows::around(pages, margin, &self.program.windows);
            let bytes = wanted.end.saturating_sub(wanted.start);
            match self.heap.take_local(bytes.saturating_add(super::layout::PAGE)) {
                Ok(extent) => {
                    let at = extent.offset.next_multiple_of(super::layout::PAGE);
                    let window = Window { addresses: wanted, heap_at: at };
                    self.program.windows.push(window.clone());
                    return Ok(window);
                }
                Err(available) => refused = Some(available),
            }
        }
        Err(out_of_memory(segment, endpoint.me(), len, refused.unwrap_or(0)).into())
    }
}

impl Endpoint {
    /// Registers `len` bytes of the program from `start` on. Other ranks access them as they access
    /// the heap. Its region ends with the value returned.
    ///
    /// # Safety
    /// The program lets other ranks access these bytes until the region ends, and keeps them mapped.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn share(&self, start: NonNull<u8>, len: usize) -> Result<Region, ShareError> {
        let page = rustix::param::page_size();
        let bytes = start.addr().get()..start.addr().get().saturating_add(len);
        let pages = bytes.start / page * page..bytes.end.checked_next_multiple_of(page).unwrap_or(bytes.end);
        let mut allocator = self.allocator();
        let allocator = &mut *allocator;
        allocator.settle(self.job(), self.segment());
        let is_covered = allocator.program.covers(&pages);
        let window = allocator.window_for(self, &pages)?;
        let Some(heap_at) = window.heap_of(bytes.start) else { return Err(ShareError::Straddles(bytes.start)) };
        if !is_covered {
            let Pages::File { file, heap_at: heap_in_file } = &allocator.pages else {
                return Err(FabricError::Unsupported {
                    feature: &"registered memory of the program in private memory",
                }
                .into());
            };
            let at = heap_in_file.saturating_add(window.heap_at);
            let inode = rustix::fs::fstat(file).map_err(crate::processes::memory_file::refused(&"fstat"))?.st_ino;
            let place = Place { file: file.as_fd(), inode, file_at: at, window: window.clone() };
            for area in areas::of_this_process()?.cut(&pages)? {
                let is_ours = area.is_shared && area.inode == place.inode;
                if is_ours && area.offset == place.offset_of(area.addresses.start) {
                    continue;
                }
                // A page of an earlier window is copied like the program's own.
                if (area.is_shared && !is_ours) || area.is_executable {
                    return Err(ShareError::NotPrivate(area.addresses.start));
                }
                replace::replace(self.segment(), &place, &area)?;
            }
        }
        let index = allocator.take_index(self.me())?;
        let key = regions::register(self.segment(), index, heap_at, len, RegionKind::Program);
        allocator.program.registered.push((bytes, key.index));
        Ok(super::registration::Registration::program(self.clone(), len, key))
    }
}

/// The pages of the memory file that stand for a window's addresses.
#[derive(Debug)]
struct Place<'a> {
    file: BorrowedFd<'a>,
    /// The file's number.
    inode: u64,
    /// Offset in the file of the window's first byte.
    file_at: usize,
    window: Window,
}

impl Place<'_> {
    /// Returns the offset in the file of the byte at `address`.
    fn offset_of(&self, address: usize) -> usize {
        self.file_at.saturating_add(address.saturating_sub(self.window.addresses.start))
    }
}
