//! The steps of a node that leaves the queue.

use super::{At, FairTable, Steps};
use crate::{LockError, Result, lock::fair::Class, steps::End};

impl FairTable {
    /// G1: a successor is linked behind the node.
    pub(super) fn out_before(&self, s: &mut Steps, link: u64) -> Result<()> {
        s.next = self.decode_link(link)?;
        if s.next.is_none() {
            return Err(LockError::corrupt("next", link));
        }
        self.gone(s);
        Ok(())
    }

    /// The node is out of the queue, and other ranks have known it.
    pub(super) fn gone(&self, s: &mut Steps) {
        s.done = s.node.map(|(node, _)| node);
        self.out(s);
    }

    /// The node is out of the queue: selects the step that its owner still has to execute for its
    /// successor.
    pub(super) fn out(&self, s: &mut Steps) {
        let own = s.node.map(|(node, _)| node) == s.me;
        let withdrawn = own && !s.leaves;
        let class = s.node.map(|(_, class)| class);
        s.at = match (class, s.next) {
            // A try to write was never inside, because the readers ahead of it are.
            (_, Some((_, Class::Writer))) if withdrawn => {
                s.node = s.next;
                At::F5
            }
            (_, None) if withdrawn => return self.retire(s),
            // A reader that gave up leaves its count to the reader behind it.
            (Some(Class::Reader), Some((_, Class::Reader))) if !own => At::G5,
            (Some(Class::Reader), _) => At::G3,
            (_, Some((_, Class::Reader))) => At::G2,
            (_, Some(_)) => At::G5,
            (_, None) => return self.retire(s),
        };
    }

    /// Continues after the successor was woken: retires the node that has left. If `next` was given
    /// up, acts on its behalf: it leaves.
    pub(super) fn retire(&self, s: &mut Steps) {
        if s.done.is_some() {
            s.at = At::Retire;
        } else if s.absent {
            (s.absent, s.node, s.next, s.at) = (false, s.next, None, At::G1Load);
        } else {
            (s.node, s.next, s.at) = (None, None, At::End(s.ends));
            if s.ends == End::Inside {
                self.inside(s);
            }
        }
    }
}
