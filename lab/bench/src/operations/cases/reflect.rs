//! Updates of the shadows of distributed arrays by two ranks: start and wait with nothing in between.
//!
//! The large field is that of a halo exchange in three dimensions: 128 levels, fastest in memory, and
//! 256 × 256 columns, with two layers of shadow on each horizontal side.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, repeat, run},
    outside::{
        bare::{Block, Face},
        limit::{self, Border},
    },
};
use core::hint::black_box;
use rdma_fabric::{Group, ProgramResult};
use xmp_reflect::{Align, Array, Format, Mapping, NodeSet, Nodes, Order, Reflect, Schedule, Shadow, Template, Widths};

const EMPTY: Case =
    Case::new("reflect-small", "reflect, 2 faces of a word to the peer", Takes::Both).at_most(1.6, Fault::Software);
const SPLIT: Case = Case::new("reflect-field", "reflect, 2 faces to the peer and 2 to itself", Takes::Both)
    .at_most(1.3, Fault::Software);
const ALL: Case =
    Case::new("reflect-field-4", "reflect, 4 faces to the peer", Takes::Both).at_most(1.3, Fault::Software);
const SPLIT_REWRITTEN: Case =
    Case::new("reflect-rewritten", "2 faces to the peer and 2 to itself, rewritten before and read after", Takes::Both)
        .at_most(1.3, Fault::Software);
const ALL_REWRITTEN: Case =
    Case::new("reflect-rewritten-4", "4 faces to the peer, rewritten before and read after", Takes::Both)
        .at_most(1.3, Fault::Software);

pub(super) const CASES: &[Case] = &[EMPTY, SPLIT, ALL, SPLIT_REWRITTEN, ALL_REWRITTEN];

/// The block of the large field.
pub(super) const LARGE: Block = Block { levels: 128, columns: 256, layers: 2 };

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    small(pair).await?;
    for (case, all, rewritten) in
        [(&SPLIT, false, false), (&ALL, true, false), (&SPLIT_REWRITTEN, false, true), (&ALL_REWRITTEN, true, true)]
    {
        field(pair, case, all, rewritten).await?;
    }
    Ok(())
}

/// Two words of a ring.
async fn small(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if pair.wants(&EMPTY).is_none() {
        return Ok(());
    }
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let abandoned = pair.sampler.rendezvous.abandoned();
    let mut set = NodeSet::new(Group::world(fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
    let line = &(0..16);
    let template = Template::new(line, &[Format::Block], set.nodes())?;
    let mapping = template.align(line, &[Align::with(0)])?.shadow(&[Shadow::of(1)])?;
    let array: Array<u64> = set.array(&mapping)?;
    let reflect = Reflect::widths(&[Widths::WHOLE.periodic()]);
    let mut schedule = Schedule::new(&mut set, &[&array], &reflect).await?;
    let mut turn = 0;
    let face = Face { count: 1, len: 8, stride: 0 };
    let faces = [(true, 8, 72, face), (true, 64, 0, face)];
    let border = Border { faces: &faces, rewritten: false };
    let forms: Vec<Named<'_>> = vec![
        repeat!("fabric", _ => {
            schedule.start().await?;
            schedule.wait().await?;
        }),
        run!("flags and memcpy", times => limit::border(bare, me, border, &mut turn, times, abandoned)?),
    ];
    pair.measure(&EMPTY, 8, forms).await?;
    Ok(set.barrier().await?)
}

/// Two fields of one rank: the columns of one are distributed along i, those of the other along j.
fn mapping(set: &NodeSet, along: usize) -> ProgramResult<Mapping> {
    // Both ranks have 256 × 256 columns.
    let bounds = |dim| 0..if dim == along { 2 * LARGE.columns as i64 } else { LARGE.columns as i64 };
    let format = |dim| if dim == along { Format::Block } else { Format::None };
    let template = Template::new(&[bounds(0), bounds(1)], &[format(0), format(1)], set.nodes())?;
    let (whole, around) = (0..LARGE.levels as i64, Shadow::of(LARGE.layers));
    let aligned =
        template.align(&[bounds(0), bounds(1), whole], &[Align::with(0), Align::with(1), Align::Collapsed])?;
    Ok(aligned.shadow(&[around, around, Shadow::NONE])?)
}

async fn field(pair: &mut Pair<'_>, case: &Case, all: bool, rewritten: bool) -> ProgramResult<()> {
    if pair.wants(case).is_none() {
        return Ok(());
    }
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let abandoned = pair.sampler.rendezvous.abandoned();
    let mut set = NodeSet::new(Group::world(fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
    // Dimensions are (j, i, k). With four faces to the peer, each of two arrays has two of them.
    let (of_i, of_j) = (mapping(&set, 1)?, mapping(&set, 0)?);
    let (first, second): (Array<f64>, Array<f64>) = (set.array(&of_i)?, set.array(&of_j)?);
    let (both, one) = (Widths::WHOLE.periodic(), Widths::NONE);
    let mut schedules = Vec::new();
    if all {
        let reflect = |widths: [Widths; 3]| Reflect::widths(&widths).orthogonal();
        schedules.push(Schedule::new(&mut set, &[&first], &reflect([one, both, one])).await?);
        schedules.push(Schedule::new(&mut set, &[&second], &reflect([both, one, one])).await?);
    } else {
        let reflect = Reflect::widths(&[both, both, one]).orthogonal();
        schedules.push(Schedule::new(&mut set, &[&first], &reflect).await?);
    }
    let (to_peer, places) = ([true, true, all, all], LARGE.faces());
    let faces: [_; 4] = core::array::from_fn(|at| {
        let (from, to, face) = places[at];
        (to_peer[at], from, to, face)
    });
    let (mut turn, mut round) = (0, 0.0);
    let border = Border { faces: &faces, rewritten };
    let mut forms: Vec<Named<'_>> = Vec::new();
    let second_field = if all { &second } else { &first };
    if rewritten {
        forms.push(repeat!("fabric", _ => {
            round += 1.0;
            for (at, (_, from, _, face)) in faces.iter().enumerate() {
                let mut view = if at < 2 { first.view_mut()? } else { second_field.view_mut()? };
                for block in 0..face.count {
                    let start = (from + block * face.stride) / 8;
                    view[start..start + face.len / 8].fill(round);
                }
            }
            for schedule in &mut schedules {
                schedule.start().await?;
            }
            for schedule in &mut schedules {
                schedule.wait().await?;
            }
            let mut sum = 0u64;
            for (at, (_, _, to, face)) in faces.iter().enumerate() {
                let view = if at < 2 { first.view()? } else { second_field.view()? };
                for block in 0..face.count {
                    let start = (to + block * face.stride) / 8;
                    let words = view[start..start + face.len / 8].iter();
                    sum = words.fold(sum, |sum, word| sum.wrapping_add(word.to_bits()));
                }
            }
            black_box(sum);
        }));
    } else {
        forms.push(repeat!("fabric", _ => {
            for schedule in &mut schedules {
                schedule.start().await?;
            }
            for schedule in &mut schedules {
                schedule.wait().await?;
            }
        }));
    }
    forms.push(run!("flags and memcpy", times => limit::border(bare, me, border, &mut turn, times, abandoned)?));
    pair.measure(case, LARGE.bytes(), forms).await?;
    Ok(set.barrier().await?)
}
