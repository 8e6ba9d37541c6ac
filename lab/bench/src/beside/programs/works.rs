//! The programs that are measured on both sides.

use crate::foreign::source::Source;

/// The header of the programs in C.
pub(super) const HEADER: [&str; 2] = ["program.h", include_str!("../../../../../benches/mpi/program.h")];

/// An example of ours and the program in C that does the same.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) what: &'static str,
    pub(super) example: &'static str,
    /// Words of the example that have no number.
    pub(super) flags: &'static [&'static str],
    /// The example's options for the numbers.
    pub(super) options: &'static [&'static str],
    pub(super) source: Source,
    /// What takes the time that both print.
    pub(super) unit: &'static str,
    /// The part of ours that takes the time.
    pub(super) part: &'static str,
    full: &'static [u32],
    quick: &'static [u32],
}

impl Program {
    /// Returns the numbers that both programs take.
    pub(super) fn numbers(&self, quick: bool) -> &'static [u32] {
        if quick { self.quick } else { self.full }
    }
}

macro_rules! source {
    ($name:literal) => {
        Source {
            name: $name,
            text: include_str!(concat!("../../../../../benches/mpi/", $name, ".c")),
            header: Some(HEADER),
        }
    };
}

/// Cells of a side, and steps.
const GRID: &[&str] = &["--side", "--steps"];

pub(super) const PROGRAMS: [Program; 6] = [
    Program {
        what: "Jacobi, 512 by 512, exchange overlapped",
        example: "heat_2d",
        flags: &[],
        options: GRID,
        source: source!("jacobi"),
        unit: "step",
        part: "exchanges",
        full: &[512, 2000],
        quick: &[64, 20],
    },
    Program {
        what: "Jacobi, 512 by 512, by reflect",
        example: "jacobi",
        flags: &[],
        options: GRID,
        source: source!("jacobi"),
        unit: "step",
        part: "reflects",
        full: &[512, 2000],
        quick: &[64, 20],
    },
    Program {
        what: "life, 1024 by 1024",
        example: "life",
        flags: &[],
        options: GRID,
        source: source!("life"),
        unit: "step",
        part: "reflects",
        full: &[1024, 1000],
        quick: &[64, 20],
    },
    Program {
        what: "hash table, one insert for nine lookups",
        example: "distributed_hashtable",
        flags: &[],
        options: &["--keys"],
        source: source!("hash_table"),
        unit: "call",
        part: "locks and the table",
        full: &[20_000],
        quick: &[100],
    },
    Program {
        what: "work queue, empty tasks",
        example: "work_farm",
        flags: &["--spare"],
        options: &["--tasks"],
        source: source!("work_queue"),
        unit: "task",
        part: "messages from any sender",
        full: &[200_000],
        quick: &[100],
    },
    Program {
        what: "matrix product, 512 by 512",
        example: "matmul_summa",
        flags: &[],
        options: &["--size", "--panel"],
        source: source!("matmul"),
        unit: "product",
        part: "broadcasts",
        full: &[512, 32],
        quick: &[48, 16],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_belong_to_options() {
        for program in &PROGRAMS {
            let counts = [program.options.len(), program.full.len(), program.quick.len()];
            assert!(counts.iter().all(|count| *count == counts[0]), "{}", program.example);
            assert!(program.source.text.contains(&format!("end(\"{}\"", program.unit)), "{}", program.source.name);
        }
    }
}
