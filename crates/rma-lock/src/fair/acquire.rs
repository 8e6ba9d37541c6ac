//! Getting in: F1–F7.

use super::{
    Class, Core, READER, WRITER,
    guard::Held,
    link::{Out, Said},
    short_path::{FairEntry, NotInside},
};
use crate::{
    Result,
    detach::Cancelled,
    error::Stopped,
    in_place::Posting,
    queue::{NodeId, Own},
};
use rdma_fabric::{Amo, Time};

impl Core {
    /// Returns a node whose F1, `first`, was posted; posts it now if need be. Until F1 is posted
    /// nothing depends on this future, and once it is, the future completes.
    pub(super) async fn started(
        &self,
        entry: NotInside,
        class: Class,
        deadline: Time,
        first: impl Fn(NodeId) -> Amo<u64>,
    ) -> Result<(NodeId, FairEntry)> {
        if let Some(started) = entry {
            return Ok(*started);
        }
        let queued = self.queue_up(deadline, |node| class.arrives(node), &self.tail, first).await;
        queued.map(|(node, posting)| (node, FairEntry::Tail(posting)))
    }

    /// F1–F7 from `entry` on.
    pub(super) async fn acquire(
        &self,
        node: NodeId,
        class: Class,
        entry: FairEntry,
        deadline: Time,
        cancelled: &Cancelled,
    ) -> Result<Held, Stopped> {
        let own = self.adopt(node);
        let entry = match entry {
            FairEntry::Tail(posting) => {
                if let Some(before) = self.decode("tail", posting.result().await?)?
                    && !self.link(node, class, before).await?
                {
                    self.wait(&own, class, deadline, cancelled).await?;
                    return self.now_inside(own, class, None, true, cancelled).await;
                }
                FairEntry::First
            }
            entry => entry,
        };
        let (inside, said) = match class {
            Class::Reader => (true, self.count_me(entry).await?),
            Class::Writer => (self.no_reader(entry).await? || self.registered_among_none(node).await?, None),
        };
        if !inside {
            self.wait(&own, class, deadline, cancelled).await?;
        }
        self.now_inside(own, class, said, !inside, cancelled).await
    }

    /// F1–F7 of a try, from `entry` on. It waits for nobody: it continues only if the queue is
    /// empty or a reader inside is ahead of it.
    pub(super) async fn try_acquire(
        &self,
        node: NodeId,
        class: Class,
        entry: FairEntry,
        cancelled: &Cancelled,
    ) -> Result<Option<Held>, Stopped> {
        let own = self.adopt(node);
        let mut waits = false;
        let entry = match entry {
            FairEntry::Tail(posting) => {
                if let Some(before) = self.decode("tail", posting.result().await?)? {
                    let behind_reader = class == Class::Reader
                        && self.is_inside(before).await?
                        && self.fabric.compare_swap(&self.tail, before.bits(), node.bits()).await? == before.bits();
                    if !behind_reader {
                        self.publish(class.gives_up(node))?;
                        own.give_back_fresh();
                        return Ok(None);
                    }
                    // Another turn of that node may have come to the same place, and be waiting.
                    waits = !self.link(node, class, before).await?;
                }
                FairEntry::First
            }
            entry => entry,
        };
        let mut said = None;
        if waits {
            let now = self.fabric.now();
            match self.wait(&own, class, now, cancelled).await {
                Ok(()) => {}
                Err(Stopped::GaveUp(_)) => return Ok(None),
                Err(broken) => return Err(broken),
            }
        } else if class == Class::Reader {
            said = self.count_me(entry).await?;
        } else if !self.no_reader(entry).await? {
            self.withdraw(own).await?;
            return Ok(None);
        }
        self.now_inside(own, class, said, waits, cancelled).await.map(Some)
    }

    /// F3 from `entry` on. Returns F7, if that was posted.
    async fn count_me(&self, entry: FairEntry) -> Result<Option<Posting>, Stopped> {
        match entry {
            FairEntry::Inside(posting) => return Ok(Some(posting)),
            FairEntry::Counted => {}
            FairEntry::Count(posting) => drop(posting.result().await?),
            _ => self.count_reader().await?,
        }
        Ok(None)
    }

    /// F3, G2.
    async fn count_reader(&self) -> Result<(), Stopped> {
        self.fabric.fetch_add(&self.state, READER).await?;
        Ok(())
    }

    /// F4 from `entry` on, for the queue's first: readers still inside came before it, and no more
    /// can enter.
    async fn no_reader(&self, entry: FairEntry) -> Result<bool, Stopped> {
        let state = match entry {
            FairEntry::Looked(state) => state,
            FairEntry::Look(look) => look.await?[0],
            _ => self.fabric.get_word(&self.state).await?,
        };
        Ok(state == 0)
    }

    /// F5: `node` is first and waits for the readers. Returns true if none are left; otherwise the
    /// last of them sees which writer waits.
    pub(super) async fn registered_among_none(&self, node: NodeId) -> Result<bool, Stopped> {
        let writer = node.bits() << WRITER;
        if self.fabric.fetch_add(&self.state, writer).await? != 0 {
            return Ok(false);
        }
        self.fabric.fetch_add(&self.state, writer.wrapping_neg()).await?;
        Ok(true)
    }

    /// F6. A node that is given up stays in the queue; its waker will make it ready again.
    async fn wait(&self, own: &Own<'_>, class: Class, deadline: Time, cancelled: &Cancelled) -> Result<(), Stopped> {
        let woken = self.wait_to_be_woken(own, deadline, cancelled).await;
        if let Err(Stopped::GaveUp(_)) = woken {
            self.publish(class.gives_up(own.id))?;
        }
        woken
    }

    /// F7, from `said` on if it was posted.
    async fn now_inside(
        &self,
        own: Own<'_>,
        class: Class,
        said: Option<Posting>,
        woken: bool,
        cancelled: &Cancelled,
    ) -> Result<Held, Stopped> {
        if class == Class::Reader
            && let Some((reader, Class::Reader)) = self.say_inside(own.id, said).await?
        {
            self.count_reader().await?; // for it
            self.wake_or_act_for(reader, Class::Reader).await?;
        }
        self.publish(class.enters(own.id))?;
        let held = Held { node: own.keep(), class, woken };
        if cancelled.is_set() {
            self.release(held, None).await?;
            return Err(Stopped::GaveUp(Cancelled::REASON));
        }
        Ok(held)
    }

    /// Leaves the queue as its first, with readers inside, instead of waiting for them.
    async fn withdraw(&self, own: Own<'_>) -> Result<(), Stopped> {
        let node = own.id;
        let out = self.leave_queue(node, Said::Nothing).await?;
        if out != Out::Last {
            self.retire(node).await?;
        }
        match out {
            Out::Last | Out::Passed => {}
            Out::Before(reader, Class::Reader) => {
                self.count_reader().await?; // for it
                self.wake_or_act_for(reader, Class::Reader).await?;
            }
            Out::Before(writer, Class::Writer) => {
                if self.registered_among_none(writer).await? {
                    self.wake_or_act_for(writer, Class::Writer).await?;
                }
            }
        }
        self.publish(Class::Writer.gives_up(node))?;
        if out == Out::Last {
            own.give_back_fresh();
        }
        Ok(())
    }
}
