//! Puts of several blocks.

use super::{existing, neighbour, world_and_region};
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    BlockPut, Blocks, Deps, Fabric, FabricError, LocalSpan, Pod, ProgramResult, Rank, RemoteAddr, RemoteSpan, Result,
    error::BlocksError,
};

/// Bytes of the memory from which blocks are put, and of the memory to which they are put.
const ROOM: usize = 12_000;

/// A cell of a region.
trait Cell: Pod + PartialEq + Unpin {
    /// Returns a value that depends on as many bits of `number` as fit, and is never
    /// [`Cell::BLANK`].
    fn of(number: usize) -> Self;
    /// The value of cells to which nothing has been put.
    const BLANK: Self;
}

macro_rules! cells {
    ($($cell:ty),*) => {$(
        impl Cell for $cell {
            fn of(number: usize) -> Self {
                (number.wrapping_mul(0x9e37_79b9) >> 3) as $cell | 1
            }
            const BLANK: Self = 0x76;
        }
    )*};
}
cells!(u8, u16, u32, u64);

/// Puts blocks of `elements` elements, and waits until the put is complete.
pub(super) async fn put_blocks<T: Pod>(
    fabric: &Fabric,
    to: &RemoteSpan<T>,
    from: &LocalSpan<T>,
    elements: usize,
    blocks: Blocks,
) -> Result<()> {
    BlockPut::new(to, from, elements, blocks)?.put(fabric).await
}

/// Puts blocks of many shapes in cells of type `W`, and checks the whole target each time.
async fn in_cells<W: Cell>(fabric: &Fabric) -> ProgramResult<()> {
    let cell = size_of::<W>();
    let (mut world, region) = world_and_region(fabric, 2 * ROOM).await?;
    let me = fabric.rank();
    let next = Rank::new(((me.index() + 1) % fabric.ranks()) as u32);
    let all = ROOM / cell;
    let sent: Vec<W> = (0..all).map(|at| W::of(at + 77 * me.index())).collect();
    let source = region.span::<W>(fabric, 0, all)?;
    fabric.write(&source, &sent)?;
    let whole = fabric.remote_span::<W>(region.at(next, ROOM as u64), all)?;
    let lengths = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 100, 700];
    for elements in lengths.into_iter().filter(|bytes| bytes % cell == 0).map(|bytes| bytes / cell) {
        for (count, gap, from, to) in
            [(1, 0, 0, 3), (2, 1, 1, 0), (3, 0, 5, 5), (5, 3, 2, 9), (9, 2, 0, 1), (16, 1, 4, 0)]
        {
            let (stride, last) = (elements + gap, (count - 1) * (elements + gap));
            let blocks = Blocks { count: count as u32, stride: (stride * cell) as u64 };
            fabric.put(&whole, vec![W::BLANK; all]).await?;
            fabric.flush(next).await?;
            let there = whole.slice(to..to + last + elements)?;
            put_blocks(fabric, &there, &source.slice(from..from + last + elements)?, elements, blocks).await?;
            fabric.flush(next).await?;
            let mut want = vec![W::BLANK; all];
            for first in (0..count).map(|block| block * stride) {
                want[to + first..][..elements].copy_from_slice(&sent[from + first..][..elements]);
            }
            let seen = fabric.get(&whole, vec![W::BLANK; all]).await?;
            ensure!(seen == want, "O21: {blocks:?} of {elements} elements of {cell} bytes");
        }
    }
    Ok(world.barrier().await?)
}

pub(super) async fn blocks_arrive_and_nothing_between(fabric: Fabric) -> ProgramResult<()> {
    in_cells::<u8>(&fabric).await?;
    in_cells::<u16>(&fabric).await?;
    in_cells::<u32>(&fabric).await?;
    in_cells::<u64>(&fabric).await
}

/// Transposes pairs within local memory: the spans overlap, the blocks do not.
pub(super) async fn blocks_between_blocks(fabric: Fabric) -> ProgramResult<()> {
    const COUNT: usize = 40;
    let (mut world, region) = world_and_region(&fabric, COUNT * 400).await?;
    for words in [1, 2, 8, 25] {
        let all = region.span::<u64>(&fabric, 0, 2 * COUNT * words)?;
        let extent = (2 * COUNT - 1) * words;
        fabric.write(&all, &(0..2 * (COUNT * words) as u64).collect::<Vec<_>>())?;
        let to = fabric.remote_span::<u64>(region.at(fabric.rank(), 8 * words as u64), extent)?;
        let blocks = Blocks { count: COUNT as u32, stride: 16 * words as u64 };
        put_blocks(&fabric, &to, &all.slice(0..extent)?, words, blocks).await?;
        fabric.flush(fabric.rank()).await?;
        let mut seen = vec![0; 2 * COUNT * words];
        fabric.read(&all, &mut seen)?;
        let right = seen.iter().enumerate().all(|(at, word)| *word as usize == at - at / words % 2 * words);
        ensure!(right, "O21, O11: {words} words beside where they come from");
    }
    Ok(world.barrier().await?)
}

/// A rank that sees a word put after a put of blocks sees all of the blocks.
pub(super) async fn blocks_precede_the_flag(fabric: Fabric) -> ProgramResult<()> {
    const EXTENT: usize = 4_000;
    let (mut world, region) = world_and_region(&fabric, 16 * EXTENT + 64).await?;
    let (peer, flag_at) = (neighbour(&fabric), 16 * EXTENT);
    let flag = fabric.remote_word::<u64>(region.at(peer, flag_at as u64))?;
    for round in 1..=40u64 {
        let (words, count) = [(1, 300), (2, 100), (9, 40), (64, 12)][round as usize % 4];
        let extent = (count - 1) * 2 * words + words;
        let blocks = Blocks { count: count as u32, stride: 16 * words as u64 };
        if fabric.rank().index().is_multiple_of(2) {
            let source = region.span::<u64>(&fabric, 0, extent)?;
            fabric.write(&source, &vec![round; extent])?;
            let to = fabric.remote_span::<u64>(region.at(peer, 8 * EXTENT as u64), extent)?;
            put_blocks(&fabric, &to, &source, words, blocks).await?;
            fabric.flush(peer).await?;
            fabric.put_word(&flag, round).await?;
        } else {
            let mine = region.word::<u64>(&fabric, flag_at)?;
            fabric.wait_until(&mine, Deps::One(peer), |seen| seen == round).await?;
            let mut seen = vec![0; extent];
            fabric.read(&region.span(&fabric, 8 * EXTENT, extent)?, &mut seen)?;
            let here = seen.chunks(2 * words).map(|chunk| &chunk[..words]);
            ensure!(here.flatten().all(|word| *word == round), "O21, O5: {blocks:?} of round {round}");
        }
        world.barrier().await?;
    }
    Ok(())
}

/// A refused put transfers nothing, and its error names the cause.
pub(super) async fn wrong_blocks_are_refused(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 1_024).await?;
    let (me, peer) = (fabric.rank(), neighbour(&fabric));
    let gone = fabric.alloc_symmetric(1_024).await?;
    let from = |words| region.span::<u64>(&fabric, 0, words);
    let to = |words| fabric.remote_span::<u64>(region.at(peer, 512), words);
    fabric.write(&from(64)?, &[7; 64])?;
    let (stale_from, stale_to) = (gone.span::<u64>(&fabric, 0, 64)?, fabric.remote_span::<u64>(gone.at(peer, 0), 64)?);
    world.barrier().await?;
    let wrong = |error: BlocksError| Err(FabricError::from(error));
    let length = |have, want| Err(FabricError::length_mismatch(have, want));
    let blocks = |count, stride| Blocks { count, stride };
    for (words, elements, blocks, want) in [
        (5, 2, blocks(0, 24), wrong(BlocksError::None)),
        (4, 2, blocks(3, 8), wrong(BlocksError::Overlap { len: 16, stride: 8 })),
        (2, 1, blocks(2, 0), wrong(BlocksError::Overlap { len: 8, stride: 0 })),
        (3, 1, blocks(2, 12), wrong(BlocksError::Elements { stride: 12, element: 8 })),
        (63, 4, blocks(4, 160), length(63, 64)),
        (64, 4, blocks(3, 160), length(64, 44)),
        (64, 4, blocks(2, 1 << 62), length(64, (1 << 59) + 4)),
        (64, 4, blocks(u32::MAX, 1 << 62), length(64, usize::MAX)),
        (64, usize::MAX, blocks(1, 0), length(64, usize::MAX / 8)),
        (64, 63, blocks(1, 9), length(64, 63)),
    ] {
        let outcome = put_blocks(&fabric, &to(words)?, &from(words)?, elements, blocks).await;
        ensure_eq!(outcome, want, "O21: {blocks:?} of {elements} words in {words}");
    }
    let four = blocks(4, 160);
    ensure_eq!(put_blocks(&fabric, &to(60)?, &from(64)?, 4, four).await, length(64, 60), "O10: of spans that differ");
    let key = gone.key();
    drop(gone);
    world.barrier().await?;
    let stale = |rank| Err(FabricError::StaleRegion { rank, region: key });
    // Short blocks, long ones, and empty ones.
    for (elements, blocks) in [(4, four), (10, blocks(2, 432)), (0, blocks(9, 64))] {
        let put =
            async |to: &RemoteSpan<u64>, from: &LocalSpan<u64>| put_blocks(&fabric, to, from, elements, blocks).await;
        ensure_eq!(put(&stale_to, &from(64)?).await, stale(peer), "M3: {blocks:?} to a region that went");
        ensure_eq!(put(&to(64)?, &stale_from).await, stale(me), "M3: {blocks:?} from an own region that went");
    }
    fabric.flush_all().await?;
    world.barrier().await?;
    let mut seen = [1; 64];
    fabric.read(&region.span::<u64>(&fabric, 512, 64)?, &mut seen)?;
    ensure_eq!(seen, [0; 64], "O21: nothing is put");
    Ok(world.barrier().await?)
}

/// From existing to existing memory that was registered, and to and from allocated memory.
pub(super) async fn blocks_of_existing_memory(fabric: Fabric) -> ProgramResult<()> {
    const ALL: usize = 1_000;
    const FILLED: u64 = u64::MAX;
    if existing::is_missing(&fabric)? {
        return Ok(());
    }
    let (mut world, region) = world_and_region(&fabric, 8 * ALL).await?;
    let (me, next) = (fabric.rank().index(), Rank::new(((fabric.rank().index() + 1) % fabric.ranks()) as u32));
    let before = (me + fabric.ranks() - 1) % fabric.ranks();
    for (words, count) in [(1, 100), (9, 20)] {
        let sent = |rank: usize| (0..ALL as u64).map(|at| at << 8 | rank as u64).collect::<Vec<_>>();
        let (mine, theirs) = (fabric.register(sent(me))?, fabric.register(vec![0u64; ALL])?);
        let keys = world.allgather(theirs.key()).await?;
        let (extent, blocks) = ((3 * count - 2) * words, Blocks { count: count as u32, stride: 24 * words as u64 });
        let existing = RemoteAddr { rank: next, region: keys[next.index()], offset: 8 };
        let own = region.span::<u64>(&fabric, 0, extent)?;
        let put = async |to: RemoteAddr, from: &LocalSpan<u64>| -> ProgramResult<()> {
            put_blocks(&fabric, &fabric.remote_span(to, extent)?, from, words, blocks).await?;
            Ok(fabric.flush(next).await?)
        };
        put(existing, &mine.all()?.slice(0..extent)?).await?;
        world.barrier().await?;
        let come: Vec<u64> = sent(before);
        // Whether a word is in a block.
        let put_at = |at: usize| at < extent && (at / words).is_multiple_of(3);
        let want = |at: usize| if put_at(at) { come[at] } else { 0 };
        let mut seen = vec![0; ALL];
        fabric.read(&theirs.all()?, &mut seen)?;
        ensure!((0..ALL - 1).all(|at| seen[at + 1] == want(at)), "O21, X2: {blocks:?} to existing memory");
        world.barrier().await?;
        fabric.write(&own, &vec![FILLED; extent])?;
        put(RemoteAddr { offset: 0, ..existing }, &own).await?;
        world.barrier().await?;
        fabric.read(&theirs.all()?, &mut seen)?;
        ensure!((0..ALL).all(|at| (seen[at] == FILLED) == put_at(at)), "O21, X2: {blocks:?} from allocated memory");
        put(region.at(next, 0), &mine.all()?.slice(0..extent)?).await?;
        world.barrier().await?;
        let mut seen = vec![0; extent];
        fabric.read(&own, &mut seen)?;
        ensure!(
            (0..extent).all(|at| seen[at] == if put_at(at) { come[at] } else { FILLED }),
            "O21, X2: {blocks:?} from existing memory"
        );
        world.barrier().await?;
    }
    Ok(())
}
