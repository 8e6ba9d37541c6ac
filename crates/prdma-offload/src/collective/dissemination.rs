//! About log2 N queues: the blocks of all to all, each step with twice as many.
//!
//! # Steps
//! A member has the blocks of those that follow it, its own first. In step i it sends all that it has, 2^i blocks, or in the last step as many as are left, to the
//! one 2^i before it, for which they are the next ones. After L = ceil(log2 N) steps everybody has all, for any N.
//! ```text
//! queue 0       P0                               leaves at start; the last step's arrival releases the next one
//! queue 1       P1 SELF                          both released by P0 of the one 1 further on
//! queue i       NOP NOP NOP NOP Pi SELF          released by P(i-1) of the one 2^(i-1) further on: 2 slots, and SELF of queue i - 1: 4 slots
//! queue L - 1   NOP NOP P(L-1)                   in the same way: 1 slot, and 2
//! ```
//! Pi sends what came in all steps before i. SELF of queue i - 1 says that steps up to i - 2 have come, the arrival that i - 1 has.
//!
//! # Credit
//! As [in a barrier](super::fast) a member that is ahead may be heard of twice before SELF comes once; but here what is released must be there. So SELF weighs twice as
//! much as an arrival, and there are as many NOPs as SELF releases.
//! * Nobody starts k + 2 before all have ended k: its end of k + 1 has the blocks of all. So before SELF(k) come at most the arrivals of k and of k + 1; they release the
//!   NOPs of iteration k, and not Pi(k).
//! * SELF(k) alone releases the NOPs.
//! * SELF(k + 1) follows the own start of k + 1, and so all arrivals of k.
//!
//! An iteration has as many slots as it receives credit for: arrivals of k + 1 that came too early are the credit of that iteration.
//!
//! # Memory
//! Who is ahead sends blocks of k + 1 to a member that still folds those of k. So areas alternate: odd iterations are in the gather area, even ones in the result
//! area. Blocks of k + 2 come when all have ended k.

use super::{
    fast::steps,
    plan::{Area, Plan, Put, Queue, Span, nops},
};

/// The part of `me` in an allreduce with blocks of so many bytes.
pub(super) fn allreduce(block: u64, members: usize, me: usize) -> Plan {
    let steps = steps(members);
    // What step i releases: Pi, and SELF behind it.
    let group = |step: usize| 1 + u8::from(step + 1 < steps);
    let queue = |step: usize| {
        let far = 1 << step;
        let to = (me + members - far) % members;
        let (queue, sps) = if step + 1 == steps { (0, 1) } else { (step + 1, group(step + 1)) };
        let bytes = far.min(members - far) as u64 * block;
        let span = Span { from: (Area::Gather, 0), at: (Area::Gather, far as u64 * block), bytes };
        let chained = step >= 1 && step + 1 < steps;
        let mut slots = Vec::new();
        if step >= 2 {
            slots.extend(nops(2 * usize::from(group(step))));
        }
        slots.push(Some(Put { to: (to, queue), span: Some(span), sps, notice: step + 1 == steps }));
        if chained {
            slots.push(Some(Put { to: (me, step + 1), span: None, sps: 2 * group(step + 1), notice: false }));
        }
        Queue { slots, ahead: u32::from(step == 0), notices: u32::from(step == 0), chained }
    };
    Plan { queues: (0..steps).map(queue).collect(), alternating: true }
}
