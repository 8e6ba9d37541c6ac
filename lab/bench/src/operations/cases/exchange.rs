//! Persistent exchanges in a ring of two, where both neighbours of a rank are the other one: start
//! and wait with nothing in between.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, repeat, run},
    outside::limit,
};
use core::hint::black_box;
use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options};
use rdma_fabric::{Group, ProgramResult};

const FAST: Case = Case::new("exchange-fast", "exchange with 2 neighbours, a queue each", Takes::Both);
const MRC: Case = Case::new("exchange-mrc", "exchange with 2 neighbours, one queue", Takes::Both);
const CPU: Case =
    Case::new("exchange-cpu", "exchange with 2 neighbours, no queues", Takes::Both).at_most(1.5, Fault::Software);
const REWRITTEN: Case =
    Case::new("exchange-rewritten", "the same, all blocks rewritten before and read after", Takes::Both);

pub(super) const CASES: &[Case] = &[FAST, MRC, CPU, REWRITTEN];

/// The number of bytes in a block.
const SIZES: [usize; 3] = [0, 8 << 10, 64 << 10];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    for (case, form) in [(&FAST, Form::Fast), (&MRC, Form::Mrc), (&CPU, Form::Cpu)] {
        for bytes in SIZES {
            one(pair, case, form, bytes, false).await?;
        }
    }
    for bytes in SIZES {
        one(pair, &REWRITTEN, Form::Cpu, bytes, true).await?;
    }
    Ok(())
}

async fn one(pair: &mut Pair<'_>, case: &Case, form: Form, bytes: usize, rewritten: bool) -> ProgramResult<()> {
    if pair.wants(case).is_none() {
        return Ok(());
    }
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let abandoned = pair.sampler.rendezvous.abandoned();
    let group = Group::world(fabric).await?;
    let topology = Cartesian::new(&[group.len()], &[true])?.topology(group.me());
    let mut hood = Neighbourhood::new(group, topology).await?;
    let (send, receive) = (Buffer::<u64>::new(fabric, bytes / 4)?, Buffer::<u64>::new(fabric, bytes / 4)?);
    let mut request = hood.alltoall_init(&send, &receive, bytes / 8, &Options::form(form)).await?;
    let (mut turn, mut values) = (0, vec![1u64; bytes / 4]);
    let mut forms: Vec<Named<'_>> = Vec::new();
    if rewritten {
        forms.push(repeat!("fabric", i => {
            values.fill(i);
            send.write(0, &values)?;
            request.start().await?;
            request.wait().await?;
            receive.read(0, &mut values)?;
            black_box(&values);
        }));
    } else {
        forms.push(repeat!("fabric", _ => {
            request.start().await?;
            request.wait().await?;
        }));
        forms.push(run!("flags and memcpy", times => limit::exchange(bare, me, bytes, &mut turn, times, abandoned)?));
    }
    pair.measure(case, bytes, forms).await?;
    Ok(hood.group_mut().barrier().await?)
}
