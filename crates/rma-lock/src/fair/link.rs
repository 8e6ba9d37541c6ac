//! What a node's next word says of its neighbours.

use super::{Class, Core};
use crate::{
    LockError,
    error::Trouble,
    queue::{NodeId, Part},
};
use rdma_fabric::Fabric;

/// Set in a link if the successor is a writer.
const WRITES: u64 = 1 << 32;
/// The node's reader is inside, and nobody has linked itself. Names no node.
const INSIDE: u64 = 1 << 33;

/// Who comes next.
pub(super) type Next = (NodeId, Class);

/// What a node's owner has said of it before it leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    Inside,
}

impl Said {
    fn bits(self) -> u64 {
        match self {
            Said::Nothing => 0,
            Said::Inside => INSIDE,
        }
    }
}

/// How a node came out of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Out {
    /// As the last: the queue is empty, and the node as if it had not been in it, except for what was [said](Said).
    Last,
    /// With a successor on its way, which will find itself the queue's first.
    Passed,
    Before(NodeId, Class),
}

impl<F: Fabric> Core<F> {
    fn decode_link(&self, link: u64) -> Result<Option<Next>, Trouble> {
        let class = if link & WRITES == 0 { Class::Reader } else { Class::Writer };
        Ok(self.decode("next", link & !WRITES)?.map(|node| (node, class)))
    }

    /// F2: behind `before`. True if a reader may enter, or a writer is first.
    pub(super) async fn link(&self, node: NodeId, class: Class, before: NodeId) -> Result<bool, Trouble> {
        let me = node.bits() | if class == Class::Writer { WRITES } else { 0 };
        match self.fabric.swap(&self.node(before, Part::Next)?, me).await? {
            0 => Ok(false),
            NodeId::PASSED => Ok(true),
            INSIDE => Ok(class == Class::Reader),
            other => Err(Trouble::Broken(LockError::corrupt("next", other))),
        }
    }

    /// Whether `node`'s reader is inside, as far as can be seen, and nobody has linked itself.
    pub(super) async fn is_inside(&self, node: NodeId) -> Result<bool, Trouble> {
        Ok(self.fabric.get_word(&self.node(node, Part::Next)?).await? == INSIDE)
    }

    /// F7: my reader is inside. Yields who came before that was said.
    pub(super) async fn say_inside(&self, node: NodeId) -> Result<Option<Next>, Trouble> {
        let next = self.own(node.slot(), Part::Next)?.as_remote();
        let link = self.fabric.compare_swap(&next, 0, INSIDE).await?;
        self.decode_link(link)
    }

    /// G1: `node`, mine or one that was given up, leaves the queue.
    pub(super) async fn leave_queue(&self, node: NodeId, said: Said) -> Result<Out, Trouble> {
        let said = said.bits();
        let mut link = if node.rank() == self.me {
            self.fabric.load(self.own(node.slot(), Part::Next)?)?
        } else {
            self.fabric.get_word(&self.node(node, Part::Next)?).await?
        };
        if link == said {
            if self.fabric.compare_swap(&self.tail, node.bits(), 0).await? == node.bits() {
                return Ok(Out::Last);
            }
            link = self.fabric.compare_swap(&self.node(node, Part::Next)?, said, NodeId::PASSED).await?;
            if link == said {
                return Ok(Out::Passed);
            }
        }
        match self.decode_link(link)? {
            Some((node, class)) => Ok(Out::Before(node, class)),
            None => Err(Trouble::Broken(LockError::corrupt("next", link))),
        }
    }

    /// My node left the queue as the last, and nobody has woken it: take back what it said.
    pub(super) fn unsay(&self, node: NodeId, said: Said) -> Result<(), Trouble> {
        if said == Said::Inside {
            self.fabric.store(self.own(node.slot(), Part::Next)?, 0)?;
        }
        Ok(())
    }
}
