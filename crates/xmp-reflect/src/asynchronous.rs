//! The table of asynchronous communications: those in progress, by the ids that the program
//! assigned.
//!
//! An id is a number of the program's choice. Several communications may share one; waiting for an
//! id waits for all of them, and unused ids are ignored (XcalableMP 1.4, `wait_async`).

use crate::{
    NodeSet, Result,
    array::{Kept, Slot},
    reflect::Schedule,
};
use core::{fmt, future::Future, ops::Range, pin::Pin};
use rdma_fabric::join;
use std::sync::Arc;

/// A communication other than a reflect, to be waited for under an id: a persistent collective that
/// was started, or a copy.
pub trait Pending: Send {
    /// Waits for its end. May be dropped and called again.
    fn wait(&mut self) -> Pin<Box<dyn Future<Output = Result<()>> + Send + '_>>;
    /// Returns whether it has ended.
    fn test(&mut self) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + '_>>;
}

impl Pending for prdma_offload::Request {
    fn wait(&mut self) -> Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> {
        Box::pin(async { Ok(prdma_offload::Request::wait(self).await?) })
    }

    fn test(&mut self) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + '_>> {
        Box::pin(async { Ok(prdma_offload::Request::test(self).await?) })
    }
}

impl Pending for Schedule {
    fn wait(&mut self) -> Pin<Box<dyn Future<Output = Result<()>> + Send + '_>> {
        Box::pin(Schedule::wait(self))
    }

    fn test(&mut self) -> Pin<Box<dyn Future<Output = Result<bool>> + Send + '_>> {
        Box::pin(Schedule::test(self))
    }
}

#[derive(Default)]
pub(crate) struct Table(Vec<Entry>);

struct Entry {
    id: u64,
    work: Work,
}

enum Work {
    /// A reflect, with the place among its array's schedules to which it returns.
    Reflect(Option<Box<Schedule>>, Arc<Kept>, usize),
    Other(Box<dyn Pending>),
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|entry| entry.id)).finish()
    }
}

impl Table {
    pub(crate) fn enter(&mut self, id: u64, schedule: Box<Schedule>, kept: Arc<Kept>, at: usize) {
        self.0.push(Entry { id, work: Work::Reflect(Some(schedule), kept, at) });
    }
}

impl Entry {
    async fn wait(&mut self) -> Result<()> {
        match &mut self.work {
            Work::Reflect(schedule, ..) => match schedule {
                Some(schedule) => schedule.wait().await,
                None => Ok(()),
            },
            Work::Other(other) => other.wait().await,
        }
    }

    async fn test(&mut self) -> Result<bool> {
        match &mut self.work {
            Work::Reflect(schedule, ..) => match schedule {
                Some(schedule) => schedule.test().await,
                None => Ok(true),
            },
            Work::Other(other) => other.test().await,
        }
    }
}

impl Drop for Entry {
    /// Returns a schedule to its array, in any state.
    fn drop(&mut self) {
        if let Work::Reflect(schedule, kept, at) = &mut self.work
            && let Some(schedule) = schedule.take()
        {
            kept.all()[*at].1 = Slot::Here(schedule);
        }
    }
}

impl NodeSet {
    /// Waits for all communications that have one of these ids (`wait_async`). Unused ids are
    /// ignored. May be dropped and called again.
    ///
    /// # Errors
    /// The first error, in the order in which communications were started; all of them have ended or
    /// failed.
    pub async fn wait_async(&mut self, ids: &[u64]) -> Result<()> {
        let waits = self.table.0.iter_mut().filter(|entry| ids.contains(&entry.id)).map(Entry::wait);
        let all: Result<()> = join::join_all(waits).await.into_iter().collect();
        self.table.0.retain(|entry| !ids.contains(&entry.id));
        all
    }

    /// Waits at some nodes for all communications that have one of these ids (`wait_async(ids) on
    /// p(...)`): at those whose coordinates, counted from 0, are in these ranges, one for each
    /// dimension of the set. Another node returns immediately, and its communications keep their
    /// ids; where its CPU moves the cells, it does so in its next call that waits. Global.
    ///
    /// ```
    /// # use rdma_fabric::{Fabric, Group, ProgramResult};
    /// # use xmp_reflect::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template};
    /// # async fn program(fabric: Fabric) -> ProgramResult<()> {
    /// # let group = Group::world(&fabric).await?;
    /// # let nodes = Nodes::new(&[group.len(), 1], Order::LastFastest)?;
    /// # let template = Template::new(&[0..40, 0..4], &[Format::Block, Format::Block], &nodes)?;
    /// # let mapping = template.align(&[0..40, 0..4], &[Align::with(0), Align::with(1)])?.shadow(&[Shadow::of(1); 2])?;
    /// # let mut set = NodeSet::new(group, nodes)?;
    /// # let array: Array<i64> = set.array(&mapping)?;
    /// set.reflect_async(&array, &Reflect::whole(), 1).await?;
    /// set.wait_async_on(&[1], &[0..2, 0..1]).await?; // nodes 0 and 1 wait
    /// assert!(array.view().is_ok() || set.me() >= 2);
    /// set.wait_async(&[1]).await?; // the others do
    /// # set.barrier().await?;
    /// # Ok(())
    /// # }
    /// # checks::documented::run(4, &program);
    /// ```
    ///
    /// # Errors
    /// As [`NodeSet::wait_async`]; [`crate::MappingError::NodeRanges`], at all nodes.
    pub async fn wait_async_on(&mut self, ids: &[u64], on: &[Range<usize>]) -> Result<()> {
        if self.nodes().is_within(self.me(), on)? { self.wait_async(ids).await } else { Ok(()) }
    }

    /// Returns whether all communications of this id are complete; `true` if none has it
    /// (`xmp_test_async`). Each of them makes progress.
    ///
    /// # Errors
    /// The first error, in the order in which communications were started. Those that failed no
    /// longer have the id; the others keep it until all of them are complete.
    pub async fn test_async(&mut self, id: u64) -> Result<bool> {
        let mut complete = true;
        let mut first = Ok(());
        let mut failed = Vec::new();
        for (at, entry) in self.table.0.iter_mut().enumerate().filter(|(_, entry)| entry.id == id) {
            match entry.test().await {
                Ok(ended) => complete &= ended,
                Err(error) => {
                    failed.push(at);
                    first = first.and(Err(error));
                }
            }
        }
        if complete || !failed.is_empty() {
            let mut places = 0..;
            self.table.0.retain(|entry| {
                let has_failed = places.next().is_some_and(|at| failed.contains(&at));
                !(has_failed || complete && entry.id == id)
            });
        }
        first.map(|()| complete)
    }

    /// Adds a communication to the table, under an id: it is waited for together with reflects.
    pub fn pend(&mut self, id: u64, communication: impl Pending + 'static) {
        self.table.0.push(Entry { id, work: Work::Other(Box::new(communication)) });
    }
}
