//! A neighbour is killed in the middle of a long put into memory that is lent.
//!
//! The survivor observes the loss; bytes that, as far as it can know, the put may still change are
//! not lent to it, and all others are. Memory that it allocates next is different memory.

use crate::job::launch;
use checks::killed::{Outcome, die_after};
use prdma_offload::{Buffer, Edge, Form, Holder, Layout, Neighbourhood, Options, PrdmaError, Request, Topology};
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use std::{
    ops::Range,
    thread,
    time::{Duration, Instant},
};

const VICTIM: Rank = Rank::new(1);
/// Elements of the block: 64 MiB, whose put takes milliseconds.
const BLOCK: usize = 1 << 23;
const LONG: usize = 2 * BLOCK + 8;
const SENT: Range<usize> = 0..BLOCK;
const RECEIVED: Range<usize> = BLOCK..2 * BLOCK;
const OTHERS: Range<usize> = 2 * BLOCK..LONG;
const SEGMENT: usize = 320 << 20;
/// Ten times the time within which a loss should be noticed.
const HANG: Duration = Duration::from_secs(20);

async fn in_time<T>(fabric: &Fabric, wait: impl Future<Output = T>) -> ProgramResult<T> {
    fabric.before(fabric.now() + HANG, wait).await.ok_or_else(|| "it hangs".into())
}

fn holder<T>(got: Result<T, PrdmaError>) -> Option<Holder> {
    match got {
        Err(PrdmaError::InUse { holder, .. }) => Some(holder),
        _ => None,
    }
}

/// Waits for the end in the way requested of the survivor; returns the error, if there is one.
async fn ended(fabric: &Fabric, request: &mut Request, how: &str) -> ProgramResult<Option<PrdmaError>> {
    let wait = async {
        // Tests alone do not notice a loss.
        for _ in 0..if how == "tests" { 20 } else { 0 } {
            if request.test().await? {
                return Ok(());
            }
            fabric.sleep(Duration::from_micros(200)).await;
        }
        request.wait().await
    };
    Ok(in_time(fabric, wait).await?.err())
}

/// Runs one rank: `waits 50`, for example, kills the victim after half of the duration of the put,
/// and the survivor waits; with `tests`, it tests before. Returns whether the victim was killed too
/// early, too late, or in the middle: then the block is torn.
pub(crate) async fn play(fabric: Fabric, words: &[String]) -> ProgramResult<String> {
    let (how, percent) = (words[0].as_str(), words[1].parse::<u32>()?);
    let group = Group::world(&fabric).await?;
    let other = Some(Edge { member: 1 - group.me(), label: 0 });
    let mut hood = Neighbourhood::new(group, Topology::of([other].into(), [other].into())).await?;
    let field = Buffer::<u64>::in_place(&fabric, LONG)?;
    let block = |range: Range<usize>| [Layout::contiguous::<u64>(range.start, range.len()).expect("a block")];
    let options = Options::form(Form::Cpu);
    let mut request = hood.alltoallw_init(&field, &block(SENT), &field, &block(RECEIVED), &options).await?;
    let mut took = Duration::MAX;
    for iteration in 1..=3 {
        field.view_mut(SENT)?.fill(iteration);
        // The survivor is already ready when the victim starts, so the put leaves within the start.
        if fabric.rank() == VICTIM {
            hood.group_mut().barrier().await?;
        }
        let begun = Instant::now();
        request.start().await?;
        took = took.min(begun.elapsed());
        if fabric.rank() != VICTIM {
            hood.group_mut().barrier().await?;
        }
        request.wait().await?;
        assert!(field.view(RECEIVED)?.iter().all(|element| *element == iteration));
    }
    if fabric.rank() == VICTIM {
        field.view_mut(SENT)?.fill(4);
        hood.group_mut().barrier().await?;
        die_after(took * percent / 100);
        request.start().await?;
        request.wait().await?;
        // The kill is late.
        thread::sleep(HANG);
        return Err("it was to be killed".into());
    }
    request.start().await?;
    // If the victim dies here, that is a loss, too.
    let _ = hood.group_mut().barrier().await;
    let Some(error) = ended(&fabric, &mut request, how).await? else { return Ok("too late".into()) };
    let lost = FabricError::PeerLost { rank: VICTIM };
    assert_eq!(error, PrdmaError::Fabric(lost));
    assert_eq!(in_time(&fabric, request.start()).await?, Err(PrdmaError::Broken(Box::new(error))));
    let torn = survives(&field)?;
    drop(request);
    survives(&field)?;
    let was = field.view(OTHERS)?.as_ptr_range();
    drop(field);
    // The bytes that the victim was writing are never allocated again.
    for _ in 0..2 {
        let next = Buffer::<u64>::in_place(&fabric, BLOCK)?;
        let view = next.view(0..BLOCK)?;
        assert!(view.iter().all(|element| *element == 0));
        let start = was.end.wrapping_sub(LONG);
        assert!(view.as_ptr_range().end <= start || was.end <= view.as_ptr_range().start, "used again");
    }
    Ok(if torn { "torn" } else { "too early" }.into())
}

/// Checks the bytes lent to the survivor; returns whether the victim's block has arrived in part.
fn survives(field: &Buffer<u64>) -> ProgramResult<bool> {
    for range in [RECEIVED, RECEIVED.start..RECEIVED.start + 1, 0..LONG] {
        assert_eq!(holder(field.view(range.clone())), Some(Holder::Broken), "{range:?}");
        assert_eq!(holder(field.view_mut(range.clone())), Some(Holder::Broken), "{range:?}");
    }
    field.view_mut(SENT)?[BLOCK - 1] += 1;
    assert!(field.view_mut(OTHERS)?.iter().all(|element| *element == 0));
    // By copying, all bytes can be read.
    let all = field.to_vec()?;
    let received = &all[RECEIVED];
    assert!(received.iter().all(|element| [3, 4].contains(element)));
    Ok(received.contains(&3) && received.contains(&4))
}

#[test]
fn a_neighbour_that_is_killed_in_mid_put_leaves_its_bytes_broken() {
    let (mut percent, mut seen) = (40, Vec::new());
    for how in ["waits", "tests"].into_iter().cycle().take(16) {
        let asked = format!("{how} {percent}");
        let outcome = match &launch(2, SEGMENT, &asked).outcomes[..] {
            [Outcome::Ended(outcome), Outcome::Silent] => outcome.clone(),
            other => panic!("{asked}: {other:?}"),
        };
        // On a busy machine, the moment is easily missed.
        percent = if outcome == "too late" { percent / 2 } else { percent + 15 };
        seen.push((how, outcome));
        if ["waits", "tests"].iter().all(|how| seen.contains(&(*how, "torn".into()))) {
            return;
        }
    }
    assert!(seen.iter().any(|(_, outcome)| outcome == "torn"), "none was killed in the middle of its put: {seen:?}");
}
