//! Communications under ids: which communications a test or a wait covers.

use checks::jobs::threads;
use core::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};
use rdma_fabric::{Fabric, Group, ProgramResult, join};
use std::sync::{Arc, Mutex, MutexGuard};
use xmp_reflect::{
    Align, Array, Format, NodeSet, Nodes, Order, Pending, Reflect, Result, Shadow, Template, Transport, Widths,
    XmpError,
};

/// The state of a communication, and the number of polls.
#[derive(Clone, Default)]
struct Known {
    end: Option<Result<()>>,
    tests: usize,
    waits: usize,
}

/// A communication whose completion is controlled by a test.
#[derive(Clone, Default)]
struct Controlled(Arc<Mutex<Known>>);

impl Controlled {
    fn ended() -> Self {
        let one = Controlled::default();
        one.end(Ok(()));
        one
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("nothing panics in between")
    }

    fn end(&self, end: Result<()>) {
        self.known().end = Some(end);
    }

    /// Returns whether the table has it.
    fn is_kept(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Pending for Controlled {
    fn wait(&mut self) -> Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> {
        self.known().waits += 1;
        Box::pin(poll_fn(|_| self.known().end.clone().map_or(Poll::Pending, Poll::Ready)))
    }

    fn test(&mut self) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + '_>> {
        self.known().tests += 1;
        let end = self.known().end.clone();
        Box::pin(async move { end.transpose().map(|end| end.is_some()) })
    }
}

fn alone(program: impl AsyncFn(&mut NodeSet) -> ProgramResult<()> + Send + Sync) {
    let program = async |fabric: Fabric| {
        let nodes = Nodes::new(&[1], Order::LastFastest)?;
        program(&mut NodeSet::new(Group::world(&fabric).await?, nodes)?).await
    };
    threads(1).run(&program).unwrap();
}

fn pend<const N: usize>(set: &mut NodeSet, ids: [u64; N]) -> [Controlled; N] {
    ids.map(|id| {
        let one = Controlled::default();
        set.pend(id, one.clone());
        one
    })
}

fn failed(which: usize) -> XmpError {
    XmpError::NodeSet { nodes: which, ranks: 0 }
}

/// An id is complete when all of its communications are, in any order, and each makes progress in a
/// test.
#[test]
fn an_id_is_complete_when_all_of_its_communications_are() {
    alone(async |set| {
        for complete in 0..8u32 {
            let all = pend(set, [7, 7, 7]);
            let beside = pend(set, [8]);
            for (at, one) in all.iter().enumerate().filter(|(at, _)| complete >> at & 1 == 1) {
                one.end(Ok(()));
                assert!(one.is_kept(), "{at}");
            }
            for again in 1..=2 {
                assert_eq!(set.test_async(7).await, Ok(complete == 7), "{complete:b}");
                let tested = if complete == 7 { 1 } else { again };
                assert!(all.iter().all(|one| one.known().tests == tested), "{complete:b}: each is tested");
                assert!(all.iter().all(|one| one.is_kept() == (complete != 7)), "{complete:b}");
            }
            // A later one under the same id is also counted.
            let later = pend(set, [7]);
            all.iter().for_each(|one| one.end(Ok(())));
            assert_eq!(set.test_async(7).await, Ok(false), "{complete:b}");
            later[0].end(Ok(()));
            assert_eq!(set.test_async(7).await, Ok(true), "{complete:b}");
            assert!(!later[0].is_kept() && beside[0].is_kept() && beside[0].known().tests == 0);
            beside[0].end(Ok(()));
            set.wait_async(&[8]).await?;
        }
        Ok(())
    });
}

/// A failure takes its own communication from the table, and leaves the others of the id.
#[test]
fn a_failure_is_reported_once_and_loses_no_other() {
    alone(async |set| {
        for at in 0..3 {
            let all = pend(set, [7, 7, 7]);
            all[at].end(Err(failed(at)));
            assert_eq!(set.test_async(7).await, Err(failed(at)));
            assert!(all.iter().all(|one| one.known().tests == 1), "each is tested");
            for (other, one) in all.iter().enumerate() {
                assert_eq!(one.is_kept(), other != at, "{other} when {at} has failed");
            }
            assert_eq!(set.test_async(7).await, Ok(false));
            all.iter().for_each(|one| one.end(Ok(())));
            assert_eq!(set.test_async(7).await, Ok(true));
        }
        // Of several, the one that was started first.
        let all = pend(set, [7, 7, 7]);
        all[2].end(Err(failed(2)));
        all[1].end(Err(failed(1)));
        assert_eq!(set.test_async(7).await, Err(failed(1)));
        all[0].end(Ok(()));
        assert_eq!(set.test_async(7).await, Ok(true));
        Ok(())
    });
}

/// A wait for several ids is a wait for all of their communications, no matter which of them is
/// late.
#[test]
fn a_wait_is_over_when_all_of_its_ids_are() {
    alone(async |set| {
        for late in 0..4 {
            let all = pend(set, [1, 2, 1, 2]);
            let beside = pend(set, [3]);
            all.iter().enumerate().filter(|(at, _)| *at != late).for_each(|(_, one)| one.end(Ok(())));
            assert!(join::now(set.wait_async(&[2, 1, 9])).is_none(), "{late} is not complete");
            // A wait that is dropped may be called again.
            assert!(all.iter().all(Controlled::is_kept));
            assert!(join::now(set.wait_async(&[1, 2])).is_none(), "{late} is not complete");
            all[late].end(Ok(()));
            assert_eq!(join::now(set.wait_async(&[1, 2])), Some(Ok(())), "{late}");
            assert!(!all.iter().any(Controlled::is_kept));
            assert!(beside[0].is_kept() && beside[0].known().waits == 0);
            // No communication has these ids now; a new one may.
            assert_eq!(join::now(set.wait_async(&[1, 2])), Some(Ok(())));
            let again = pend(set, [1]);
            assert!(join::now(set.wait_async(&[1])).is_none());
            again[0].end(Ok(()));
            beside[0].end(Ok(()));
            set.wait_async(&[1, 3]).await?;
        }
        Ok(())
    });
}

#[test]
fn a_wait_with_failures_waits_for_the_others_and_reports_the_first() {
    alone(async |set| {
        let all = pend(set, [1, 2, 1, 2]);
        all[1].end(Err(failed(1)));
        all[2].end(Err(failed(2)));
        all[3].end(Ok(()));
        assert!(join::now(set.wait_async(&[2, 1])).is_none(), "the first is not complete");
        all[0].end(Ok(()));
        assert_eq!(join::now(set.wait_async(&[2, 1])), Some(Err(failed(1))));
        assert!(!all.iter().any(Controlled::is_kept));
        assert_eq!(set.test_async(1).await, Ok(true));
        Ok(())
    });
}

/// A reflect and another communication under one id, in both orders.
#[test]
fn a_reflect_that_is_not_complete_keeps_its_id_from_being() {
    let program = async |fabric: Fabric| {
        let mut set = NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
        let array = row(&set)?;
        set.reflect(&array, &Reflect::whole()).await?;
        for reflect_first in [true, false] {
            if !reflect_first {
                set.pend(4, Controlled::ended());
            }
            set.barrier().await?;
            if set.me() == 0 {
                set.reflect_async(&array, &Reflect::whole(), 4).await?;
                if reflect_first {
                    set.pend(4, Controlled::ended());
                }
                // Node 1 has not started yet.
                assert!(!set.test_async(4).await?, "{reflect_first}");
            }
            set.barrier().await?;
            if set.me() == 1 {
                set.reflect_async(&array, &Reflect::whole(), 4).await?;
            }
            while !set.test_async(4).await? {
                fabric.sleep(core::time::Duration::from_micros(1)).await;
            }
            set.barrier().await?;
        }
        Ok(())
    };
    threads(2).run(&program).unwrap();
}

/// Eight elements in a row, with a shadow of one.
#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges, of which there is one")]
pub(crate) fn row(set: &NodeSet) -> Result<Array<i32>> {
    let template = Template::new(&[0..8], &[Format::Block], set.nodes())?;
    set.array(&template.align(&[0..8], &[Align::with(0)])?.shadow(&[Shadow::of(1)])?)
}

/// Received cells are added once, no matter how often their id is tested.
#[test]
fn a_reduce_that_is_tested_again_adds_nothing_again() {
    alone(async |set| {
        let (array, around) = (row(set)?, Reflect::widths(&[Widths::of(1).periodic()]));
        array.fill(|_| 1)?;
        set.reflect(&array, &around).await?;
        set.reduce_shadow_async(&array, &around, |a, b| a + b, 3).await?;
        let [late] = pend(set, [3]);
        for _ in 0..4 {
            assert_eq!(set.test_async(3).await, Ok(false));
        }
        late.end(Ok(()));
        assert_eq!(set.test_async(3).await, Ok(true));
        assert_eq!([array.get(&[0])?, array.get(&[3])?, array.get(&[7])?], [2, 1, 2]);
        Ok(())
    });
}

/// With every transport, a view stops a reflect, and a reflect that is in flight keeps its cells
/// from being lent.
#[test]
fn every_transport_claims_its_cells() {
    let program = async |fabric: Fabric| {
        let mut set = NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
        let array = row(&set)?;
        for transport in Transport::ALL {
            let reflect = Reflect::whole().by(transport);
            set.reflect(&array, &reflect).await?;
            let view = array.view()?;
            assert!(set.reflect(&array, &reflect).await.is_err(), "{transport}");
            drop(view);
            set.reflect_async(&array, &reflect, 2).await?;
            assert!(array.view().is_err(), "{transport}: what is received is lent");
            set.wait_async(&[2]).await?;
            assert!(array.view().is_ok(), "{transport}");
            set.barrier().await?;
        }
        Ok(())
    };
    threads(2).run(&program).unwrap();
}
