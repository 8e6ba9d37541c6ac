//! The mappings of this process, as `/proc/self/maps` lists them.

use super::ShareError;
use rdma_fabric::FabricError;
use std::{fs, ops::Range};

/// A part of the address space with one mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    /// Whole pages.
    pub(crate) addresses: Range<usize>,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_executable: bool,
    pub(crate) is_shared: bool,
    /// The file's offset of the first byte.
    pub(crate) offset: usize,
    /// The file's number; 0 without a file.
    pub(crate) inode: u64,
}

/// The mappings of a process, in order.
#[derive(Debug)]
pub(crate) struct Areas(Vec<Area>);

/// Reads the mappings of this process.
pub(crate) fn of_this_process() -> Result<Areas, FabricError> {
    let text = fs::read_to_string("/proc/self/maps").map_err(|error| FabricError::System {
        call: &"read of /proc/self/maps",
        errno: error.raw_os_error().unwrap_or(0),
    })?;
    Ok(Areas(text.lines().filter_map(parse).collect()))
}

/// Parses a line such as `7f00-7f10 rw-s 00001000 00:01 77 /memfd:name`.
fn parse(line: &str) -> Option<Area> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let flags = words.next()?.as_bytes();
    let hex = |text: &str| usize::from_str_radix(text, 16).ok();
    let offset = hex(words.next()?)?;
    let inode = words.nth(1)?.parse().ok()?;
    let has = |at: usize, flag: u8| flags.get(at) == Some(&flag);
    Some(Area {
        addresses: hex(start)?..hex(end)?,
        is_readable: has(0, b'r'),
        is_writable: has(1, b'w'),
        is_executable: has(2, b'x'),
        is_shared: has(3, b's'),
        offset,
        inode,
    })
}

impl Areas {
    /// Returns the parts of `pages`, one for each mapping.
    ///
    /// # Errors
    /// [`ShareError::NotMapped`] if a page has no memory that may be read.
    pub(crate) fn cut(&self, pages: &Range<usize>) -> Result<Vec<Area>, ShareError> {
        let mut next = pages.start;
        let mut parts = Vec::new();
        for area in &self.0 {
            let (start, end) = (area.addresses.start.max(pages.start), area.addresses.end.min(pages.end));
            if start >= end {
                continue;
            }
            if start != next || !area.is_readable {
                break;
            }
            let offset = area.offset.saturating_add(start.saturating_sub(area.addresses.start));
            parts.push(Area { addresses: start..end, offset, ..area.clone() });
            next = end;
        }
        if next == pages.end { Ok(parts) } else { Err(ShareError::NotMapped(next)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00001000-00003000 r--p 00002000 08:01 55 /bin/program
00003000-00004000 rw-p 00000000 00:00 0 [heap]
00004000-00006000 rw-s 00010000 00:01 77 /memfd:with a space (deleted)
00007000-00008000 ---p 00000000 00:00 0
";

    #[test]
    fn pages_are_cut_where_mappings_end() {
        let areas = Areas(MAPS.lines().filter_map(parse).collect());
        let parts = areas.cut(&(0x2000..0x5000)).unwrap();
        let seen: Vec<_> = parts.iter().map(|area| (area.addresses.clone(), area.offset, area.inode)).collect();
        assert_eq!(seen, [(0x2000..0x3000, 0x3000, 55), (0x3000..0x4000, 0, 0), (0x4000..0x5000, 0x10000, 77)]);
        assert!(parts[2].is_shared && parts[1].is_writable && !parts[0].is_writable);
        assert_eq!(areas.cut(&(0x5000..0x7000)), Err(ShareError::NotMapped(0x6000)));
        assert_eq!(areas.cut(&(0x7000..0x8000)), Err(ShareError::NotMapped(0x7000)));
        assert_eq!(areas.cut(&(0x0..0x2000)), Err(ShareError::NotMapped(0)));
    }

    #[test]
    fn this_process_has_its_own_stack() {
        let local = 7u8;
        let page = (&raw const local).addr() / 4096 * 4096;
        let parts = of_this_process().unwrap().cut(&(page..page + 4096)).unwrap();
        assert!(parts.len() == 1 && parts[0].is_writable && !parts[0].is_shared);
    }
}
