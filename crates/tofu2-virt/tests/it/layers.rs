//! Layers between a program and its fabric: a layer that changes nothing has no effect, and a layer
//! sees all operations that it requests to see.

use crate::{control_queues::determinism::mixture, saturation::pairs, start::fx100};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Posting, QueueMode, QueueSpec},
};
use rdma_fabric::{
    Amo, Deps, Fabric, Program, ProgramResult, Result, forward,
    op::Nop,
    provider::{Place, Posted, Provider, Queues, Sink, Source, Token, WaitFor, WaitState},
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tofu2_virt::Stats;

/// A layer that forwards everything.
#[derive(Debug)]
struct Through {
    below: Fabric,
}

impl Through {
    fn over(below: Fabric) -> Fabric {
        below.layered(Through { below: below.clone() })
    }
}

impl Provider for Through {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, put, get, copy, atomic, nop);
    forward!(poll, test, forget, try_notice, poll_wait, end_wait, now, detach, optional);
}

/// A program under two layers that change nothing.
struct Under<P>(P);

impl<P: Program> Program for Under<P> {
    type Out = P::Out;

    async fn run(&self, fabric: Fabric) -> ProgramResult<P::Out> {
        self.0.run(Through::over(Through::over(fabric))).await
    }
}

/// Returns a run's figures, except the memory that a rank's future takes.
fn stats(ranks: usize, program: &impl Program) -> Stats {
    let mut stats = fx100(ranks).ranks_per_node(2).run(program).unwrap().stats;
    stats.bytes_per_rank = 0;
    stats
}

#[test]
fn a_run_under_layers_that_change_nothing_is_the_same_event_by_event() {
    assert_eq!(
        stats(12, &Under(async move |fabric| pairs(fabric, 5).await)),
        stats(12, &async |fabric| pairs(fabric, 5).await)
    );
    assert_eq!(
        stats(24, &Under(async move |fabric| mixture(fabric, 6).await)),
        stats(24, &async |fabric| mixture(fabric, 6).await)
    );
}

/// A layer that counts operations.
#[derive(Debug)]
struct Noting {
    below: Fabric,
    noted: Arc<Noted>,
}

type Noted = Mutex<BTreeMap<&'static str, usize>>;

impl Noting {
    fn note(&self, what: &'static str, times: usize) {
        *self.noted.lock().expect("nobody panics").entry(what).or_default() += times;
    }

    fn posted(&self, what: &'static str, posted: Posted) -> Posted {
        self.note(what, 1);
        if let Posted::Complete(_) = posted {
            self.note("done", 1);
        }
        posted
    }
}

impl Provider for Noting {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, wake, test, forget, try_notice, end_wait);
    forward!(copy, now, detach, abort);

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()> {
        self.note("store", 1);
        self.below.provider().write(to, from, waited)
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        let what = if notice.is_some() { "put with notice" } else { "put" };
        self.posted(what, self.below.provider().put(to, from, notice))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        self.posted("get", self.below.provider().get(from, to))
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.posted("atomic", self.below.provider().atomic(word, amo))
    }

    fn nop(&self) -> Posted {
        self.posted("nop", self.below.provider().nop())
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let stands = self.below.provider().poll(token, into, cx);
        if stands.is_ready() {
            self.note("done", 1);
        }
        stands
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let WaitFor::Flush(_) = wait_for
            && wait_state.is_empty()
        {
            self.note("flush", 1);
        }
        self.below.provider().poll_wait(wait_state, wait_for, cx)
    }

    fn queues(&self) -> Option<&dyn Queues> {
        self.note("control queues", 1);
        self.below.provider().queues()
    }
}

/// Uses many kinds of operations, by one rank with itself, and returns the counts.
async fn noted(fabric: Fabric) -> ProgramResult<Vec<(&'static str, usize)>> {
    let below = fabric;
    let noted = Arc::<Noted>::default();
    let fabric = below.layered(Noting { below: below.clone(), noted: noted.clone() });
    let home = fabric.alloc_symmetric(4096).await?;
    let me = fabric.rank();
    let word = home.word::<u64>(&fabric, 0)?;
    fabric.store(&word, 1)?;
    fabric.store_unwaited(&word, 2)?;
    let there = fabric.remote_span::<u64>(home.at(me, 8), 2)?;
    let back = fabric.put(&there, vec![3, 4]).await?;
    let back = fabric.put_notify(&there, back, 9).await?;
    fabric.flush(me).await?;
    let got = fabric.get(&there, [0; 2]).await?;
    let before = fabric.fetch_add(&fabric.remote_word::<u64>(home.at(me, 0))?, 5).await?;
    let mut nop = fabric.try_post(Nop).map_err(|refused| format!("{refused:?}"))?;
    while !nop.test() {
        fabric.compute(std::time::Duration::from_nanos(100)).await;
    }
    nop.wait()?;
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
    queue.post_all(&[Posting::new(Command::Nop); 3], Deps::All).await?;
    assert_eq!((back, got, before, fabric.load(&word)?), (vec![3, 4], [3, 4], 2, 7));
    assert_eq!(fabric.next_notice(Deps::All).await?.data, 9);
    let noted = noted.lock().expect("nobody panics").iter().map(|(what, times)| (*what, *times)).collect();
    Ok(noted)
}

#[test]
fn what_stands_in_between_sees_what_calls_are_made_of() {
    let seen = &checks::jobs::threads(1).segment_bytes(1 << 20).run(&noted).unwrap()[0];
    let expected = [
        ("atomic", 1),
        ("control queues", 1),
        ("done", 5),
        ("flush", 1),
        ("get", 1),
        ("nop", 1),
        ("put", 1),
        ("put with notice", 1),
        ("store", 2),
    ];
    assert_eq!(seen, &expected);
}
