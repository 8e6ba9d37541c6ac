//! Reading the binary format. Nothing in a file is trusted: each position, count and index is checked.

use super::{
    super::{BadSchedule, Builder, Operation, Reason, Schedule, Work, schedule::ANY},
    CALC, HEAD, MAGIC, OPERATION, POSITIONS, RECV, SEND, USED, is_binary,
};
use std::io::{BufRead, Seek, SeekFrom};

impl Schedule {
    /// Reads a schedule in the binary format, or in the text format if it does not start with the
    /// binary one's number.
    ///
    /// # Errors
    /// If it isn't a schedule, with the place of the mistake.
    pub fn read(mut file: impl BufRead + Seek) -> Result<Schedule, BadSchedule> {
        let mut start = [0; 8];
        let is_binary = match file.read_exact(&mut start) {
            Ok(()) => is_binary(&start),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error.into()),
        };
        file.rewind()?;
        if is_binary { Schedule::read_binary(file) } else { Schedule::read_text(file) }
    }

    /// Reads a schedule in the binary format.
    ///
    /// # Errors
    /// If it isn't one, with the offset of the mistake in the file.
    pub fn read_binary(mut file: impl BufRead + Seek) -> Result<Schedule, BadSchedule> {
        let length = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut head = Part::take(&mut file, "the head", 0, HEAD, length)?;
        match head.u64() {
            MAGIC => {}
            USED => return Err(head.wrong(Reason::NoSchedule("LogGOPSim has used this schedule up (--save-mem)"))),
            _ => return Err(head.wrong(Reason::NoSchedule("a binary schedule starts with the number 4223"))),
        }
        let ranks = head.u32();
        let mut builder = Builder::new(ranks).map_err(|reason| head.wrong(reason))?;
        let mut positions = Part::take(&mut file, "the table of ranks", HEAD, POSITIONS * u64::from(ranks), length)?;
        let mut at = positions.end();
        for _ in 0..ranks {
            // Positions count from behind the first number.
            let (start, end) = (positions.u64().saturating_add(8), positions.u64().saturating_add(8));
            if end < start {
                return Err(positions.wrong(Reason::Truncated { what: "a rank's part", end, available: start }));
            }
            if start != at {
                file.seek(SeekFrom::Start(start))?;
            }
            Part::take(&mut file, "a rank's part", start, end - start, length)?.rank(&mut builder)?;
            at = end;
        }
        Ok(builder.finish()?)
    }
}

/// Bytes of the file. Reading past their end gives zeros; lengths are checked before.
#[derive(Debug)]
struct Part {
    bytes: Vec<u8>,
    /// The offset in the file.
    offset: u64,
    /// The number of bytes read.
    at: usize,
}

impl Part {
    /// Reads bytes of a file. The length is compared with the file's before memory is taken.
    fn take(
        file: &mut impl BufRead,
        what: &'static str,
        offset: u64,
        count: u64,
        length: u64,
    ) -> Result<Part, BadSchedule> {
        let end = offset.saturating_add(count);
        if end > length {
            let reason = Reason::Truncated { what, end, available: length };
            return Err(BadSchedule::Byte { offset, reason });
        }
        let mut bytes = vec![0; count as usize];
        file.read_exact(&mut bytes)?;
        Ok(Part { bytes, offset, at: 0 })
    }

    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }

    fn number<const N: usize>(&mut self) -> [u8; N] {
        let number = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()).copied();
        self.at += N;
        number.unwrap_or([0; N])
    }

    fn u8(&mut self) -> u8 {
        self.number::<1>()[0]
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.number())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.number())
    }

    /// Returns an error at the last place that was read.
    fn wrong(&self, reason: Reason) -> BadSchedule {
        BadSchedule::Byte { offset: self.offset + self.at as u64, reason }
    }

    /// Reads a rank.
    fn rank(mut self, builder: &mut Builder) -> Result<(), BadSchedule> {
        let (count, roots) = (self.u32(), self.u32());
        let (first, edges) = (8 + 4 * u64::from(roots), 8 + 4 * u64::from(roots) + OPERATION as u64 * u64::from(count));
        let available = self.bytes.len() as u64;
        if edges > available {
            return Err(self.wrong(Reason::Truncated { what: "a rank's operations", end: edges, available }));
        }
        // The format leaves nothing between or behind the tables, and lists no edge twice.
        let edge_count = (available - edges) / 4;
        let mut expected = Vec::with_capacity(count as usize);
        self.at = first as usize;
        for _ in 0..count {
            expected.push(self.operation(builder)?);
        }
        let stored = expected.iter().map(|operation| u64::from(operation.on_end.1) + u64::from(operation.on_start.1));
        let stored = stored.sum();
        if stored != edge_count {
            let what = "edges";
            return Err(self.wrong(Reason::Inconsistent { what, stored, counted: edge_count }));
        }
        let mut counted = vec![0u32; count as usize];
        for (number, operation) in expected.iter().enumerate() {
            for (on_start, (edges_from, length)) in [(false, operation.on_end), (true, operation.on_start)] {
                let end = u64::from(edges_from) + u64::from(length);
                self.at = operation.at;
                if length > 0 && end > edge_count {
                    return Err(self.wrong(Reason::Truncated { what: "edges", end, available: edge_count }));
                }
                self.at = edges as usize + 4 * edges_from as usize;
                for _ in 0..length {
                    let later = self.u32();
                    let label = |number| builder.label(number).map_err(|reason| self.wrong(reason));
                    let (later_label, earlier) = (label(later)?, label(number as u32)?);
                    let added = if on_start {
                        builder.irequires(later_label, earlier)
                    } else {
                        builder.requires(later_label, earlier)
                    };
                    added.map_err(|reason| self.wrong(reason))?;
                    counted[later as usize] += 1;
                }
            }
        }
        self.check_counts(&expected, &counted, roots)?;
        builder.end_rank().map_err(|reason| self.wrong(reason))
    }

    fn operation(&mut self, builder: &mut Builder) -> Result<Stored, BadSchedule> {
        let at = self.at;
        let dependencies = self.u32();
        let (kind, peer, size, tag) = (self.u8(), self.u32(), self.u64(), self.u32());
        let (cpu, nic) = (self.u8(), self.u8());
        let or_any = |number| if number == ANY { None } else { Some(number) };
        let work = match kind {
            SEND => Work::Send { to: peer, bytes: size, tag },
            RECV => Work::Recv { from: or_any(peer), bytes: size, tag: or_any(tag) },
            CALC => Work::Calc { nanoseconds: size },
            _ => {
                self.at = at + 4;
                let found = kind.to_string();
                return Err(self.wrong(Reason::Expected { expected: "the kind 1, 2 or 3", found }));
            }
        };
        builder.add(Operation { work, cpu, nic }).map_err(|reason| {
            self.at = at;
            self.wrong(reason)
        })?;
        let [on_end, first_on_end, on_start, first_on_start] = core::array::from_fn(|_| self.u32());
        Ok(Stored { at, dependencies, on_end: (first_on_end, on_end), on_start: (first_on_start, on_start) })
    }

    /// Compares the counts of dependencies, and the list of operations without any, with the edges.
    fn check_counts(&mut self, stored: &[Stored], counted: &[u32], roots: u32) -> Result<(), BadSchedule> {
        for (operation, counted) in stored.iter().zip(counted) {
            if operation.dependencies != *counted {
                self.at = operation.at;
                return Err(self.wrong(Reason::Inconsistent {
                    what: "dependencies",
                    stored: operation.dependencies.into(),
                    counted: (*counted).into(),
                }));
            }
        }
        self.at = 4;
        let without = counted.iter().filter(|count| **count == 0).count() as u64;
        if u64::from(roots) != without {
            let what = "operations without dependencies";
            return Err(self.wrong(Reason::Inconsistent { what, stored: roots.into(), counted: without }));
        }
        Ok(())
    }
}

/// The counts and positions stored with an operation.
#[derive(Debug)]
struct Stored {
    /// Where, in the part.
    at: usize,
    dependencies: u32,
    /// The first edge from its end, and their number.
    on_end: (u32, u32),
    on_start: (u32, u32),
}
