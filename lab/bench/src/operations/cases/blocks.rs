//! Blocks at equal distances, such as a face of an array: put by one post, and by a separate post
//! for each.

use super::{
    Case,
    pair::{OWN_AT, Pair, TARGET_AT},
};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, repeat, run},
    outside::bare::{self, How},
};
use fabric_offload::triggered::{Spans, Transfer};
use rdma_fabric::{BlockPut, Blocks, LocalSpan, ProgramResult, Rank, RemoteSpan, Result};

const BLOCKS: Case =
    Case::new("blocks", "put 256 blocks by one post; size of a block", Takes::Origin).at_most(1.15, Fault::Software);
const EACH: Case = Case::new("blocks-each", "the same, by a post for each", Takes::Origin);

pub(super) const CASES: &[Case] = &[BLOCKS, EACH];

/// Bytes of a block.
const SIZES: [usize; 3] = [16, 512, 4096];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    for bytes in SIZES {
        let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
        let (other, stride) = (1 - me, bare::SPREAD * bytes);
        let (words, blocks) = (bytes / 8, Blocks { count: bare::BLOCKS as u32, stride: stride as u64 });
        let extent = ((bare::BLOCKS - 1) * stride + bytes) / 8;
        let to = fabric.remote_span::<u64>(pair.region.at(Rank::new(other as u32), TARGET_AT as u64), extent)?;
        let from = pair.region.span::<u64>(fabric, OWN_AT, extent)?;
        let limits = || {
            [
                run!("memcpy", times => bare.put_blocks(me, other, bytes, How::Memcpy, times)),
                run!("rep movsb", times => bare.put_blocks(me, other, bytes, How::Movsb, times)),
                run!("moves", times => bare.put_blocks_of_known_length(me, other, bytes, times)),
            ]
        };
        let (to, from) = (&to, &from);
        let mut forms = vec![repeat!("fabric", _ => BlockPut::new(to, from, words, blocks)?.put(fabric).await?)];
        forms.extend(limits());
        pair.measure(&BLOCKS, bytes, forms).await?;
        let mut each = one_by_one(to, from, words)?;
        let mut forms = vec![repeat!("fabric", _ => if each.put_now(fabric)?.is_pending() {
            each.put(fabric).await?;
        })];
        forms.extend(limits());
        pair.measure(&EACH, bytes, forms).await?;
    }
    Ok(())
}

/// Returns a put of each block.
fn one_by_one(to: &RemoteSpan<u64>, from: &LocalSpan<u64>, words: usize) -> Result<Transfer> {
    let pair = |block: usize| {
        let part = block * bare::SPREAD * words..(block * bare::SPREAD + 1) * words;
        Ok((from.slice(part.clone())?, to.slice(part)?))
    };
    Ok(Transfer::Eight(Spans::new((0..bare::BLOCKS).map(pair).collect::<Result<_>>()?)))
}
