//! Reading and writing registered memory.

use super::{super::prefetch::prefetch, Loc, Memory, SYMMETRIC, storage::LocalTable};
use bytemuck::cast;

/// Transfers longer than this, in bytes, are searched for zeros, so that long sparse ones take no
/// memory.
pub(crate) const SPARSE: usize = 64 << 10;

/// Returns whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

impl Memory {
    /// Returns the table of a rank's own regions.
    #[inline]
    fn local(&self, loc: &Loc) -> Option<&LocalTable> {
        self.local.get(loc.rank as usize)?.as_deref()
    }

    /// Returns whether no byte of the region was ever written at this rank.
    fn is_blank(&self, loc: &Loc) -> bool {
        match loc.symmetric() {
            Some(index) => self.symmetric[index].is_blank(loc.rank),
            None => self.local(loc).is_none_or(|table| table.is_blank(loc.index)),
        }
    }

    /// Returns the bytes of a place from `from` on that are stored together, or that were never written,
    /// and their number.
    #[inline]
    fn run(&self, loc: &Loc, from: usize) -> (Option<&[u8]>, usize) {
        let (offset, len) = (loc.offset as usize + from, loc.len as usize - from);
        match loc.symmetric() {
            Some(index) => self.symmetric[index].run(loc.rank, offset, len),
            None => match self.local(loc) {
                None => (None, len),
                Some(table) => table.run(&self.store, loc.index, offset, len),
            },
        }
    }

    /// Returns bytes of a place from `from` on, at least one, to be written.
    #[inline]
    fn run_mut(&mut self, loc: &Loc, from: usize) -> &mut [u8] {
        let (offset, len) = (loc.offset as usize + from, loc.len as usize - from);
        match loc.symmetric() {
            Some(index) => self.symmetric[index].run_mut(loc.rank, offset, len, &mut self.stored),
            None => {
                let table = self.local[loc.rank as usize].as_deref_mut().expect("a live local region has a table");
                table.run_mut(&mut self.store, loc.index, offset, len, &mut self.stored)
            }
        }
    }

    /// Loads a word of 4 or 8 bytes, zero-extended. The place must be live and aligned.
    #[inline]
    pub(crate) fn load(&self, loc: &Loc) -> u64 {
        if let Some(program) = self.program(loc) {
            let (mut word, mut half) = ([0; 8], [0; 4]);
            if loc.len == 8 {
                program.read(loc.offset, &mut word);
                return u64::from_ne_bytes(word);
            }
            program.read(loc.offset, &mut half);
            return u32::from_ne_bytes(half).into();
        }
        let at = loc.offset as usize >> 3;
        let word = match loc.symmetric() {
            Some(index) => self.symmetric[index].word(loc.rank, at),
            None => self.local(loc).and_then(|table| table.word(&self.store, loc.index, at)),
        };
        let Some(&word) = word else { return 0 };
        if loc.len == 8 { word } else { u64::from(cast::<u64, [u32; 2]>(word)[loc.offset as usize >> 2 & 1]) }
    }

    /// Stores a word of 4 or 8 bytes. The place must be live and aligned.
    #[inline]
    pub(crate) fn store(&mut self, loc: &Loc, value: u64) {
        if let Some(program) = self.program(loc) {
            if loc.len == 8 {
                program.write(loc.offset, &value.to_ne_bytes());
            } else {
                program.write(loc.offset, &(value as u32).to_ne_bytes());
            }
            return;
        }
        let (value, len) = (value.to_ne_bytes(), loc.len as usize);
        // An aligned word is in one page.
        let run = self.run_mut(loc, 0);
        if len == 8 {
            run.copy_from_slice(&value);
        } else {
            run.copy_from_slice(&cast::<[u8; 8], [[u8; 4]; 2]>(value)[usize::from(cfg!(target_endian = "big"))]);
        }
    }

    /// Copies into a live place of the rank that writes.
    #[inline]
    pub(crate) fn write_own(&mut self, loc: &Loc, from: &[u8]) {
        if loc.index & SYMMETRIC != 0 {
            self.own = (loc.index, loc.offset);
        }
        self.copy_in(loc, from);
    }

    /// Prefetches the memory that a rank will write if it acts like the rank before it.
    #[inline]
    pub(crate) fn prefetch(&self, rank: u32) {
        let (index, offset) = self.own;
        let region = self.symmetric.get((index & !SYMMETRIC) as usize);
        if let Some(word) = region.and_then(|region| region.word(rank, offset as usize >> 3)) {
            prefetch(word);
        }
    }

    /// Copies out of a live place; `into` has the same length.
    pub(crate) fn copy_out(&self, loc: &Loc, into: &mut [u8]) {
        if let Some(program) = self.program(loc) {
            return program.read(loc.offset, into);
        }
        let mut done = 0;
        while done < into.len() {
            let (run, len) = self.run(loc, done);
            let into = &mut into[done..done + len];
            match run {
                Some(run) => copy(into, run),
                None => into.fill(0),
            }
            done += len;
        }
    }

    /// Returns up to 8 bytes of a live place as the first bytes of a word.
    #[inline]
    pub(crate) fn short(&self, loc: &Loc) -> u64 {
        let mut word = [0; 8];
        self.copy_out(loc, &mut word[..loc.len as usize]);
        u64::from_ne_bytes(word)
    }

    /// Returns a copy of a live place. Bytes that were never written take no memory in the copy
    /// either.
    pub(crate) fn copied(&self, loc: &Loc) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.append_to(loc, &mut bytes);
        bytes
    }

    /// Appends the bytes of a live place to `into`.
    pub(crate) fn append_to(&self, loc: &Loc, into: &mut Vec<u8>) {
        let len = loc.len as usize;
        if let Some(program) = self.program(loc) {
            let before = into.len();
            into.resize(before + len, 0);
            return program.read(loc.offset, &mut into[before..]);
        }
        if into.is_empty() && len > SPARSE && self.is_blank(loc) {
            // The system zeroes these pages lazily; none is touched.
            *into = vec![0; len];
            return;
        }
        let mut done = 0;
        while done < len {
            let (run, len) = self.run(loc, done);
            match run {
                Some(run) => into.extend_from_slice(run),
                None => into.resize(into.len() + len, 0),
            }
            done += len;
        }
    }

    /// Copies into a live place; `from` has the same length. Writing many zeros over bytes that
    /// were never written changes nothing and takes no memory.
    pub(crate) fn copy_in(&mut self, loc: &Loc, from: &[u8]) {
        if let Some(program) = self.program(loc) {
            return program.write(loc.offset, from);
        }
        if from.len() > SPARSE && self.is_blank(loc) && is_zero(from) {
            return;
        }
        let mut done = 0;
        while done < from.len() {
            let run = self.run_mut(loc, done);
            let len = run.len();
            copy(run, &from[done..done + len]);
            done += len;
        }
    }
}

/// Copies between slices of equal length; a word is copied in one move.
#[inline]
fn copy(into: &mut [u8], from: &[u8]) {
    match (<&mut [u8; 8]>::try_from(&mut *into), <&[u8; 8]>::try_from(from)) {
        (Ok(into), Ok(from)) => *into = *from,
        _ => into.copy_from_slice(from),
    }
}
