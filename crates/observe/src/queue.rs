//! A control queue of an observed fabric.

use crate::{
    counts::WaitKind,
    event::{Event, Kind},
    observed::{Observed, kind_of, only},
    waiting::Waiting,
};
use rdma_fabric::{
    ControlQueue, Deps, Rank, Refused, Result, SessionFabric,
    control_queue::{Command, Completion, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd},
};
use std::fmt;

/// The queue of the fabric below, with commands counted when they are posted and waits as they end.
///
/// When a command of a queue is *executed* only the provider knows: in a trace it stands where it was posted.
pub struct ObservedQueue<F: SessionFabric> {
    queue: F::Queue,
    fabric: Observed<F>,
}

impl<F: SessionFabric> fmt::Debug for ObservedQueue<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, observed", self.queue)
    }
}

impl<F: SessionFabric> SessionFabric for Observed<F> {
    type Queue = ObservedQueue<F>;

    fn queue_limits(&self) -> QueueLimits {
        self.inner.queue_limits()
    }

    fn open_queue(&self, spec: QueueSpec) -> Result<ObservedQueue<F>> {
        Ok(ObservedQueue { queue: self.inner.open_queue(spec)?, fabric: self.clone() })
    }
}

/// What a command is called in counters and traces, and how many bytes it moves.
fn described(posting: &Posting) -> (Kind, u64) {
    let put = if posting.remote_notice { Kind::PutNotify } else { Kind::Put };
    match &posting.command {
        Command::Put { len, blocks, .. } => (put, u64::from(*len) * u64::from(blocks.count)),
        Command::PutInline { bytes, .. } => (put, bytes.as_bytes().len() as u64),
        Command::Get { len, blocks, .. } => (Kind::Get, u64::from(*len) * u64::from(blocks.count)),
        Command::CompareSwap { width, .. } => (Kind::CompareSwap, *width as u64),
        Command::Nop => (Kind::Nop, 0),
        Command::Armw { op, width, .. } => (kind_of(&op.amo()), *width as u64),
    }
}

impl<F: SessionFabric> ObservedQueue<F> {
    /// A command was posted.
    fn posted(&self, posting: &Posting) {
        let (kind, bytes) = described(posting);
        let commands = u64::from(posting.command.commands());
        let peer = posting.command.target().map(|to| to.rank().number());
        let now = self.fabric.inner.now().as_picos();
        let mut record = self.fabric.recorder.lock();
        match kind {
            Kind::Nop => record.counts.nops += commands,
            Kind::Get => {
                let counts = record.counts.with(peer);
                (counts.gets, counts.get_bytes) = (counts.gets + commands, counts.get_bytes + bytes);
            }
            Kind::Put | Kind::PutNotify => {
                let counts = record.counts.with(peer);
                (counts.puts, counts.put_bytes) = (counts.puts + commands, counts.put_bytes + bytes);
            }
            kind => {
                if let Some(count) = record.counts.with(peer).atomics.of_kind(kind) {
                    *count += 1;
                }
            }
        }
        record.happened(Event { bytes, ..Event::new(kind, peer, now) });
    }

    fn full(&self, target: Option<Rank>) {
        self.fabric.recorder.lock().counts.with(target.map(Rank::number)).full += 1;
    }
}

impl<F: SessionFabric> ControlQueue for ObservedQueue<F> {
    type Fabric = Observed<F>;

    fn id(&self) -> QueueId {
        self.queue.id()
    }

    fn spec(&self) -> QueueSpec {
        self.queue.spec()
    }

    fn register(&self, region: &F::Region) -> Result<Stadd> {
        self.queue.register(region)
    }

    fn register_fixed(&self, region: &F::Region, tag: u8) -> Result<Stadd> {
        self.queue.register_fixed(region, tag)
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.queue.set_read_only(at, read_only)
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        self.queue.deregister(at)
    }

    fn try_post(&self, posting: Posting) -> Result<(), Refused<()>> {
        let end = self.queue.try_post(posting);
        match &end {
            Ok(()) => self.posted(&posting),
            Err(Refused::Full(())) => self.full(posting.command.target().map(QueueId::rank)),
            Err(Refused::Failed(..)) => {}
        }
        end
    }

    async fn post(&self, posting: Posting, deps: Deps<'_>) -> Result<()> {
        let peer = posting.command.target().map(|to| to.rank().number());
        let mut waiting = Waiting::begin(&self.fabric, WaitKind::Room, peer);
        waiting.until(self.queue.post(posting, deps)).await?;
        self.posted(&posting);
        Ok(())
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.queue.poll_tcq()
    }

    async fn next_completion(&self, deps: Deps<'_>) -> Result<Completion> {
        let mut waiting = Waiting::begin(&self.fabric, WaitKind::Operation, only(&deps));
        waiting.until(self.queue.next_completion(deps)).await
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        self.queue.poll_mrq()
    }

    async fn next_notice(&self, deps: Deps<'_>) -> Result<MrqNotice> {
        let mut waiting = Waiting::begin(&self.fabric, WaitKind::Notice, only(&deps));
        let notice = waiting.until(self.queue.next_notice(deps)).await?;
        waiting.peer = Some(notice.peer.rank().number());
        Ok(notice)
    }

    fn pointers(&self) -> Pointers {
        self.queue.pointers()
    }

    fn close(self) -> Result<u64> {
        self.queue.close()
    }
}
