//! Fabrics under layers: what changes nothing changes nothing, and a layer sees all that it asks for.

use crate::{control_queues::determinism::mixture, saturation::pairs, start::fx100};
use rdma_fabric::{
    Amo, AtomicWord, ControlQueue, Deps, Fabric, FullFabric, LocalWord, OpHandle, Pod, Program, ProgramResult,
    PutOptions, PutSource, Rank, Refused, Region, RegionAccess, RemoteSpan, RemoteWord, Result, SessionFabric,
    control_queue::{Command, Posting, QueueMode, QueueSpec},
    layer::Layer,
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};
use tofu2_sim::virt::Stats;

/// A program under two layers that change nothing.
struct Under<P>(P);

impl<P: Program> Program for Under<P> {
    type Out = P::Out;

    async fn run<F: FullFabric>(&self, fabric: F) -> ProgramResult<P::Out> {
        self.0.run(().over(().over(fabric))).await
    }
}

/// But for the room that a rank's future takes.
fn stats(ranks: usize, program: &impl Program) -> Stats {
    let mut stats = fx100(ranks).ranks_per_node(2).run(program).unwrap().stats;
    stats.bytes_per_rank = 0;
    stats
}

#[test]
fn a_run_under_layers_that_change_nothing_is_the_same_event_by_event() {
    assert_eq!(stats(12, &Under(pairs { pairs: 5 })), stats(12, &pairs { pairs: 5 }));
    assert_eq!(stats(24, &Under(mixture { laps: 6 })), stats(24, &mixture { laps: 6 }));
}

/// Notes what passes.
#[derive(Clone, Debug, Default)]
struct Noting(Rc<RefCell<BTreeMap<&'static str, u32>>>);

impl Noting {
    fn note(&self, what: &'static str) {
        *self.0.borrow_mut().entry(what).or_default() += 1;
    }
}

/// A handle that notes its end.
struct Noted<H> {
    handle: H,
    layer: Noting,
}

impl<H: Future + Unpin> Future for Noted<H> {
    type Output = H::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<H::Output> {
        let poll = Pin::new(&mut self.handle).poll(cx);
        if poll.is_ready() {
            self.layer.note("done");
        }
        poll
    }
}

impl<T: Unpin + 'static, H: OpHandle<T>> OpHandle<T> for Noted<H> {
    fn test(&mut self) -> bool {
        self.handle.test()
    }

    fn wait(self) -> Result<T> {
        self.layer.note("waited for");
        self.handle.wait()
    }
}

impl<F: Fabric> Layer<F> for Noting {
    type Handle<T: Unpin + 'static> = Noted<F::Handle<T>>;

    fn handle<T: Unpin + 'static>(&self, _: &F, handle: F::Handle<T>) -> Noted<F::Handle<T>> {
        Noted { handle, layer: self.clone() }
    }

    fn store<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>, value: W) -> Result<()> {
        self.note("store");
        below.store(word, value)
    }

    fn try_put<T: Pod, S: PutSource<F, T>>(
        &self,
        below: &F,
        to: &RemoteSpan<F, T>,
        from: S,
        options: PutOptions,
    ) -> Result<Self::Handle<S>, Refused<S>> {
        self.note(if options.notice.is_some() { "put with notice" } else { "put" });
        below.try_put(to, from, options).map(|handle| self.handle(below, handle))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        below: &F,
        word: &RemoteWord<F, W>,
        amo: Amo<W>,
    ) -> Result<Self::Handle<W>, Refused<()>> {
        self.note("atomic");
        below.try_atomic(word, amo).map(|handle| self.handle(below, handle))
    }

    async fn flush(&self, below: &F, target: Rank) -> Result<()> {
        self.note("flush");
        below.flush(target).await
    }

    async fn command(&self, _: &F, queue: &F::Queue, posting: Posting, deps: Deps<'_>) -> Result<()>
    where
        F: SessionFabric,
    {
        self.note("command");
        queue.post(posting, deps).await
    }
}

rdma_fabric::program! {
    /// Some of everything, by one rank with itself, and what a layer noted of it.
    async fn noted<F>(fabric: F) -> Vec<(&'static str, u32)> {
        let noting = Noting::default();
        let fabric = noting.clone().over(fabric);
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
        let mut nop = fabric.try_nop().map_err(|refused| format!("{refused:?}"))?;
        while !nop.test() {
            fabric.compute(std::time::Duration::from_nanos(100)).await;
        }
        nop.wait()?;
        let queue = fabric.open_queue(QueueSpec::new(QueueMode::Normal))?;
        queue.post_all(&[Posting::new(Command::Nop); 3], Deps::All).await?;
        assert_eq!((back, got, before, fabric.load(&word)?), (vec![3, 4], [3, 4], 2, 7));
        assert_eq!(fabric.next_notice(Deps::All).await?.data, 9);
        let noted = noting.0.borrow().iter().map(|(what, times)| (*what, *times)).collect();
        Ok(noted)
    }
}

#[test]
fn a_layer_sees_what_calls_are_made_of() {
    let seen = &fx100(1).run(&noted {}).unwrap().outs[0];
    let expected = [
        ("atomic", 1),
        ("command", 3),
        ("done", 4),
        ("flush", 1),
        ("put", 1),
        ("put with notice", 1),
        ("store", 2),
        ("waited for", 1),
    ];
    assert_eq!(seen, &expected);
}
