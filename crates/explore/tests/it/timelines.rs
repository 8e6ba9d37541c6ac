//! The exact wording of timelines and reports.

use super::outcomes::{A, B};
use explore::{Explorer, Probe, Report};
use rdma_fabric::{Amo, Deps, Fabric, LocalSpan, ProgramResult, Region, Time, join, op};
use std::future::Future;

/// Allocates `bytes` bytes at each rank and never drops them: when ranks end does not matter here.
async fn kept(fabric: &Fabric, bytes: usize) -> ProgramResult<&'static Region> {
    Ok(Box::leak(Box::new(fabric.alloc_symmetric(bytes).await?)))
}

/// A writes a record of `N` words and raises a flag without a flush in between.
async fn publish<const N: usize>(fabric: Fabric) -> ProgramResult<()> {
    let (region, probe) = (kept(&fabric, 8 + 8 * N).await?, Probe::of(&fabric));
    let flag = region.at(B, 0);
    if fabric.rank() == A {
        let record = fabric.remote_span::<u64>(region.at(B, 8), N)?;
        fabric.put(&record, [7; N]).await?;
        fabric.put_word(&fabric.remote_word(flag)?, 1u64).await?;
    } else {
        fabric.wait_until(&fabric.local_word(flag)?, Deps::All, |flag: u64| flag == 1).await?;
        probe.add(0, 1);
        let mut record = [0u64; N];
        fabric.read(&region.span(&fabric, 8, N)?, &mut record)?;
        assert!(record == [7; N], "the record is older than its flag");
    }
    Ok(())
}

fn named() -> Explorer<'static> {
    Explorer::new(2).name(0, 0, "flag").name(0, 8, "record").name_fact(0, "flags seen")
}

/// Returns the lines without their indentation.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_start).filter(|line| !line.is_empty()).collect()
}

/// Returns the lines about operations still in flight at the end.
fn left(timeline: &[String]) -> Vec<&str> {
    timeline.iter().map(String::as_str).filter(|line| line.contains('…')).collect()
}

/// The timeline shows where a wait began, a fact by its name, and the cause of the failure: the
/// operation that had not happened.
#[test]
fn a_missing_flush_ends_with_what_is_still_on_its_way() {
    let report = named().run(publish::<1>);
    let wanted = "
        rank 0  posts put of 0x7 to rank 1's record
        rank 0  posts put of 0x1 to rank 1's flag
        rank 0  ends
        rank 1  waits for rank 1's flag to be something else than 0x0
        rank 0  ← put arrives at rank 1's flag: 0x0 becomes 0x1
        rank 1  wakes: rank 1's flag is 0x1
        rank 1     “flags seen” goes from 0 to 1
        rank 1  loads 0x0 from rank 1's record
        rank 0  … put of 0x7 to rank 1's record is still on its way";
    assert_eq!(report.expect_violation().timeline, lines(wanted), "{report}");
}

#[test]
fn random_runs_are_described_in_the_same_words() {
    let failures = (0..100).filter_map(|seed| named().sample(seed, 1, publish::<1>).failure);
    let failure = failures.into_iter().find(|failure| failure.timeline[0].contains("waits")).expect("a seed shows it");
    let wanted = "
        rank 1  waits for rank 1's flag to be something else than 0x0
        rank 0  posts put of 0x7 to rank 1's record
        rank 0  posts put of 0x1 to rank 1's flag
        rank 0  ends
        rank 0  ← put arrives at rank 1's flag: 0x0 becomes 0x1
        rank 1  wakes: rank 1's flag is 0x1
        rank 1     “flags seen” goes from 0 to 1
        rank 1  loads 0x0 from rank 1's record
        rank 0  … put of 0x7 to rank 1's record is still on its way";
    assert_eq!(failure.timeline, lines(wanted));
}

#[test]
fn words_of_a_put_are_shown_up_to_a_limit() {
    let told = |report: Report| report.expect_violation().timeline[0].clone();
    assert_eq!(
        told(named().run(publish::<3>)),
        "rank 0  posts put of 0x7 to rank 1's record, 0x7 to rank 1's region 0+16, 0x7 to rank 1's region 0+24"
    );
    let eight = told(named().run(publish::<8>));
    assert!(eight.ends_with(", 0x7 to rank 1's region 0+64"), "{eight}");
    let (nine, ten) = (told(named().run(publish::<9>)), told(named().run(publish::<10>)));
    assert_eq!(nine, eight.clone() + " and 1 more word");
    assert_eq!(ten, eight + " and 2 more words");
}

#[test]
fn much_that_is_left_is_counted() {
    let report = named().run(|fabric| async move {
        let region = kept(&fabric, 240).await?;
        fabric.put(&fabric.remote_span::<u64>(region.at(B, 0), 30)?, [7; 30]).await?;
        assert_ne!(fabric.rank(), A, "too early");
        Ok(())
    });
    let timeline = &report.expect_violation().timeline;
    assert_eq!((left(timeline).len(), timeline.last().map(String::as_str)), (25, Some("… and 6 more")), "{report}");
}

/// One rank posts every kind of operation, awaits none, and fails immediately.
#[test]
fn whatever_is_on_its_way_is_named() {
    let report = Explorer::new(2).name(0, 0, "word").run(|fabric: Fabric| async move {
        let region = kept(&fabric, 32).await?;
        if fabric.rank() == B {
            return Ok(());
        }
        let word = fabric.remote_word::<u64>(region.at(B, 0))?;
        let own: LocalSpan<u64> = region.span(&fabric, 8, 1)?;
        let notice = Some(5);
        let add = fabric.try_post(op::Atomic { word: &word, amo: Amo::Add(1) }).expect("room");
        let get = fabric.try_post(op::Get { from: &word.as_span(), to: [0] }).expect("room");
        let into = fabric.try_post(op::Get { from: &word.as_span(), to: own.clone() }).expect("room");
        let put = fabric.try_post(op::Put { to: &word.as_span(), from: [9], notice }).expect("room");
        let from = fabric.try_post(op::Put { to: &word.as_span(), from: own, notice: None }).expect("room");
        assert_ne!(Probe::of(&fabric).get(0), 0, "nothing has arrived");
        drop((add, get, into, put, from));
        Ok(())
    });
    let wanted = "
        rank 0  … fetch-add 1 at rank 1's word is still on its way
        rank 0  … get of rank 1's word is still on its way
        rank 0  … get of rank 1's word is still on its way
        rank 0  … put of 0x9 to rank 1's word is still on its way
        rank 0  … notice 0x5 to rank 1 is still on its way
        rank 0  … put of rank 0's region 0+8 to rank 1's word is still on its way";
    assert_eq!(left(&report.expect_violation().timeline), lines(wanted), "{report}");
}

/// Both ranks wait, one of them for two events, and a notice that has arrived is never taken.
#[test]
fn a_deadlock_names_ranks_and_conditions() {
    let report = Explorer::new(2).name(0, 0, "turn").run(|fabric: Fabric| async move {
        let region = kept(&fabric, 8).await?;
        let turn = region.word::<u64>(&fabric, 0)?;
        let come = fabric.wait_until(&turn, Deps::All, |turn| turn == 1);
        if fabric.rank() == A {
            join::race(come, fabric.next_notice(Deps::All)).await;
            return Ok(());
        }
        fabric.put_notify(&fabric.remote_span::<u64>(region.at(B, 0), 0)?, [], 3).await?;
        come.await?;
        Ok(())
    });
    let found = report.expect_violation();
    assert_eq!(
        found.what,
        "deadlock: nothing is on its way, and rank 0 waits for rank 0's turn to be something else than 0x0, or a notice; \
         rank 1 waits for rank 1's turn to be something else than 0x0"
    );
    let wanted = "
        rank 0  waits for rank 0's turn to be something else than 0x0, or a notice
        rank 1  posts put of no byte, with notice 0x3
        rank 1  waits for rank 1's turn to be something else than 0x0
        rank 1  ← notice 0x3 arrives at rank 1
        rank 1  … notice 0x3 of rank 1 was not taken";
    assert_eq!(found.timeline, lines(wanted), "{report}");
}

/// A rank waits, and so does a future that it has detached.
#[test]
fn waits_of_several_tasks_are_shown_together() {
    let again = Explorer::new(1).name(0, 0, "word").replay("A0+0:A0AA1", |fabric| async move {
        let word = kept(&fabric, 8).await?.word::<u64>(&fabric, 0)?;
        let (owner, there) = (fabric.clone(), word.as_remote());
        fabric.detach(async move { assert_eq!(owner.fetch_add(&there, 1).await, Ok(0)) });
        fabric.wait_until(&word, Deps::All, |bits| bits == 1).await?;
        Ok(())
    });
    let wanted = "
        rank 0  looks at rank 0's word: 0x0
        rank 0  posts fetch-add 1 at rank 0's word
        rank 0  waits for rank 0's word to be something else than 0x0, or its fetch-add 1 at rank 0's word to be complete
        rank 0  … fetch-add 1 at rank 0's word is still on its way";
    assert_eq!((again.what, again.timeline.iter().map(String::as_str).collect()), (None, lines(wanted)));
}

/// A wait for a word has a deadline.
#[test]
fn a_wait_names_its_deadline() {
    let report = Explorer::new(1).name(0, 0, "word").run(|fabric: Fabric| async move {
        let word = kept(&fabric, 8).await?.word::<u64>(&fabric, 0)?;
        let come = fabric.wait_until(&word, Deps::All, |bits| bits == 1);
        assert!(fabric.before(Time::from_picos(5), come).await.is_some(), "too late");
        Ok(())
    });
    let wanted = "rank 0  waits for rank 0's word to be something else than 0x0, or its clock to come to 5 ps";
    assert_eq!(report.expect_violation().timeline[0], wanted, "{report}");
}

fn endless<Fut>(program: impl Fn(Fabric) -> Fut) -> Vec<String>
where
    Fut: Future<Output = ProgramResult<()>> + 'static,
{
    let report = Explorer::new(2).patience(12).name(0, 0, "flag").run(program);
    assert!(report.cut > 0 && report.endless.iter().all(|rank| report.to_string().contains(rank)), "{report}");
    report.endless
}

/// A loop that never waits is cut, and the report names the rank and the acts that it repeats.
#[test]
fn a_rank_that_polls_is_named_and_so_is_what_it_polls() {
    let gets = endless(|fabric| async move {
        let flag = kept(&fabric, 8).await?.at(A, 0);
        let flag = fabric.remote_word::<u64>(flag)?;
        while fabric.rank() == B && fabric.get_word(&flag).await? == 0 {}
        Ok(())
    });
    assert_eq!(
        gets,
        ["rank 1 comes to no end of a step; in its last 13 answers there: get of rank 0's flag (13 times)"]
    );
    let both = endless(|fabric| async move {
        let flag = kept(&fabric, 8).await?.word::<u64>(&fabric, 0)?;
        while fabric.rank() == A && fabric.try_notice()?.is_none() {}
        while fabric.rank() == B && fabric.compare_swap(&flag.as_remote(), 1, 2).await? != 1 {
            fabric.sleep_until(fabric.now()).await;
        }
        Ok(())
    });
    assert_eq!(
        both,
        [
            "rank 0 comes to no end of a step; in its last 13 answers there: look for a notice (13 times)",
            "rank 1 comes to no end of a step; in its last 13 answers there: compare-and-swap at rank 1's flag (4 times), \
             look at its clock (4 times), wait for a moment (4 times)",
        ]
    );
}

/// A step's declared result leaves out a value that is put later.
#[test]
fn a_wrong_step_declaration_is_reported_with_the_difference() {
    let report = Explorer::new(2).name(0, 0, "count").name(0, 8, "copy").run(|fabric: Fabric| async move {
        let region = kept(&fabric, 16).await?;
        let before = fabric.fetch_add(&fabric.remote_word(region.at(A, 0))?, 1u64).await?;
        Probe::of(&fabric).step(());
        fabric.fetch_add(&fabric.remote_word(region.at(A, 0))?, 10u64).await?;
        fabric.put_word(&fabric.remote_word(region.at(fabric.rank(), 8))?, before).await?;
        Ok(())
    });
    let contradiction = report.contradiction.expect("the step forgets what was counted");
    let [one, other] = [0, 1].map(|bits| format!("posts put of {bits:#x} to rank 0's copy, then its end"));
    assert!(contradiction.starts_with("behind the end of a step rank 0 did this: posts put"), "{contradiction}");
    assert!(contradiction.contains(&one) && contradiction.contains(&other), "{contradiction}");
}
