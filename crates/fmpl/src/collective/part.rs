//! This member's part in a collective: how it begins and how it ends, including after errors.

use super::{
    Hardware, Rounds, Staging, Tree,
    central::Central,
    direct::{DirectNeighbour, DirectNeighbours, Spins},
    edge::Edge,
    notify_all,
};
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Ends},
    cost,
};
use core::future::Future;
use rdma_fabric::{Caps, Fabric, FabricError, LocalSpan, Region};

/// The memory of reductions.
pub(crate) type Work = (Region, LocalSpan<u8>);

/// The state of a member's collectives.
#[derive(Debug, Default)]
pub(crate) struct Collectives {
    under_way: bool,
    /// Why no further collective can complete.
    left: Option<FmplError>,
    work: Option<Work>,
    /// Neighbours whose records can be loaded directly.
    pub(crate) direct: DirectNeighbours,
    /// The claimed hardware, unless a collective uses it. A member that has left keeps only the
    /// memory, to which others may still write.
    hardware: Option<Box<Hardware>>,
}

impl Collectives {
    pub(crate) fn new(hardware: Hardware, caps: &Caps) -> Self {
        Collectives {
            hardware: Some(Box::new(hardware)),
            direct: DirectNeighbours::new(caps),
            ..Collectives::default()
        }
    }

    /// Declares that no member waits for another one.
    pub(crate) fn finish(&mut self) {
        self.hardware.iter_mut().for_each(|hardware| hardware.silence());
    }

    /// Returns the number of bytes of the multicast buffers; 0 also while a collective by hardware
    /// is in progress, which owns them.
    pub(crate) fn staging_bytes(&self) -> usize {
        let staging = self.hardware.as_ref().and_then(|hardware| hardware.staging.as_deref());
        staging.map_or(0, Staging::bytes)
    }

    /// Returns three work buffers of `bytes` bytes, if there are any as large.
    pub(crate) fn work(&self, bytes: usize) -> Option<[LocalSpan<u8>; 3]> {
        let (_, whole) = self.work.as_ref()?;
        thirds(whole, bytes).ok()
    }

    /// Takes out the memory of reductions, unless a reduction is in progress, or other members may
    /// still write to it for a reduction that this member has left.
    pub(crate) fn take_work(&mut self) -> Option<Work> {
        if self.under_way || self.left.is_some() { None } else { self.work.take() }
    }

    /// Stores memory for reductions, unless there already is some.
    pub(crate) fn give_work(&mut self, work: Option<Work>) {
        if self.work.is_none() {
            self.work = work;
        }
    }

    /// Returns whether there is memory for reductions that can be taken out now or later.
    pub(crate) fn has_work(&self) -> bool {
        self.work.is_some() && self.left.is_none()
    }

    /// Returns the neighbours in the tree of a root, if a collective may begin and they are known.
    #[inline(always)]
    pub(crate) fn neighbours(&mut self, root: usize) -> Option<(&DirectNeighbour, Spins<'_>)> {
        if self.under_way || self.left.is_some() { None } else { self.direct.of(root) }
    }

    /// Returns the counter, if a collective may begin.
    #[inline(always)]
    pub(crate) fn central(&mut self) -> Option<&mut Central> {
        if self.under_way || self.left.is_some() { None } else { self.hardware.as_mut()?.central.as_deref_mut() }
    }

    fn enter(&mut self) -> Result<()> {
        let is_free = !core::mem::replace(&mut self.under_way, true);
        if is_free { Ok(()) } else { Err(FmplError::CollectiveInUse) }
    }
}

/// A member's part in one collective. If it is dropped before it has ended, the member has left.
pub(crate) struct Part<'a> {
    pub(crate) comm: &'a Communicator,
    pub(crate) parent: Option<Edge<'a>>,
    /// In the order of the tree.
    pub(crate) children: Vec<Edge<'a>>,
    /// Other members that wait for this one to release them.
    pub(crate) released: Vec<Edge<'a>>,
    /// The hardware, while this collective uses it.
    pub(crate) hardware: Option<Box<Hardware>>,
    over: bool,
}

impl Communicator {
    /// Begins a collective in the tree of `root`.
    pub(crate) async fn begin(&self, root: usize) -> Result<Part<'_>> {
        self.rank(root)?;
        let left = self.with(|state| state.collectives.enter().map(|()| state.collectives.left.clone()))??;
        let mut part = Part::new(self, None);
        let met = part.meet(root).await;
        match left.map_or(met, Err) {
            Ok(()) => {
                self.fabric.charge(cost::INIT).await;
                Ok(part)
            }
            Err(error) => part.end(Err(error)).await.map(|()| unreachable!("it has ended with an error")),
        }
    }

    /// Begins a collective that hardware executes.
    pub(crate) fn begin_by_hardware(&self, root: usize) -> Result<Part<'_>> {
        self.rank(root)?;
        let hardware = self.with(|state| {
            let collectives = &mut state.collectives;
            match &collectives.left {
                // All members that wait in the hardware are notified.
                Some(error) => Err(error.clone()),
                None => collectives.enter().map(|()| collectives.hardware.take()),
            }
        })??;
        Ok(Part::new(self, hardware))
    }
}

impl<'a> Part<'a> {
    fn new(comm: &'a Communicator, hardware: Option<Box<Hardware>>) -> Self {
        Part { comm, parent: None, children: Vec::new(), released: Vec::new(), hardware, over: false }
    }
}

impl Part<'_> {
    /// Returns the barrier hardware, which every collective that needs it has.
    pub(crate) fn rounds(&mut self) -> Result<(&mut Rounds, &Communicator)> {
        let rounds = self.hardware.as_mut().and_then(|hardware| hardware.rounds.as_mut());
        Ok((rounds.ok_or(FabricError::Unsupported { feature: &"hardware barriers" })?, self.comm))
    }

    /// Takes the hardware for a collective that uses the tree as well.
    pub(crate) fn take_hardware(&mut self) -> Result<()> {
        self.hardware = self.comm.with(|state| state.collectives.hardware.take())?;
        Ok(())
    }

    /// Contacts all reachable neighbours in the tree of `root`; if this fails for one of them, the
    /// others must be notified.
    pub(crate) async fn meet(&mut self, root: usize) -> Result<()> {
        let tree = Tree::new(self.comm.me(), self.comm.len(), root);
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

    /// Ends the collective. After an error other than different lengths this member takes part in
    /// no other collective. It notifies its neighbours, which notify theirs, until all members that
    /// wait for each other are notified. Each member detects a loss by itself.
    pub(crate) async fn end(mut self, outcome: Result<()>) -> Result<()> {
        if let Err(error) = &outcome
            && !matches!(error, FmplError::CountMismatch { .. })
        {
            self.comm.with(|state| state.collectives.left.get_or_insert_with(|| error.clone()).clone())?;
            let member = if let FmplError::MemberLeft { member } = error { *member } else { self.comm.me() };
            if !matches!(error, FmplError::Fabric(FabricError::PeerLost { .. })) {
                self.take_leave(member).await;
            } else {
                // Each member detects it by itself.
                self.hardware.iter_mut().for_each(|hardware| hardware.silence());
            }
        }
        self.over = true;
        let hardware = self.hardware.take();
        self.comm.with(|state| {
            state.collectives.under_way = false;
            if hardware.is_some() {
                state.collectives.hardware = hardware;
            }
        })?;
        outcome
    }

    /// Ends it as [`Part::end`] does, and stores its neighbours in the tree of `root` on success.
    pub(crate) async fn end_in_tree(self, root: usize, outcome: Result<()>) -> Result<()> {
        if outcome.is_ok() {
            self.keep_near(root)?;
        }
        self.end(outcome).await
    }

    /// Releases the hardware. Once awaited, the future notifies the members that may wait for this
    /// one that this member has left because `member` did.
    fn take_leave(&mut self, member: usize) -> impl Future<Output = ()> + use<> {
        let (used, comm, fabric) = (self.hardware.take(), self.comm, self.comm.fabric.clone());
        let words = comm.with(|state| {
            let hardware = &mut state.collectives.hardware;
            *hardware = used.or(hardware.take());
            hardware.as_mut().map_or_else(Vec::new, |hardware| {
                hardware.rounds = None;
                let staging = hardware.staging.iter().flat_map(|staging| staging.left_words(&fabric));
                let boxes = hardware.boxes.iter().flat_map(|boxes| boxes.left_words(comm));
                let central = hardware.central.iter().flat_map(|central| central.left_words(comm, member));
                staging.chain(boxes).map(|word| (word, member as u64 + 1)).chain(central).collect()
            })
        });
        let (words, neighbours) = (words.unwrap_or_default(), self.neighbours());
        async move {
            notify(&fabric, &neighbours, member).await;
            notify_all(&fabric, &words).await;
        }
    }

    fn neighbours(&self) -> Vec<Ends> {
        self.parent.iter().chain(&self.children).chain(&self.released).map(|edge| edge.ends.clone()).collect()
    }

    /// Returns three work buffers of `bytes` bytes, which are kept for later reductions.
    pub(crate) fn work(&self, bytes: usize) -> Result<[LocalSpan<u8>; 3]> {
        if self.comm.with(|state| state.collectives.work(bytes).is_none())? {
            self.comm.keep_buffers()?;
        }
        self.comm.with(|state| {
            if let Some(work) = state.collectives.work(bytes) {
                return Ok(work);
            }
            let all = each(bytes).saturating_mul(3);
            let region = self.comm.fabric.alloc(all)?;
            let whole = region.span(&self.comm.fabric, 0, all)?;
            let work = thirds(&whole, bytes)?;
            state.collectives.work = Some((region, whole));
            Ok(work)
        })?
    }
}

/// Returns the first bytes of each third of a memory.
fn thirds(whole: &LocalSpan<u8>, bytes: usize) -> Result<[LocalSpan<u8>; 3]> {
    let one = |n: usize| whole.slice(n * each(bytes)..n * each(bytes) + bytes);
    Ok([one(0)?, one(1)?, one(2)?])
}

/// Returns how many bytes a work buffer takes.
fn each(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(64)
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
        let told = self.take_leave(member);
        self.comm.fabric.detach(told);
    }
}

/// Notifies neighbours, once all earlier puts to them are visible, that this member has left
/// because `member` did. Errors are ignored, since no call is left to return them.
async fn notify(fabric: &Fabric, neighbours: &[Ends], member: usize) {
    for ends in neighbours {
        let channel = Channel::new(fabric, ends, 0);
        // The error may be that of an older put.
        let _ = fabric.flush(channel.peer()).await;
        let _ = channel.put_left(member).await;
    }
}
