//! Columns of a matrix, which CPUs put as blocks: they arrive regardless of which puts are
//! available, and the bytes between them are unchanged. A put of blocks that completes too early is
//! detected.

use super::fx100;
use checks::jobs::{threads, virtual_time};
use prdma_offload::{Buffer, Form, Layout, Neighbourhood, Options, Topology};
use rdma_fabric::{
    Blocks, Fabric, Group, ProgramResult, forward,
    provider::{BlockPuts, Place, Posted, Provider, Source},
};
use std::sync::Mutex;
use tofu2_virt::Platform;

/// The rows and columns of a matrix, and the columns that are exchanged, of each of three kinds: few
/// enough for short blocks, too many for that, and one.
const ROWS: u64 = 30;
const COLUMNS: u64 = 40;
const EXCHANGED: [(u64, u64); 3] = [(1, 2), (7, 20), (39, 1)];

/// Exchanges columns with the other rank a few times; returns whether all of them, and nothing
/// else, arrived each time.
async fn columns_arrive(fabric: Fabric, exchanged: &[(u64, u64)]) -> ProgramResult<bool> {
    let group = Group::world(&fabric).await?;
    let (me, other) = (group.me(), 1 - group.me());
    let edges = vec![other; exchanged.len()];
    let mut hood = Neighbourhood::new(group, Topology::graph(2, me, &edges, &edges)?).await?;
    let buffer = || Buffer::<u64>::new(&fabric, (ROWS * COLUMNS) as usize);
    let (send, receive) = (buffer()?, buffer()?);
    let layout = |(first, columns): &(u64, u64)| Layout::strided(8 * first, 8 * columns, &[(ROWS, 8 * COLUMNS)]);
    let columns = exchanged.iter().map(layout).collect::<Result<Vec<_>, _>>()?;
    let options = Options { direct_blocks: u32::MAX, ..Options::form(Form::Cpu) };
    let mut request = hood.alltoallw_init(&send, &columns, &receive, &columns, &options).await?;
    let value = |rank: usize, turn: u64, at: u64| (turn << 32) + (at << 1) + rank as u64;
    let is_put = |at: u64| exchanged.iter().any(|(first, columns)| (*first..first + columns).contains(&(at % COLUMNS)));
    let (mut seen, mut right) = (vec![0; (ROWS * COLUMNS) as usize], true);
    for turn in 1..=4 {
        let all: Vec<_> = (0..ROWS * COLUMNS).map(|at| value(me, turn, at)).collect();
        send.write(0, &all)?;
        request.start().await?;
        request.wait().await?;
        receive.read(0, &mut seen)?;
        right &= (0..).zip(&seen).all(|(at, word)| *word == if is_put(at) { value(other, turn, at) } else { 0 });
    }
    Ok(right)
}

#[test]
fn columns_arrive_by_blocks_and_one_by_one() {
    let program = &async |fabric| columns_arrive(fabric, &EXCHANGED).await;
    assert_eq!(threads(2).run(program).expect("threads"), [true; 2]);
    assert_eq!(fx100(2).run(program).expect("blocks").outs, [true; 2]);
    // A machine without such puts, with atomics in software.
    assert_eq!(virtual_time(&Platform::fx10(), 2).run(program).expect("one by one").outs, [true; 2]);
}

/// A layer whose puts of blocks, if it is `hasty`, complete and are visible when all blocks except
/// the last are; the last is put after the next put.
#[derive(Debug)]
struct Layer {
    below: Fabric,
    hasty: bool,
    /// The destination and the source of the last block.
    late: Mutex<Option<[Place; 2]>>,
}

impl Provider for Layer {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, get, copy, atomic, nop);
    forward!(poll, test, forget, try_notice, poll_wait, end_wait, now, detach, optional);

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        let posted = self.below.provider().put(to, from, notice);
        if let Some([to, from]) = self.late.lock().expect("one thread").take()
            && let Posted::Pending(token) = self.below.provider().put(&to, Source::Place(&from), None)
        {
            self.below.provider().forget(token);
        }
        posted
    }

    fn block_puts(&self) -> Option<&dyn BlockPuts> {
        Some(self)
    }
}

impl BlockPuts for Layer {
    fn put_blocks(&self, to: &Place, from: &Place, len: usize, blocks: Blocks) -> Posted {
        let puts = self.below.provider().block_puts().expect("there are some");
        if !self.hasty {
            return puts.put_blocks(to, from, len, blocks);
        }
        let fewer = Blocks { count: blocks.count - 1, ..blocks };
        let (before, last) = (fewer.extent(len).expect("fewer"), to.len() - len);
        let part = |place: &Place, at, len| place.part(at, len).expect("inside");
        *self.late.lock().expect("one thread") = Some([part(to, last, len), part(from, last, len)]);
        puts.put_blocks(&part(to, 0, before), &part(from, 0, before), len, fewer)
    }
}

#[test]
fn a_put_of_blocks_that_is_over_before_the_last_one_is_found() {
    for (columns, hasty) in EXCHANGED.into_iter().flat_map(|columns| [(columns, false), (columns, true)]) {
        let program = &async |fabric: Fabric| {
            let layer = Layer { below: fabric.clone(), hasty, late: Mutex::default() };
            columns_arrive(fabric.layered(layer), &[columns]).await
        };
        assert_eq!(fx100(2).run(program).expect("nothing fails").outs, [!hasty; 2], "{columns:?}");
    }
}
