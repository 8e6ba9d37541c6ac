//! Computing on views of distributed arrays: a Runge–Kutta stage of the example `scale_dynamics`,
//! compared with the same loops over plain vectors. Nothing is exchanged.
//!
//! A block is computed as a whole, and in the sections that a reflect defines: the section that can
//! be computed while the reflect is in progress, and the rest. The memory read by the sections
//! overlaps, also with vectors.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, repeat, run},
};
use rdma_fabric::{Group, ProgramResult};
use repro::workloads::dynamics::{Atmosphere, SHADOW, Vectors, Work, compute, fields, mapping};
use xmp_reflect::{NodeSet, Nodes, Order, Reflect, Split, Widths};

const WHOLE: Case = case("reflect-compute", "a stage of scale_dynamics on views, the block at once");
const SECTIONS: Case = case("reflect-compute-split", "the same, inner part first, then the border");

pub(super) const CASES: &[Case] = &[WHOLE, SECTIONS];

const fn case(name: &'static str, what: &'static str) -> Case {
    Case::new(name, what, Takes::Origin).at_most(1.05, Fault::Software)
}

/// The cells of a column, and the columns along each side of a node's block: those of 512 by 512
/// columns on 1024 nodes, and on 256.
const LAYERS: usize = 128;
const SIDES: [usize; 2] = [16, 32];

/// The shadow widths that the reflect updates.
const AROUND: [Widths; 3] = [Widths::NONE, Widths::of(SHADOW).periodic(), Widths::of(SHADOW).periodic()];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    for side in SIDES {
        block(pair, side).await?;
    }
    Ok(())
}

async fn block(pair: &mut Pair<'_>, side: usize) -> ProgramResult<()> {
    if CASES.iter().all(|case| pair.wants(case).is_none()) {
        return Ok(());
    }
    let group = Group::world(pair.fabric).await?;
    let atmosphere = Atmosphere::new([LAYERS, side * group.len(), side]).ok_or("the air is too thin")?;
    let nodes = Nodes::new(&[group.len(), 1], Order::LastFastest)?;
    let (mapping, mut set) = (mapping(&atmosphere, &nodes)?, NodeSet::new(group, nodes)?);
    let [base, from, to] = [fields(&set, &mapping)?, fields(&set, &mapping)?, fields(&set, &mapping)?];
    let cell = |index: &[i64]| atmosphere.first([0, 1, 2].map(|dim| index[dim] as usize));
    for (field, (base, from)) in base.iter().zip(&from).enumerate() {
        base.fill(|index| cell(index)[field])?;
        from.fill(|index| cell(index)[field])?;
        set.reflect(from, &Reflect::widths(&AROUND)).await?;
    }
    let block = [LAYERS, side, side];
    let (mut plain_from, mut plain_to) = (Vectors::new(block), Vectors::new(block));
    for (field, from) in from.iter().enumerate() {
        for i in 0..side + 2 * SHADOW {
            for j in 0..side + 2 * SHADOW {
                let start = from.offset(&[0, i, j]);
                plain_from.columns_mut(i, j)[field].copy_from_slice(&from.view()?[start..start + LAYERS]);
            }
        }
    }
    let plain_base = plain_from.clone();

    let split = Split::new(&mapping, set.me(), &AROUND)?;
    let sections = split.inner.into_iter().chain(split.boundary).collect();
    let mut work = [Work::new(&atmosphere), Work::new(&atmosphere)];
    for (case, sections) in [(&WHOLE, vec![plain_from.block()]), (&SECTIONS, sections)] {
        let ([work, plain_work], step) = (work.each_mut(), Atmosphere::STEP);
        let forms = vec![
            repeat!("views", _ => for section in &sections {
                compute(&atmosphere, [&from, &to], Some(&base), section, step, work)?;
            }),
            run!("vectors", times => for section in (0..times).flat_map(|_| &sections) {
                plain_to.compute(&atmosphere, &plain_from, Some(&plain_base), section, step, plain_work);
            }),
        ];
        pair.measure(case, LAYERS * side * side * size_of::<f64>(), forms).await?;
    }
    Ok(set.barrier().await?)
}
