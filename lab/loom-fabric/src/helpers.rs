//! Helpers: threads of a rank in addition to its program.

use crate::{Job, fabric::Modelled, job::Actor, running};
use loom::thread::{self, JoinHandle};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank, Result, provider::HelperTask};
use std::{
    cell::RefCell,
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

type Run = Pin<Box<dyn Future<Output = ProgramResult<()>>>>;

struct Helper {
    me: Actor,
    name: &'static str,
    run: Run,
}

/// The helpers of a job.
#[derive(Default)]
pub(crate) struct Helpers {
    /// Helpers started during set-up, which begin with the model.
    waiting: RefCell<Vec<Helper>>,
    /// Helpers that do not run, until the job ends.
    idle: RefCell<Vec<Helper>>,
    /// The threads of all other helpers.
    threads: RefCell<Vec<JoinHandle<()>>>,
}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Helpers({} waiting)", self.waiting.borrow().len())
    }
}

impl Job {
    /// Starts a helper. During set-up the helper is only queued and begins with the model.
    pub(crate) fn start_helper(
        self: &Rc<Self>,
        like: &Fabric,
        rank: Rank,
        name: &'static str,
        task: HelperTask,
    ) -> Result<()> {
        if !like.caps().helpers {
            return Err(FabricError::Unsupported { feature: &"helpers" });
        }
        let me = self.add_helper(rank);
        let helper = Helper { me, name, run: task(like.sibling(Modelled::handle(self, me))) };
        if self.cells.are_shared() {
            self.spawn_helper(helper);
        } else {
            self.helpers.waiting.borrow_mut().push(helper);
        }
        Ok(())
    }

    fn spawn_helper(self: &Rc<Self>, helper: Helper) {
        let job = self.clone();
        let thread = running::spawn(move || job.run_helper(helper));
        self.helpers.threads.borrow_mut().push(thread);
    }

    /// Polls the helpers that were started during set-up, on its thread.
    pub(crate) fn poll_helpers(&self, cx: &mut Context<'_>) {
        let mut waiting = self.helpers.waiting.take();
        waiting.retain_mut(|Helper { me, name, run }| match run.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(error)) => panic!("helper {name:?} of {}: {error}", me.rank),
        });
        // Helpers that these have started follow.
        self.helpers.waiting.borrow_mut().splice(0..0, waiting);
    }

    /// Starts the helpers that were queued during set-up, except for idle ones.
    pub(crate) fn begin_helpers(self: &Rc<Self>) {
        for helper in self.helpers.waiting.take() {
            match (self.config.idle)(helper.me.rank, helper.name) {
                true => self.helpers.idle.borrow_mut().push(helper),
                false => self.spawn_helper(helper),
            }
        }
    }

    /// Waits until all helpers have ended, and drops the idle ones.
    pub(crate) fn join_helpers(&self) {
        loop {
            let Some(thread) = self.helpers.threads.borrow_mut().pop() else { break };
            running::join(thread);
        }
        drop(self.helpers.idle.take());
    }

    fn run_helper(&self, Helper { me, name, run }: Helper) {
        self.states()[me.task].thread = Some(thread::current());
        let has_ended = || self.states()[me.rank.index()].over;
        if let Some(Err(error)) = self.block_on(me, run, has_ended)
            && !has_ended()
        {
            panic!("helper {name:?} of {}: {error}", me.rank);
        }
        self.drain(me, None);
        self.states()[me.task].thread = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::{Access, Config, Delivery, check, check_fails, run, run_after};
    use rdma_fabric::{Deps, Fabric, ProgramResult, Region};
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    };

    fn config(ranks: usize, delivery: Delivery) -> Config {
        let mut config = Config::new(ranks, delivery);
        config.caps.helpers = true;
        config
    }

    async fn wait_for(fabric: &Fabric, region: &Region, offset: usize) -> ProgramResult<()> {
        let word = region.word::<u64>(fabric, offset)?;
        fabric.wait_until(&word, Deps::One(fabric.rank()), |value| value == 1).await?;
        Ok(())
    }

    /// A helper answers its program through a word, after writing a region that loom watches.
    fn answered(relaxed: fn(Access) -> bool) -> impl Fn() + Send + Sync + 'static {
        move || {
            let set_up = async |fabric: Fabric| -> (Arc<Region>, Arc<Region>) {
                let words = Arc::new(fabric.alloc(16).unwrap());
                let data = Arc::new(crate::RankHandle::of(&fabric).watched(|| fabric.alloc(8).unwrap()));
                let (shared, written) = (words.clone(), data.clone());
                let answers = move |fabric: Fabric| async move {
                    wait_for(&fabric, &shared, 0).await?;
                    fabric.write(&written.span::<u64>(&fabric, 0, 1)?, &[7])?;
                    Ok(fabric.store(&shared.word(&fabric, 8)?, 1u64)?)
                };
                fabric.helper("answers", answers).unwrap();
                let _resolved = [0, 8].map(|at| words.word::<u64>(&fabric, at).unwrap());
                (words, data)
            };
            let config = Config { relaxed, ..config(1, Delivery::AtPost) };
            run_after(config, set_up, |fabric, (words, data)| async move {
                fabric.store(&words.word(&fabric, 0).unwrap(), 1u64).unwrap();
                wait_for(&fabric, &words, 8).await.unwrap();
                let mut found = [0u64];
                fabric.read(&data.span::<u64>(&fabric, 0, 1).unwrap(), &mut found).unwrap();
                assert_eq!(found, [7]);
                (words, data)
            });
        }
    }

    #[test]
    fn a_helper_answers() {
        check(None, 2, answered(|_| false));
    }

    #[test]
    fn waits_for_a_helper_must_acquire() {
        check_fails(None, &["Causality violation"], answered(|access| matches!(access, Access::Wait(_))));
    }

    /// A peer wakes the helper. Once its program has returned, the helper is dropped at its next
    /// wait.
    #[test]
    fn a_helper_ends_with_its_program() {
        static ENDED: AtomicBool = AtomicBool::new(false);
        for delivery in [Delivery::AtPost, Delivery::AtFlush] {
            check(Some(2), 10, move || {
                ENDED.store(false, Relaxed);
                let job = run(config(2, delivery), |fabric: Fabric| async move {
                    let region = Arc::new(fabric.alloc_symmetric(24).await.unwrap());
                    let peer = rdma_fabric::Rank::new(1 - fabric.rank().number());
                    if fabric.rank().number() == 1 {
                        fabric.put_word(&fabric.remote_word(region.at(peer, 0)).unwrap(), 1u64).await.unwrap();
                        return region;
                    }
                    let shared = region.clone();
                    let passes = move |fabric: Fabric| async move {
                        wait_for(&fabric, &shared, 0).await?;
                        fabric.store(&shared.word(&fabric, 8)?, 1u64)?;
                        wait_for(&fabric, &shared, 16).await?;
                        ENDED.store(true, Relaxed);
                        Ok(())
                    };
                    fabric.helper("passes", passes).unwrap();
                    wait_for(&fabric, &region, 8).await.unwrap();
                    region
                });
                assert!(!ENDED.load(Relaxed), "nobody ends its second wait");
                drop(job);
            });
        }
    }

    /// The set-up waits for a word of its helper, which then waits for the program, unless it is
    /// idle.
    fn set_up_with_a_helper(idle: fn(rdma_fabric::Rank, &'static str) -> bool) -> impl Fn() + Send + Sync + 'static {
        move || {
            let set_up = async |fabric: Fabric| -> Arc<Region> {
                let words = Arc::new(fabric.alloc(24).unwrap());
                let shared = words.clone();
                let answers = move |fabric: Fabric| async move {
                    fabric.store(&shared.word(&fabric, 0)?, 1u64)?;
                    wait_for(&fabric, &shared, 8).await?;
                    Ok(fabric.store(&shared.word(&fabric, 16)?, 1u64)?)
                };
                fabric.helper("answers", answers).unwrap();
                wait_for(&fabric, &words, 0).await.unwrap();
                let _resolved = [8, 16].map(|at| words.word::<u64>(&fabric, at).unwrap());
                words
            };
            run_after(Config { idle, ..config(1, Delivery::AtPost) }, set_up, |fabric, words| async move {
                fabric.store(&words.word(&fabric, 8).unwrap(), 1u64).unwrap();
                wait_for(&fabric, &words, 16).await.unwrap();
                words
            });
        }
    }

    #[test]
    fn a_set_up_may_wait_for_its_helper() {
        check(None, 2, set_up_with_a_helper(|_, _| false));
        check_fails(None, &["deadlock"], set_up_with_a_helper(|_, name| name == "answers"));
    }

    #[test]
    fn a_helper_that_fails_is_named() {
        check_fails(Some(1), &["helper \"ordering\" of rank 0: out of order"], || {
            run(config(1, Delivery::AtPost), |fabric: Fabric| async move {
                let region = fabric.alloc(8).unwrap();
                fabric.helper("ordering", |_| async { Err("out of order".into()) }).unwrap();
                wait_for(&fabric, &region, 0).await.unwrap();
            });
        });
    }
}
