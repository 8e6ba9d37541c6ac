//! The barrier in software, as far as it goes without waiting for long.

use super::edge::Way;
use crate::{
    Communicator, FmplError, Result,
    area::{Kind, Lane, Record},
    point::HEADERS,
};
use rdma_fabric::{provider::Boxed, soon::Call};

/// How often a member looks for a flag before it prepares for a longer wait.
const LOOKS: u32 = 300;

/// The neighbours in the tree of member 0, by their places among the peers met; known once a barrier
/// has gone that way.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    pub(crate) parent: Option<usize>,
    pub(crate) children: Box<[usize]>,
}

/// How far a member has come in a barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The number of children that have come.
    pub(crate) came: usize,
    /// Whether this member has told its parent that it has come.
    pub(crate) told: bool,
    /// Whether its parent has let it go.
    pub(crate) free: bool,
    /// The number of children that it has let go, from the last one on.
    pub(crate) let_go: usize,
}

/// A call of [`Communicator::barrier`].
pub(crate) struct Barrier<'a> {
    comm: &'a Communicator,
    progress: Progress,
}

impl<'a> Barrier<'a> {
    pub(crate) fn new(comm: &'a Communicator) -> Self {
        Barrier { comm, progress: Progress::default() }
    }
}

impl<'a> Call<'a> for Barrier<'a> {
    type Out = ();
    type Error = FmplError;

    /// How far it has come it notes for `later`.
    #[inline]
    fn now(&mut self) -> Option<()> {
        let comm = self.comm;
        let mut state = comm.enter().ok()?;
        let state = &mut *state;
        let near = state.collectives.near()?;
        let at = comm.layout.collective_lane(Way::Up as usize);
        let (up, down) = (at, comm.layout.collective_lane(Way::Down as usize));
        for child in &near.children[..] {
            let peer = &mut state.peers[*child];
            let n = peer.lanes[up].received;
            if n.is_multiple_of(HEADERS) {
                return None;
            }
            let lane = Lane::new(&comm.fabric, &peer.ends, up);
            (0..LOOKS).find_map(|_| lane.arrived_now(n))?;
            peer.lanes[up].received += 1;
            self.progress.came += 1;
        }
        if let Some(parent) = near.parent {
            let peer = &mut state.peers[parent];
            let (sent, n) = (peer.lanes[up].sent, peer.lanes[down].received);
            if n.is_multiple_of(HEADERS) {
                return None;
            }
            let word = Record::first_word(Kind::Arrived, 0, sent);
            if !Lane::new(&comm.fabric, &peer.ends, up).put_flag_now(sent, word) {
                return None;
            }
            peer.lanes[up].sent += 1;
            self.progress.told = true;
            let lane = Lane::new(&comm.fabric, &peer.ends, down);
            (0..LOOKS).find_map(|_| lane.arrived_now(n))?;
            peer.lanes[down].received += 1;
            self.progress.free = true;
        }
        for child in near.children.iter().rev() {
            let peer = &mut state.peers[*child];
            let sent = peer.lanes[down].sent;
            let word = Record::first_word(Kind::Arrived, 0, sent);
            if !Lane::new(&comm.fabric, &peer.ends, down).put_flag_now(sent, word) {
                return None;
            }
            peer.lanes[down].sent += 1;
            self.progress.let_go += 1;
        }
        Some(())
    }

    fn later(self) -> Boxed<'a, Result<()>> {
        Box::pin(self.comm.meet_all(self.progress))
    }
}
