//! Calls of a scope end when one of its members is lost.
//!
//! In a tree, most members wait for one that waits itself. If a member dies, its neighbours are told by
//! their own messages; the others would wait for neighbours that have given up.

use crate::{Result, Scope};
use core::{future::Future, pin::pin};
use fmpl::Communicator;
use rdma_fabric::{
    Deps, Fabric, LocalWord, Rank, Region,
    join::{Either, now, race},
};
use std::sync::Arc;

/// A word that is 0 for ever, for which all grids of a process wait.
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

/// By what a process learns that a member of its scopes is lost.
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

    /// Awaits a call in which all members of a scope take part, unless one of them is lost.
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
            // Perhaps because the other end was told of a loss, and has given up.
            Either::First(Err(error)) => match now(lost) {
                Some(Err(lost)) => Err(lost.into()),
                _ => Err(error),
            },
            Either::First(done) => done,
            Either::Second(Err(lost)) => Err(lost.into()),
            // Nobody ever writes the word.
            Either::Second(Ok(_)) => call.await,
        }
    }
}
