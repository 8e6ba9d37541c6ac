//! The loss of a member fails the calls of all its scopes.
//!
//! In a tree, most members wait for a member that is itself waiting. If a member dies, its neighbours
//! receive an error from their own messages; without this module, the other members would wait forever
//! for neighbours that have returned an error.

use crate::{Result, Scope};
use core::{future::Future, pin::pin};
use fmpl::Communicator;
use rdma_fabric::{
    Deps, Fabric, LocalWord, Rank, Region,
    join::{Either, now, race},
};
use std::sync::Arc;

/// A word that stays 0 forever, on which all grids of a process wait.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    word: LocalWord<u64>,
    _region: Arc<Region>,
}

impl Silence {
    pub(crate) fn new(fabric: &Fabric) -> Result<Self> {
        let region = fabric.alloc(8)?;
        Ok(Silence { word: region.word(fabric, 0)?, _region: Arc::new(region) })
    }
}

/// The ranks whose loss fails the calls of a process, by scope.
#[derive(Debug)]
pub(crate) struct Losses {
    fabric: Fabric,
    /// The other ranks of the caller's row, of its column, and of the grid.
    others: [Box<[Rank]>; 3],
    silence: Silence,
}

impl Losses {
    pub(crate) fn new(
        communicator: &Communicator,
        (row, column): (usize, usize),
        columns: usize,
        silence: Silence,
    ) -> Result<Self> {
        let fabric = communicator.fabric().clone();
        let mut others = [Vec::new(), Vec::new(), Vec::new()];
        for member in (0..communicator.len()).filter(|member| *member != communicator.me()) {
            let rank = communicator.rank(member)?;
            let belongs = [member / columns == row, member % columns == column, true];
            others.iter_mut().zip(belongs).filter(|(_, belongs)| *belongs).for_each(|(others, _)| others.push(rank));
        }
        Ok(Losses { fabric, others: others.map(Vec::into_boxed_slice), silence })
    }

    /// Awaits a call of all members of a scope; fails if a member is lost.
    pub(crate) async fn or_lost<T>(&self, scope: Scope, call: impl Future<Output = Result<T>>) -> Result<T> {
        let [row, column, all] = &self.others;
        let others = match scope {
            Scope::Row => row,
            Scope::Column => column,
            Scope::All => all,
        };
        if others.is_empty() {
            return call.await;
        }
        let lost = self.fabric.wait_until(&self.silence.word, Deps::Ranks(others), |word| word != 0);
        let (mut call, mut lost) = (pin!(call), pin!(lost));
        match race(call.as_mut(), lost.as_mut()).await {
            // The peer may have given up because it detected a loss, which is then the error to
            // report.
            Either::First(Err(error)) => match now(lost) {
                Some(Err(lost)) => Err(lost.into()),
                _ => Err(error),
            },
            Either::First(done) => done,
            Either::Second(Err(lost)) => Err(lost.into()),
            // Unreachable in practice: the word is never written.
            Either::Second(Ok(_)) => call.await,
        }
    }
}
