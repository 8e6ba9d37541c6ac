//! Writing the text format.

use super::super::{Schedule, Work};
use std::io::{self, Write};

impl Schedule {
    /// Writes the schedule as text. Operations have the labels `l1`, `l2` and so on.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_text(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "num_ranks {}", self.ranks())?;
        for rank in 0..self.ranks() {
            writeln!(out, "\nrank {rank} {{")?;
            let range = self.range(rank);
            for (index, label) in range.clone().zip(1..) {
                let operation = self.operation(index);
                write!(out, "l{label}: ")?;
                match operation.work {
                    Work::Send { to, bytes, tag } => write!(out, "send {bytes}b to {to} tag {tag}")?,
                    Work::Recv { from, bytes, tag } => {
                        let or_any = |number: Option<u32>| number.map_or(-1, i64::from);
                        write!(out, "recv {bytes}b from {} tag {}", or_any(from), or_any(tag))?;
                    }
                    Work::Calc { nanoseconds } => write!(out, "calc {nanoseconds}")?,
                }
                if operation.cpu > 0 {
                    write!(out, " cpu {}", operation.cpu)?;
                }
                if operation.nic > 0 && !matches!(operation.work, Work::Calc { .. }) {
                    write!(out, " nic {}", operation.nic)?;
                }
                writeln!(out)?;
            }
            for (index, label) in range.clone().zip(1..) {
                for edge in self.edges_of(index) {
                    let later = edge.target() as usize - range.start + 1;
                    let word = if edge.is_on_start() { "irequires" } else { "requires" };
                    writeln!(out, "l{later} {word} l{label}")?;
                }
            }
            writeln!(out, "}}")?;
        }
        Ok(())
    }
}
