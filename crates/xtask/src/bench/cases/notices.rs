//! From one rank's program to the other's, both running: half a round trip.

use super::{
    super::{
        goal::Goal,
        limit, lines,
        sampling::{Takes, repeat, run},
    },
    Case,
    pair::Pair,
};
use rdma_fabric::{Deps, ProgramResult, Rank};

const NOTICE: Case = Case::new("notice", "put 8 B + notice, one way", Takes::Both).goal(Goal::Ratio(1.3)).operations(2);
const FLAG: Case = Case::new("flag", "put a word + wait for it, one way", Takes::Both).operations(2);

pub(super) const CASES: &[Case] = &[NOTICE, FLAG];

/// Where the words that are put stand in the region.
const DATA_AT: u64 = 4 * limit::LINE as u64;
const FLAG_AT: u64 = 6 * limit::LINE as u64;

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let other = Rank::new(1 - me as u32);
    let abandoned = pair.sampler.meeting.abandoned();
    let (there, back) = (bare.word(lines::FLAG), bare.word(lines::FLAG + 1));
    let mut bare_turn = 0;

    let span = fabric.remote_span::<u64>(pair.region.at(other, DATA_AT), 1)?;
    let forms = vec![
        repeat!("fabric", i => {
            if me == 0 {
                fabric.put_notify(&span, [i], i).await?;
            }
            fabric.next_notice(Deps::One(other)).await?;
            if me == 1 {
                fabric.put_notify(&span, [i], i).await?;
            }
        }),
        run!("two-line flag", times => limit::flags::<false>(me, there, back, &mut bare_turn, times, abandoned)?),
    ];
    pair.measure(&NOTICE, 8, forms).await?;

    let word = fabric.remote_word::<u64>(pair.region.at(other, FLAG_AT))?;
    let own = pair.region.word::<u64>(fabric, FLAG_AT as usize)?;
    let mut turn = 0u64;
    let forms = vec![
        repeat!("fabric", _ => {
            turn += 1;
            if me == 0 {
                fabric.put_word(&word, turn).await?;
            }
            fabric.wait_until(&own, Deps::One(other), |value| value >= turn).await?;
            if me == 1 {
                fabric.put_word(&word, turn).await?;
            }
        }),
        run!("two-line flag", times => limit::flags::<false>(me, there, back, &mut bare_turn, times, abandoned)?),
    ];
    pair.measure(&FLAG, 8, forms).await
}
