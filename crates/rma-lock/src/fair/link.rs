//! What a node's next word says about its neighbours.

use super::{Class, Core};
use crate::{
    LockError,
    error::Stopped,
    in_place::Posting,
    queue::{NodeId, NodeWord},
};
use rdma_fabric::Amo;

/// Set in a link if the successor is a writer.
const WRITES: u64 = 1 << 32;
/// The node's reader is inside, and nobody has linked itself behind it. Names no node.
const INSIDE: u64 = 1 << 33;

/// F7.
pub(super) const SAY_INSIDE: Amo<u64> = Amo::CompareSwap { expected: 0, new: INSIDE };

/// The next node in the queue, and its class.
pub(super) type Next = (NodeId, Class);

/// What a node's owner has written into it before leaving the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Inside,
}

impl Said {
    #[inline(always)]
    fn bits(self) -> u64 {
        match self {
            Said::Nothing => 0,
            Said::Inside => INSIDE,
        }
    }
}

/// How a node left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Out {
    /// As the last: the queue is empty, and the node is as if it had never been in it, except for
    /// what was [said](Said).
    Last,
    /// With a successor on its way, which will find itself the queue's first.
    Passed,
    Before(NodeId, Class),
}

impl Core {
    fn decode_link(&self, link: u64) -> Result<Option<Next>, Stopped> {
        let class = if link & WRITES == 0 { Class::Reader } else { Class::Writer };
        Ok(self.decode("next", link & !WRITES)?.map(|node| (node, class)))
    }

    /// F2: links behind `before`. Returns true if a reader may enter, or a writer is first.
    pub(super) async fn link(&self, node: NodeId, class: Class, before: NodeId) -> Result<bool, Stopped> {
        let me = node.bits() | if class == Class::Writer { WRITES } else { 0 };
        match self.fabric.swap(&self.node(before, NodeWord::Next)?, me).await? {
            0 => Ok(false),
            NodeId::PASSED => Ok(true),
            INSIDE => Ok(class == Class::Reader),
            other => Err(Stopped::Broken(LockError::corrupt("next", other))),
        }
    }

    /// Returns whether `node`'s reader is inside, as far as can be seen, and nobody has linked
    /// itself behind it.
    pub(super) async fn is_inside(&self, node: NodeId) -> Result<bool, Stopped> {
        Ok(self.fabric.get_word(&self.node(node, NodeWord::Next)?).await? == INSIDE)
    }

    /// F7, already posted if `said` is given: says that this rank's reader is inside. Returns the
    /// acquisition that linked itself before that.
    pub(super) async fn say_inside(&self, node: NodeId, said: Option<Posting>) -> Result<Option<Next>, Stopped> {
        let link = match said {
            Some(posting) => posting.result().await?,
            None => {
                let next = self.own(node.slot(), NodeWord::Next)?.as_remote();
                self.fabric.atomic(&next, SAY_INSIDE).await?
            }
        };
        self.decode_link(link)
    }

    /// G1: `node`, this rank's or one that was given up, leaves the queue.
    pub(super) async fn leave_queue(&self, node: NodeId, said: Said) -> Result<Out, Stopped> {
        let link = self.next_of(node).await?;
        if link != said.bits() {
            return self.out_before(link);
        }
        let tail = self.fabric.compare_swap(&self.tail, node.bits(), 0).await?;
        self.leave_queue_from(node, said, tail).await
    }

    /// G1, continued from what its compare-and-swap found in the tail.
    pub(super) async fn leave_queue_from(&self, node: NodeId, said: Said, tail: u64) -> Result<Out, Stopped> {
        if tail == node.bits() {
            return Ok(Out::Last);
        }
        let said = said.bits();
        let link = self.fabric.compare_swap(&self.node(node, NodeWord::Next)?, said, NodeId::PASSED).await?;
        if link == said { Ok(Out::Passed) } else { self.out_before(link) }
    }

    fn out_before(&self, link: u64) -> Result<Out, Stopped> {
        match self.decode_link(link)? {
            Some((node, class)) => Ok(Out::Before(node, class)),
            None => Err(Stopped::Broken(LockError::corrupt("next", link))),
        }
    }

    /// Returns whether nobody has linked itself behind this rank's node, which says `said`.
    #[inline(always)]
    pub(super) fn is_last(&self, node: NodeId, said: Said) -> bool {
        let next = self.own(node.slot(), NodeWord::Next);
        next.is_ok_and(|next| matches!(self.fabric.load(next), Ok(link) if link == said.bits()))
    }

    /// Takes back what this rank's node said, after it left the queue as the last without being
    /// woken.
    #[inline(always)]
    pub(super) fn unsay(&self, node: NodeId, said: Said) -> Result<(), Stopped> {
        if said == Said::Inside {
            self.fabric.store(self.own(node.slot(), NodeWord::Next)?, 0)?;
        }
        Ok(())
    }
}
