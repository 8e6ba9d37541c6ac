//! Writing the binary format.

use super::{
    super::{Schedule, Work, schedule::ANY},
    CALC, HEAD, MAGIC, OPERATION, POSITIONS, RECV, SEND,
};
use std::io::{self, Write};

impl Schedule {
    /// Writes the schedule in the binary format.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_binary(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(&MAGIC.to_le_bytes())?;
        out.write_all(&self.ranks().to_le_bytes())?;
        // The highest numbers, which are those of a u8.
        out.write_all(&[(self.cpus - 1) as u8, (self.nics - 1) as u8])?;
        let mut position = HEAD - 8 + POSITIONS * u64::from(self.ranks());
        for rank in 0..self.ranks() {
            out.write_all(&position.to_le_bytes())?;
            position += self.part_length(rank);
            out.write_all(&position.to_le_bytes())?;
        }
        let mut part = Vec::new();
        for rank in 0..self.ranks() {
            part.clear();
            self.append_part(rank, &mut part);
            out.write_all(&part)?;
        }
        Ok(())
    }

    fn roots(&self, rank: u32) -> impl Iterator<Item = usize> + '_ {
        self.range(rank).filter(|index| self.ops[*index].link == 0)
    }

    fn part_length(&self, rank: u32) -> u64 {
        let edges: usize = self.range(rank).map(|index| self.edges_of(index).len()).sum();
        (8 + 4 * self.roots(rank).count() + OPERATION * self.range(rank).len() + 4 * edges) as u64
    }

    fn append_part(&self, rank: u32, part: &mut Vec<u8>) {
        let range = self.range(rank);
        let mut append = |number: u32| part.extend_from_slice(&number.to_le_bytes());
        append(range.len() as u32);
        append(self.roots(rank).count() as u32);
        self.roots(rank).for_each(|index| append((index - range.start) as u32));
        let mut edge = 0u32;
        for index in range.clone() {
            let operation = self.operation(index);
            let (kind, peer, size, tag) = match operation.work {
                Work::Send { to, bytes, tag } => (SEND, to, bytes, tag),
                Work::Recv { from, bytes, tag } => (RECV, from.unwrap_or(ANY), bytes, tag.unwrap_or(ANY)),
                Work::Calc { nanoseconds } => (CALC, 0, nanoseconds, 0),
            };
            part.extend_from_slice(&self.ops[index].link.to_le_bytes());
            part.push(kind);
            part.extend_from_slice(&peer.to_le_bytes());
            part.extend_from_slice(&size.to_le_bytes());
            part.extend_from_slice(&tag.to_le_bytes());
            part.extend_from_slice(&[operation.cpu, operation.nic]);
            let edges = self.edges_of(index);
            let on_end = edges.iter().filter(|edge| !edge.is_on_start()).count() as u32;
            for count in [on_end, edges.len() as u32 - on_end] {
                part.extend_from_slice(&count.to_le_bytes());
                part.extend_from_slice(&edge.to_le_bytes());
                edge += count;
            }
        }
        for edge in range.clone().flat_map(|index| self.edges_of(index)) {
            part.extend_from_slice(&(edge.target() - range.start as u32).to_le_bytes());
        }
    }
}
