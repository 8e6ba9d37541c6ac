//! Messages between memory of two programs, in parts, compared with two simultaneous copies over
//! bare memory.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, Took, form},
    outside::{
        bare::{Buffer, How},
        lines,
        rendezvous::until,
    },
};
use core::{
    cell::{Cell, RefCell},
    sync::atomic::Ordering::{Acquire, Release},
};
use fmpl::{Communicator, Fmpl};
use rdma_fabric::ProgramResult;

const PARTS: Case = Case::new("fmpl-parts", "send + recv_into, answered by an empty message", Takes::Both)
    .at_most(1.3, Fault::Software);

pub(super) const CASES: &[Case] = &[PARTS];

const SIZES: [usize; 2] = [64 << 10, 1 << 20];
/// The maximum size of a part of a bare copy in bytes, as in a default window. There are at least
/// two parts, so that both copies proceed at the same time.
const PART: usize = 64 << 10;

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if !pair.is_planned(&PARTS) {
        return Ok(());
    }
    let fmpl = Fmpl::init(pair.fabric).await?;
    for (index, bytes) in SIZES.into_iter().enumerate() {
        in_parts(pair, fmpl.world(), index, bytes).await?;
    }
    Ok(fmpl.finalize().await?)
}

async fn in_parts(pair: &mut Pair<'_>, world: &Communicator, index: usize, bytes: usize) -> ProgramResult<()> {
    let (bare, me, abandoned) = (pair.sampler.bare, pair.sampler.me, pair.sampler.rendezvous.abandoned());
    let (there, back) = (bare.word(lines::PARTS_FLAG), bare.word(lines::PARTS_FLAG + 1));
    let (mut memory, own) = (Buffer::new(bytes / 8), &RefCell::new(Buffer::new(bytes / 8)));
    let message = form("fmpl", async |times| {
        let mut none = [0u8; 0];
        for _ in 0..times {
            let words = memory.words();
            if me == 0 {
                world.send(words, 1, index).await?;
                world.recv_into(&mut &mut none[..], 1, index).await?;
            } else {
                world.recv_into(&mut &mut *words, 0, index).await?;
                world.send(&[0u64; 0], 0, index).await?;
            }
        }
        Ok(Took::Wall)
    });
    let part_bytes = PART.min(bytes / 2);
    let parts = (bytes / part_bytes) as u64;
    // Acquire: pairs with the release of the size before.
    let turns = &Cell::new(back.load(Acquire));
    let copied = |how: How| -> Named<'_> {
        form(how.name(), async move |times| {
            let mut own = own.borrow_mut();
            for _ in 0..times {
                let first = turns.replace(turns.get() + parts);
                for (part, words) in (0..).zip(own.words().chunks_mut(part_bytes / 8)) {
                    if me == 0 {
                        // Two parts ahead at most.
                        until(back, (first + part + 1).saturating_sub(2).max(first), abandoned)?;
                        bare.put_part(1, part as usize % 2, words, how);
                        there.store(first + part + 1, Release);
                    } else {
                        until(there, first + part + 1, abandoned)?;
                        bare.read_part(1, part as usize % 2, words, how);
                        back.store(first + part + 1, Release);
                    }
                }
                if me == 0 {
                    until(back, first + parts, abandoned)?;
                }
            }
            Ok(Took::Wall)
        })
    };
    pair.measure(&PARTS, bytes, vec![message, copied(How::Memcpy), copied(How::Movsb)]).await
}
