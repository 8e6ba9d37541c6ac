//! The layer below: matrices in any memory.

use crate::harness::{everywhere, shapes};
use blacs::{Blacs, Combine, Grid, Matrix, MatrixMut, Memory, MemoryMut, Order, Precision, Scope, Shape, Topology};
use core::ops::Range;
use rdma_fabric::{Fabric, ProgramResult};

/// Memory that records accesses outside a shape's runs.
struct Strict {
    bytes: Vec<u8>,
    /// In bytes.
    runs: Vec<Range<usize>>,
}

impl Strict {
    fn new(shape: &Shape, size: usize, byte: impl Fn(usize) -> u8) -> Self {
        let runs = shape.runs().map(|run| run.start * size..run.end * size).collect();
        Strict { bytes: (0..shape.extent() * size).map(byte).collect(), runs }
    }

    fn check(&self, range: &Range<usize>) {
        let is_inside = self.runs.iter().any(|run| run.start <= range.start && range.end <= run.end);
        assert!(is_inside, "{range:?} is not in {:?}", self.runs);
    }
}

impl Memory for Strict {
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.check(&range);
        &self.bytes[range]
    }
}

impl MemoryMut for Strict {
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        self.check(&range);
        &mut self.bytes[range]
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.check(&range);
        &self.bytes[range]
    }
}

#[test]
fn memory_is_asked_for_what_belongs_to_the_shape_only() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        for shape in shapes() {
            for precision in [Precision::I, Precision::Long, Precision::S, Precision::D, Precision::C, Precision::Z] {
                let size = precision.bytes();
                let content = |at: usize| (at * 7 + at / 256) as u8;
                let all = (Scope::All, Topology::Default);
                if grid.column() == 0 {
                    let a = Strict::new(&shape, size, content);
                    grid.send_bytes(precision, &shape, &a, (0, 1)).await?;
                    grid.broadcast_send_bytes(all.0, all.1, precision, &shape, &a).await?;
                } else {
                    for is_broadcast in [false, true] {
                        let mut a = Strict::new(&shape, size, |_| 0xee);
                        match is_broadcast {
                            false => grid.recv_bytes(precision, &shape, &mut a, (0, 0)).await?,
                            true => grid.broadcast_recv_bytes(all.0, all.1, precision, &shape, &mut a, (0, 0)).await?,
                        }
                        for (at, byte) in a.bytes.iter().enumerate() {
                            let is_inside = a.runs.iter().any(|run| run.contains(&at));
                            assert_eq!(*byte, if is_inside { content(at) } else { 0xee }, "{shape:?} at {at}");
                        }
                    }
                }
                // All elements are zero: the sum is zero, and among equal contributions the first
                // one wins.
                let mut a = Strict::new(&shape, size, |_| 0);
                grid.combine_bytes(all.0, all.1, Combine::Sum, precision, &shape, &mut a, None, None).await?;
                assert!(a.bytes.iter().all(|byte| *byte == 0));
                let mut places = Vec::new();
                let mut found = |i, j, winner| places.push((i, j, winner));
                let (least, to) = (Combine::AbsMin, Some((0, 1)));
                grid.combine_bytes(all.0, all.1, least, precision, &shape, &mut a, Some(&mut found), to).await?;
                let expected = crate::harness::places(&shape).into_iter().map(|(i, j)| (i, j, (0, 1)));
                let expected: Vec<_> = expected.filter(|_| grid.column() == 1).collect();
                assert_eq!(places, expected, "{shape:?}");
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// Futures of all calls may move between threads, as executors with several threads need it.
#[test]
fn calls_can_be_sent_to_other_threads() {
    fn sendable<T: Send>(future: T) -> T {
        future
    }

    async fn all(grid: &Grid) -> ProgramResult<()> {
        let (mut a, b) = ([1.0, 2.0], [3.0, 4.0]);
        sendable(grid.send(Matrix::new(&b, 2, 1, 2)?, (0, 0))).await?;
        sendable(grid.recv(MatrixMut::new(&mut a, 2, 1, 2)?, (0, 0))).await?;
        sendable(grid.broadcast_send(Scope::Row, Topology::Default, Matrix::new(&b, 2, 1, 2)?)).await?;
        sendable(grid.sum(Scope::Row, Topology::Default, MatrixMut::new(&mut a, 2, 1, 2)?, None)).await?;
        sendable(grid.amax(Scope::Row, Topology::Default, MatrixMut::new(&mut a, 2, 1, 2)?, None, None)).await?;
        sendable(grid.barrier(Scope::All)).await?;
        assert_eq!(a, b);
        Ok(())
    }

    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = sendable(blacs.grid(Order::RowMajor, 1, 1)).await?.expect("all processes");
        all(&grid).await?;
        sendable(grid.exit()).await?;
        Ok(sendable(blacs.exit()).await?)
    });
}
