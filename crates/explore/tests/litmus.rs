//! What the contract promises, and what it does not: small programs whose outcomes are all known.

use explore::{Explorer, Probe, Report, Stop, Verdict};
use rdma_fabric::{Caps, Deps, Fabric, LocalSpan, ProgramResult, PutOrder, Rank, Region, Time, join, op};
use std::{cell::RefCell, collections::BTreeSet, future::Future, rc::Rc};

const A: Rank = Rank::new(0);
const B: Rank = Rank::new(1);

/// What a program may see, over all orders.
fn outcomes<Fut>(explorer: Explorer<'_>, program: impl Fn(Fabric) -> Fut) -> BTreeSet<u64>
where
    Fut: Future<Output = ProgramResult<u64>> + 'static,
{
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let fact = Rc::clone(&seen);
    explorer
        .at_end("outcome", move |view| {
            fact.borrow_mut().insert(view.fact(0));
            true
        })
        .run(|fabric| {
            let (probe, run) = (Probe::of(&fabric), program(fabric));
            async move {
                let outcome = run.await?;
                if outcome != 0 {
                    probe.set(0, outcome);
                }
                Ok(())
            }
        })
        .expect_exhausted();
    seen.take()
}

/// Two words of each rank.
async fn words(fabric: &Fabric) -> ProgramResult<Region> {
    Ok(fabric.alloc_symmetric(16).await?)
}

/// Of jobs that are not about their end.
fn explorer(ranks: usize) -> Explorer<'static> {
    Explorer::new(ranks).leave_together()
}

/// A puts to two words of B; B reads the second, then the first.
async fn two_puts(fabric: Fabric, flush: bool) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    if fabric.rank() == A {
        fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
        if flush {
            fabric.flush(B).await?;
        }
        fabric.put_word(&fabric.remote_word(region.at(B, 8))?, 1u64).await?;
        return Ok(0);
    }
    let second: u64 = fabric.load(&region.word(&fabric, 8)?)?;
    let first: u64 = fabric.load(&region.word(&fabric, 0)?)?;
    Ok(10 + 2 * second + first)
}

#[test]
fn puts_are_ordered_by_a_flush_only() {
    assert_eq!(outcomes(explorer(2), |fabric| two_puts(fabric, false)), BTreeSet::from([10, 11, 12, 13]));
    assert_eq!(outcomes(explorer(2), |fabric| two_puts(fabric, true)), BTreeSet::from([10, 11, 13]));
}

/// A puts to B and then adds to a word of `counter`; B, having seen the addition, reads.
async fn put_then_atomic(fabric: Fabric, counter: Rank) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    let count = fabric.remote_word::<u64>(region.at(counter, 8))?;
    if fabric.rank() == A {
        fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
        fabric.fetch_add(&count, 1).await?;
        return Ok(0);
    }
    let added = fabric.get_word(&count).await?;
    let put = fabric.load::<u64>(&region.word(&fabric, 0)?)?;
    Ok(10 + 2 * added + put)
}

#[test]
fn puts_are_ordered_before_atomics_as_far_as_the_capabilities_say() {
    let with = |order| {
        let mut caps = Caps::weakest();
        caps.put_order = order;
        move |counter| outcomes(explorer(2).caps(caps), move |fabric| put_then_atomic(fabric, counter))
    };
    let (any, ordered) = (BTreeSet::from([10, 11, 12, 13]), BTreeSet::from([10, 11, 13]));
    assert_eq!(with(PutOrder::None)(B), any);
    assert_eq!(with(PutOrder::SameTarget)(B), ordered);
    assert_eq!(with(PutOrder::SameTarget)(A), any);
    assert_eq!(with(PutOrder::AllTargets)(A), ordered);
}

#[test]
fn what_is_awaited_has_happened_and_what_is_dropped_happens_later() {
    let program = |dropped: bool| {
        move |fabric: Fabric| async move {
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            let handle = fabric.try_post(op::Atomic { word: &word, amo: rdma_fabric::Amo::Add(1) }).expect("room");
            if dropped {
                drop(handle);
            } else {
                handle.await?;
            }
            Ok(10 + fabric.load::<u64>(&region.word(&fabric, 0)?)?)
        }
    };
    assert_eq!(outcomes(explorer(1), program(false)), BTreeSet::from([11]));
    assert_eq!(outcomes(explorer(1), program(true)), BTreeSet::from([10, 11]));
}

#[test]
fn a_test_may_fail_when_the_effect_is_there() {
    let seen = outcomes(explorer(1), |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let mut handle = fabric.try_post(op::Atomic { word: &word, amo: rdma_fabric::Amo::Add(1) }).expect("room");
        let value = fabric.load::<u64>(&region.word(&fabric, 0)?)?;
        Ok(10 + 2 * u64::from(handle.test()) + value)
    });
    assert_eq!(seen, BTreeSet::from([10, 11, 12, 13]));
}

#[test]
fn a_race_may_be_lost_by_what_has_happened() {
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(B, 0))?;
        if fabric.rank() == B {
            let before = fabric.get_word(&word).await?;
            fabric.put_word(&fabric.remote_word(region.at(A, 8))?, 1 + before).await?;
            return Ok(0);
        }
        let told = region.word::<u64>(&fabric, 8)?;
        let told = fabric.wait_until(&told, Deps::All, |value| value != 0);
        match join::race(fabric.fetch_add(&word, 1), told).await {
            join::Either::First(old) => Ok(10 + old?),
            // 22: the other rank had seen the addition when this one did not know of it.
            join::Either::Second(told) => Ok(20 + told?),
        }
    });
    assert_eq!(seen, BTreeSet::from([10, 21, 22]));
}

#[test]
fn registered_bytes_are_read_until_the_put_is_complete() {
    let program = |waits: bool| {
        move |fabric: Fabric| async move {
            let region = words(&fabric).await?;
            if fabric.rank() == B {
                let word = region.word::<u64>(&fabric, 0)?;
                return Ok(10 + fabric.wait_until(&word, Deps::All, |bits| bits != 0).await?);
            }
            let source: LocalSpan<u64> = region.span(&fabric, 8, 1)?;
            fabric.write(&source, &[1])?;
            let to = fabric.remote_span::<u64>(region.at(B, 0), 1)?;
            let handle = fabric.try_post(op::Put { to: &to, from: source.clone(), notice: None }).expect("room");
            if waits {
                let back = handle.await?;
                fabric.write(&back, &[2])?;
            } else {
                fabric.write(&source, &[2])?;
            }
            Ok(0)
        }
    };
    assert_eq!(outcomes(explorer(2), program(true)), BTreeSet::from([11]));
    assert_eq!(outcomes(explorer(2), program(false)), BTreeSet::from([11, 12]));
}

#[test]
fn a_long_get_is_torn_between_words_and_not_within() {
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        let span = fabric.remote_span::<u64>(region.at(B, 0), 2)?;
        if fabric.rank() == A {
            fabric.put(&span, [0x1_0000_0001u64, 0x1_0000_0001]).await?;
            return Ok(0);
        }
        let [a, b] = fabric.get(&span, [0u64; 2]).await?;
        assert!([0, 0x1_0000_0001].contains(&a), "torn: {a:#x}");
        Ok(10 + 2 * (a & 1) + (b & 1))
    });
    assert_eq!(seen, BTreeSet::from([10, 11, 12, 13]));
}

#[test]
fn half_words_stand_beside_each_other() {
    let seen = outcomes(explorer(1), |fabric| async move {
        let region = words(&fabric).await?;
        let [low, high] = [0, 4].map(|offset| fabric.remote_word::<u32>(region.at(A, offset)));
        assert_eq!(fabric.fetch_add(&low?, u32::MAX).await?, 0);
        assert_eq!(fabric.fetch_add(&high?, 7).await?, 0);
        assert_eq!(fabric.fetch_add(&fabric.remote_word::<u32>(region.at(A, 0))?, 2).await?, u32::MAX);
        let mut both = [0u32; 2];
        fabric.read(&region.span(&fabric, 0, 2)?, &mut both)?;
        assert_eq!(both, [1, 7]);
        Ok(1)
    });
    assert_eq!(seen, BTreeSet::from([1]));
}

#[test]
fn notices_come_in_posting_order_and_after_their_bytes() {
    let report = explorer(3).run(|fabric| async move {
        let region = words(&fabric).await?;
        let me = u64::from(fabric.rank().number());
        if me < 2 {
            let to = fabric.remote_span::<u64>(region.at(Rank::new(2), 8 * me), 1)?;
            for round in 1..=2 {
                fabric.put_notify(&to, [round], round).await?;
            }
            return Ok(());
        }
        let mut last = [0, 0];
        for _ in 0..4 {
            let notice = fabric.next_notice(Deps::All).await?;
            let from = notice.from.index();
            assert_eq!(notice.data, last[from] + 1, "notices of one poster overtook each other");
            last[from] += 1;
            let word = fabric.load::<u64>(&region.word(&fabric, 8 * from)?)?;
            // The other round's put may be on top of it.
            assert!(word != 0, "a notice came before its bytes");
        }
        assert_eq!(fabric.try_notice()?, None);
        Ok(())
    });
    report.expect_exhausted();
}

#[test]
fn a_rank_that_waits_for_ever_is_found() {
    let report = explorer(2).run(|fabric| async move {
        let region = words(&fabric).await?;
        let word = region.word::<u64>(&fabric, 0)?;
        let other = Rank::new(1 - fabric.rank().number());
        // Each waits before it tells the other.
        fabric.wait_until(&word, Deps::All, |bits| bits == 1).await?;
        fabric.put_word(&fabric.remote_word(region.at(other, 0))?, 1u64).await?;
        Ok(())
    });
    let found = report.expect_violation();
    assert!(found.what.starts_with("deadlock") && found.what.contains("rank 0") && found.what.contains("rank 1"));
    assert!(found.shortest && found.moves == 0);
}

#[test]
fn a_deadline_comes_at_any_moment() {
    let seen = outcomes(explorer(2), |fabric| async move {
        let region = words(&fabric).await?;
        if fabric.rank() == A {
            fabric.put_word(&fabric.remote_word(region.at(B, 0))?, 1u64).await?;
            return Ok(0);
        }
        let word = region.word::<u64>(&fabric, 0)?;
        let woken = fabric.wait_until(&word, Deps::All, |bits| bits == 1);
        let woken = fabric.before(Time::from_picos(5), woken).await.is_some();
        let late = fabric.now() >= Time::from_picos(5);
        Ok(10 + 2 * u64::from(woken) + u64::from(late))
    });
    assert_eq!(seen, BTreeSet::from([11, 12, 13]));
}

#[test]
fn detached_futures_run_to_their_end_beside_the_program() {
    let seen = outcomes(explorer(1), |fabric| async move {
        let region = Rc::new(words(&fabric).await?);
        let [first, second] = [0, 8].map(|offset| fabric.remote_word::<u64>(region.at(A, offset)));
        let (first, second) = (first?, second?);
        fabric.detach({
            // What it uses it has to own: the program may be over before.
            let (fabric, owned) = (fabric.clone(), region.clone());
            async move {
                let _owned = owned;
                fabric.fetch_add(&first, 1).await.expect("no error");
                fabric.fetch_add(&second, 1).await.expect("no error");
            }
        });
        let mut both = [0u64; 2];
        fabric.read(&(*region).span(&fabric, 0, 2)?, &mut both)?;
        Ok(10 + 2 * both[0] + both[1])
    });
    // Its first poll comes at once or later, but not between the two looks: a rank's tasks take turns where they wait.
    assert_eq!(seen, BTreeSet::from([10, 12, 13]));
    let report = explorer(1).at_end("both added", |view| view.words().count() == 2).run(|fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let other = fabric.remote_word::<u64>(region.at(A, 8))?;
        let owner = fabric.clone();
        fabric.detach(async move {
            let _owned = region;
            owner.fetch_add(&word, 1).await.expect("no error");
            owner.fetch_add(&other, 1).await.expect("no error");
        });
        Ok(())
    });
    report.expect_exhausted();
}

/// A provider that polls it later does so while the program waits for what it does.
#[test]
fn detached_futures_run_while_the_program_waits() {
    let report = Explorer::new(1).run(|fabric| async move {
        let region = words(&fabric).await?;
        let (word, owner) = (region.word::<u64>(&fabric, 0)?, fabric.clone());
        let added = word.as_remote();
        fabric.detach(async move { assert_eq!(owner.fetch_add(&added, 1).await, Ok(0)) });
        fabric.wait_until(&word, Deps::All, |value| value == 1).await?;
        Ok(())
    });
    report.expect_exhausted();
}

#[test]
fn operations_posted_together_complete_in_any_order() {
    let seen = outcomes(explorer(1), |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let (a, b) = join::join(fabric.fetch_add(&word, 1), fabric.fetch_add(&word, 1)).await;
        Ok(10 + 2 * a? + b?)
    });
    assert_eq!(seen, BTreeSet::from([11, 12]));
}

#[test]
fn a_group_meets_at_its_barrier_in_every_order() {
    for (ranks, rounds) in [(2, 2), (3, 1)] {
        let report = explorer(ranks).run(move |fabric| async move {
            let probe = Probe::of(&fabric);
            let mut world = rdma_fabric::Group::world(&fabric).await?;
            for round in 1..=rounds {
                probe.add(0, 1);
                world.barrier().await?;
                let here = probe.get(0);
                assert!(here >= round * ranks as u64, "{here} had come when somebody left barrier {round}");
            }
            Ok(())
        });
        report.expect_exhausted();
    }
}

/// Detaches when it is dropped, as guards do.
struct Guard(Fabric);

impl Drop for Guard {
    fn drop(&mut self) {
        let fabric = self.0.clone();
        self.0.detach(async move { fabric.flush_all().await.expect("no error") });
    }
}

#[test]
fn a_panic_under_a_guard_is_a_finding_and_nothing_worse() {
    let program = |fabric: Fabric| async move {
        let region = words(&fabric).await?;
        let _guard = Guard(fabric.clone());
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        assert_eq!(fabric.fetch_add(&word, 1).await?, 0, "somebody was here");
        Ok(())
    };
    let report = explorer(2).run(program);
    assert!(report.expect_violation().what.contains("somebody was here"), "{report}");
    let sample = explorer(2).sample(1, 10, program);
    assert!(sample.failure.is_some_and(|failure| failure.what.contains("somebody was here")));
}

fn retrying(ends: bool) -> Report {
    // The increment by compare-and-swap retries as often as others get in its way; without them it ends.
    explorer(2).patience(8).run(move |fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let mut known = 0;
        loop {
            let seen = fabric.compare_swap(&word, known, known + 1).await?;
            if seen == known && ends {
                return Ok(());
            }
            known = seen;
        }
    })
}

#[test]
fn a_step_without_an_end_is_cut_and_told() {
    assert!(matches!(retrying(true).verdict, Verdict::Exhausted));
    let report = retrying(false);
    assert!(matches!(report.verdict, Verdict::Stopped(Stop::Steps(8))), "{report}");
    assert!(report.cut > 0);
}

#[test]
fn a_program_with_hidden_state_is_refused() {
    let hidden = Rc::new(std::cell::Cell::new(0u64));
    let report = explorer(1).run(move |fabric| {
        let hidden = hidden.clone();
        async move {
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            hidden.set(hidden.get() + 1);
            fabric.fetch_add(&word, hidden.get()).await?;
            Ok(())
        }
    });
    assert!(report.expect_violation().what.contains("not deterministic"), "{report}");
}

/// A rank that remembers, across the end of a step, whether it met the other one; `tells` or not.
fn remembers(tells: bool) -> Report {
    explorer(2).run(move |fabric| async move {
        let probe = Probe::of(&fabric);
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(A, 0))?;
        let met = fabric.fetch_add(&word, 1).await?;
        probe.step(if tells { met } else { 0 });
        fabric.fetch_add(&word, 10).await?;
        // Far behind the end of the step.
        if met == 1 {
            fabric.put_word(&fabric.remote_word(region.at(B, 8))?, 1u64).await?;
        }
        Ok(())
    })
}

#[test]
fn a_step_that_forgets_too_much_is_found() {
    remembers(true).expect_exhausted();
    let report = remembers(false);
    assert!(report.contradiction.is_some(), "{report}");
}

#[test]
fn steps_make_states_after_different_histories_the_same() {
    let run = |steps: bool| {
        explorer(3).run(move |fabric| async move {
            let probe = Probe::of(&fabric);
            let region = words(&fabric).await?;
            let word = fabric.remote_word::<u64>(region.at(A, 0))?;
            for round in 0..2 {
                fabric.fetch_add(&word, 1).await?;
                if steps {
                    probe.step(round);
                }
            }
            Ok(())
        })
    };
    let (with, without) = (run(true), run(false));
    with.expect_exhausted();
    without.expect_exhausted();
    // Each rank is in one of three places; or in one for each of what it was told.
    assert_eq!(with.states, 27);
    assert!(without.states > 100, "{without}");
}

#[test]
fn a_violation_is_replayed_and_sampled() {
    let program = |fabric| async move {
        two_puts(fabric, false).await.map(|seen| assert_ne!(seen, 12, "the second put overtook the first"))
    };
    let report = explorer(2).run(program);
    let found = report.expect_violation();
    let (what, timeline) = explorer(2).replay(&found.schedule, program);
    assert_eq!((what.as_ref(), &timeline), (Some(&found.what), &found.timeline));
    assert!(found.timeline.iter().any(|line| line.contains("put arrives at rank 1's region 0+8")), "{found}");
    let sample = explorer(2).sample(1, 1_000, program);
    assert!(sample.failure.is_some_and(|failure| failure.what.contains("overtook")));
}

/// Ranks share nodes as the explorer is told; without a word each has its own.
#[test]
fn ranks_are_on_their_nodes() {
    let placed = |fabric: &Fabric| (0..3).map(|rank| fabric.node(Rank::new(rank)).unwrap().index()).collect::<Vec<_>>();
    let apart = explorer(3).run(move |fabric| async move {
        assert_eq!((placed(&fabric), fabric.nodes()), (vec![0, 1, 2], 3));
        Ok(())
    });
    apart.expect_exhausted();
    let together = explorer(3).nodes(&[0, 1, 0]).run(move |fabric| async move {
        assert_eq!((placed(&fabric), fabric.nodes()), (vec![0, 1, 0], 2));
        assert_eq!(fabric.rank_on(fabric.node(A)?, 1), Some(Rank::new(2)));
        Ok(())
    });
    together.expect_exhausted();
}

/// What is waited for beside something else is looked at again after each thing that the something else did.
#[test]
fn a_wait_beside_another_wakes_whenever_it_may() {
    let report = explorer(2).run(|fabric| async move {
        let region = words(&fabric).await?;
        let theirs = |rank, at| fabric.remote_word::<u64>(region.at(rank, at));
        let come = async |at| fabric.wait_until(&region.word(&fabric, at)?, Deps::All, |value: u64| value != 0).await;
        if fabric.rank() == A {
            let answers = async {
                come(0).await?;
                fabric.put_word(&theirs(B, 0)?, 1).await
            };
            let looks = async {
                fabric.load::<u64>(&region.word(&fabric, 8)?)?;
                come(8).await
            };
            let (answered, _) = (join::join(answers, looks)).await;
            answered?;
        } else {
            fabric.put_word(&theirs(A, 0)?, 1).await?;
            come(0).await?;
            fabric.put_word(&theirs(A, 8)?, 1).await?;
        }
        Ok(())
    });
    report.expect_exhausted();
}

/// Four words are got in 2^4 orders, or in one; the put that is on its way arrives at any time afterwards.
#[test]
fn a_set_up_has_one_order_and_what_follows_all() {
    let explore = |explorer: Explorer<'static>| {
        let seen = Rc::new(RefCell::new(BTreeSet::new()));
        let all = Rc::clone(&seen);
        let explorer = explorer.at_end("outcome", move |view| {
            all.borrow_mut().insert(view.fact(9));
            true
        });
        let report = explorer.run(|fabric| async move {
            let region = fabric.alloc_symmetric(64).await?;
            fabric.get(&fabric.remote_span::<u64>(region.at(A, 0), 4)?, [0; 4]).await?;
            if fabric.rank() == A {
                fabric.put_word(&fabric.remote_word(region.at(B, 32))?, 1u64).await?;
            }
            Probe::of(&fabric).set(fabric.rank().number(), 1);
            if fabric.rank() == B {
                let put: u64 = fabric.load(&region.word(&fabric, 32)?)?;
                Probe::of(&fabric).set(9, 1 + put);
            }
            Ok(())
        });
        report.expect_exhausted();
        (report.states, seen.take())
    };
    let (all, one) = (explore(explorer(2)), explore(explorer(2).set_up(0)));
    assert_eq!((&all.1, &one.1), (&BTreeSet::from([1, 2]), &BTreeSet::from([1, 2])));
    assert!(all.0 > 200 && one.0 < 40, "{} states, and {} with one order of the set-up", all.0, one.0);
}
