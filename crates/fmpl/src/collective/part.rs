//! This member's part in a collective: how it begins, and how it ends if not well.

use super::{Tree, edge::Edge};
use crate::{
    Communicator, FmplError, Result,
    area::{Ends, Lane},
};
use rdma_fabric::{Fabric, FabricError, LocalSpan, Region};

/// What a member knows of its collectives.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    under_way: bool,
    /// Why no more can be completed.
    left: Option<FmplError>,
    /// The memory of reductions.
    work: Option<(Region, LocalSpan<u8>)>,
}

/// A member's part in one collective. If it is dropped before it has ended, the member has left.
pub(crate) struct Part<'a> {
    comm: &'a Communicator,
    pub(crate) parent: Option<Edge<'a>>,
    /// In the order of the tree.
    pub(crate) children: Vec<Edge<'a>>,
    over: bool,
}

impl Communicator {
    /// Begins a collective in the tree of `root`.
    pub(crate) async fn begin(&self, root: usize) -> Result<Part<'_>> {
        self.rank(root)?;
        let left = self.with(|state| {
            let collectives = &mut state.collectives;
            let is_free = !core::mem::replace(&mut collectives.under_way, true);
            if is_free { Ok(collectives.left.clone()) } else { Err(FmplError::CollectiveInUse) }
        })??;
        let mut part = Part { comm: self, parent: None, children: Vec::new(), over: false };
        let met = part.meet(Tree::new(self.me(), self.len(), root)).await;
        match left.map_or(met, Err) {
            Ok(()) => Ok(part),
            Err(error) => part.end(Err(error)).await.map(|()| unreachable!("it has ended with an error")),
        }
    }
}

impl Part<'_> {
    /// Meets all neighbours that can be met, who must be told if one can't.
    async fn meet(&mut self, tree: Tree) -> Result<()> {
        let mut outcome = Ok(());
        if let Some(parent) = tree.parent {
            match Edge::new(self.comm, parent).await {
                Ok(edge) => self.parent = Some(edge),
                Err(error) => outcome = Err(error),
            }
        }
        for child in tree.children {
            match Edge::new(self.comm, child).await {
                Ok(edge) => self.children.push(edge),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    /// Ends it. After an error other than different lengths this member takes part in no other
    /// collective; it tells its neighbours so, as they do theirs, until all know who wait for each
    /// other. A loss they all see by themselves.
    pub(crate) async fn end(mut self, outcome: Result<()>) -> Result<()> {
        if let Err(error) = &outcome
            && !matches!(error, FmplError::CountMismatch { .. })
        {
            self.comm.with(|state| state.collectives.left.get_or_insert_with(|| error.clone()).clone())?;
            if !matches!(error, FmplError::Fabric(FabricError::PeerLost { .. })) {
                let member = if let FmplError::MemberLeft { member } = error { *member } else { self.comm.me() };
                tell(&self.comm.fabric, &self.neighbours(), member).await;
            }
        }
        self.over = true;
        self.comm.with(|state| state.collectives.under_way = false)?;
        outcome
    }

    fn neighbours(&self) -> Vec<Ends> {
        self.parent.iter().chain(&self.children).map(|edge| edge.ends.clone()).collect()
    }

    /// Returns three work buffers of `bytes` bytes, which are kept for later reductions.
    pub(crate) fn work(&self, bytes: usize) -> Result<[LocalSpan<u8>; 3]> {
        let each = bytes.max(1).next_multiple_of(64);
        let whole = self.comm.with(|state| match &state.collectives.work {
            Some((_, whole)) if whole.len() >= 3 * each => Ok(whole.clone()),
            _ => {
                let region = self.comm.fabric.alloc(3 * each)?;
                let whole = region.span(&self.comm.fabric, 0, 3 * each)?;
                state.collectives.work = Some((region, whole.clone()));
                Ok::<_, FmplError>(whole)
            }
        })??;
        let one = |n: usize| whole.slice(n * each..n * each + bytes);
        Ok([one(0)?, one(1)?, one(2)?])
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let member = self.comm.me();
        let _ = self.comm.with(|state| {
            state.collectives.under_way = false;
            state.collectives.left.get_or_insert(FmplError::MemberLeft { member });
        });
        let (fabric, neighbours) = (self.comm.fabric.clone(), self.neighbours());
        self.comm.fabric.detach(async move { tell(&fabric, &neighbours, member).await });
    }
}

/// Tells neighbours, once all that was put there before is visible, that this member has left
/// because `member` did. Nobody is left to be told of errors.
async fn tell(fabric: &Fabric, neighbours: &[Ends], member: usize) {
    for ends in neighbours {
        let lane = Lane::new(fabric, ends, 0);
        if fabric.flush(lane.peer()).await.is_ok() {
            let _ = lane.put_left(member).await;
        }
    }
}
