//! The first loop of a program over views, beside the same loop over vectors.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, repeat},
};
use core::hint::black_box;
use prdma_offload::Buffer;
use rdma_fabric::ProgramResult;

const LOOP: Case = Case::new("view-loop", "mean of three neighbours by index, from a view into another", Takes::Origin)
    .at_most(1.05, Fault::Software);

pub(super) const CASES: &[Case] = &[LOOP];

/// Elements of a view.
const ELEMENTS: usize = 1 << 12;

/// The loop of `docs/systems/reflect.md`, over anything that dereferences to slices.
macro_rules! smooth {
    ($from:expr, $to:expr) => {
        let from = &$from[..$to.len()];
        for cell in 1..$to.len() - 1 {
            $to[cell] = (from[cell - 1] + from[cell] + from[cell + 1]) / 3.0;
        }
    };
}

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if !pair.is_planned(&LOOP) {
        return Ok(());
    }
    let buffer = || Buffer::<f64>::in_place(pair.fabric, ELEMENTS);
    let (old, new) = (buffer()?, buffer()?);
    let (mut plain_old, mut plain_new) = (vec![1.0; ELEMENTS], vec![0.0; ELEMENTS]);
    old.view_mut(0..ELEMENTS)?.fill(1.0);
    let forms = vec![
        repeat!("views", _ => {
            let (from, mut to) = (old.view(0..ELEMENTS)?, new.view_mut(0..ELEMENTS)?);
            smooth!(from, to);
        }),
        repeat!("vectors", _ => {
            let (from, to) = (black_box(&mut plain_old), black_box(&mut plain_new));
            smooth!(from, to);
        }),
    ];
    pair.measure(&LOOP, ELEMENTS * size_of::<f64>(), forms).await
}
