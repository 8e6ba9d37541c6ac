//! The engine of collectives without queues: puts that wait for own words, carried out in the calls of this member.

use super::{Engine, Progress, Transfer, tell_behind};
use crate::Result;
use rdma_fabric::{Deps, Fabric, LocalWord, Rank, RemoteWord, join};

/// A put, and the word that tells of it.
pub(crate) struct Acting<F: Fabric> {
    /// Each is to have the iteration's number.
    pub(crate) needs: Vec<LocalWord<F, u64>>,
    pub(crate) transfer: Option<Transfer<F>>,
    pub(crate) to: Rank,
    pub(crate) word: RemoteWord<F, u64>,
    /// The last iteration in which it was done.
    pub(crate) done: u64,
}

impl<F: Fabric> Acting<F> {
    fn may(&self, fabric: &F, iteration: u64) -> Result<bool> {
        for need in &self.needs {
            if fabric.load(need)? < iteration {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn act(&mut self, fabric: &F, iteration: u64) -> Result<()> {
        if let Some(transfer) = &self.transfer {
            transfer.put(fabric).await?;
        }
        tell_behind(fabric, self.to, &self.word, iteration).await?;
        self.done = iteration;
        Ok(())
    }
}

/// Iterations of a collective.
pub(crate) struct ActingEngine<F: Fabric> {
    pub(crate) fabric: F,
    pub(crate) acts: Vec<Acting<F>>,
    /// What ends an iteration, when all is done.
    pub(crate) finally: Vec<LocalWord<F, u64>>,
    /// All members.
    pub(crate) ranks: Box<[Rank]>,
}

impl<F: Fabric> ActingEngine<F> {
    /// Do what may be done; how many are left.
    async fn act(&mut self, iteration: u64) -> Result<usize> {
        loop {
            let (fabric, mut left, mut may) = (&self.fabric, 0, Vec::new());
            for act in self.acts.iter_mut().filter(|act| act.done < iteration) {
                if act.may(fabric, iteration)? {
                    may.push(act.act(fabric, iteration));
                } else {
                    left += 1;
                }
            }
            if may.is_empty() {
                return Ok(left);
            }
            join::join_all(may).await.into_iter().collect::<Result<()>>()?;
        }
    }
}

impl<F: Fabric> Engine for ActingEngine<F> {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        self.act(iteration).await.map(drop)
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        let (fabric, deps) = (&self.fabric, Deps::Ranks(&self.ranks));
        let late = self.acts.iter_mut().filter(|act| act.done < iteration).map(|act| async move {
            for need in &act.needs {
                fabric.wait_until(need, deps, |number| number >= iteration).await?;
            }
            act.act(fabric, iteration).await
        });
        join::join_all(late).await.into_iter().collect::<Result<()>>()?;
        for word in &self.finally {
            fabric.wait_until(word, deps, |number| number >= iteration).await?;
        }
        Ok(())
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        if self.act(iteration).await? > 0 {
            return Ok(Progress::Pending);
        }
        for word in &self.finally {
            if self.fabric.load(word)? < iteration {
                return Ok(Progress::Pending);
            }
        }
        Ok(Progress::Done)
    }
}
