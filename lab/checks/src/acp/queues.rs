//! Control queues for checkers: queues in normal mode over a fabric that has none, for puts of whole
//! words that leave a notice. They share their rank's address space, as
//! [`Mode::Split`](acp::Mode::Split) requires.
//!
//! A command is detached from its poster, as an RDMA engine executes it: it reads the words, puts
//! them, flushes, and puts the notice, a word for each poster at the target. The target resets this
//! word when it takes the notice; so a poster must not send another notice to a queue before it
//! knows that the last one was taken, for example by a reply.

use rdma_fabric::{
    Blocks, Deps, Fabric, FabricError, LocalWord, Rank, Refused, Region, RegionKey, RemoteAddr, Result, forward,
    provider::{
        Boxed, Ended, HelperTask, Provider, Queues, WaitState,
        control_queue::{
            Command, Completion, MrqKind, MrqNotice, Pointers, Posting, Queue, QueueId, QueueLimits, QueueSide,
            QueueSpec, Stadd,
        },
    },
};
use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

/// The number of the only queue of a rank that receives notices: the first that it opens.
const RECEIVER: u8 = 0;
const UNSUPPORTED: FabricError = FabricError::Unsupported { feature: &"this use of a modelled control queue" };

/// Adds queues to a rank's fabric. `notices` is a symmetric region of [`notice_bytes`] bytes of the
/// fabric, which lives as long as the queues.
pub fn queued(fabric: &Fabric, notices: RegionKey) -> Fabric {
    let shared =
        Arc::new(Shared { notices, opened: AtomicU8::new(0), closed: AtomicU8::new(0), regions: Mutex::default() });
    fabric.layered(Queued { below: fabric.clone(), shared })
}

/// Returns the bytes of the region for notices in a job of `ranks` ranks.
pub fn notice_bytes(ranks: usize) -> usize {
    8 * ranks
}

/// The state that all handles of a rank share.
#[derive(Debug)]
struct Shared {
    notices: RegionKey,
    /// The number of queues that have been opened, and of those that have been closed.
    opened: AtomicU8,
    closed: AtomicU8,
    /// The registered regions, by tag.
    regions: Mutex<BTreeMap<u32, RegionKey>>,
}

impl Shared {
    fn regions(&self) -> MutexGuard<'_, BTreeMap<u32, RegionKey>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the word for the notices of `poster` to `target`.
    fn notice(&self, target: Rank, poster: Rank) -> RemoteAddr {
        RemoteAddr { rank: target, region: self.notices, offset: 8 * u64::from(poster.number()) }
    }
}

#[derive(Debug)]
struct Queued {
    below: Fabric,
    shared: Arc<Shared>,
}

impl Provider for Queued {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, put, get, copy, atomic, nop);
    forward!(poll, test, forget, try_notice, poll_wait, end_wait, now, detach, abort);

    fn queues(&self) -> Option<&dyn Queues> {
        Some(self)
    }

    fn helper(&self, _: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let shared = self.shared.clone();
        let queued = move |below: Fabric| task(below.layered(Queued { below: below.clone(), shared }));
        self.below.provider().helper(&self.below, name, Box::new(queued))
    }
}

impl Queues for Queued {
    fn limits(&self) -> QueueLimits {
        let mut limits = QueueLimits::new(1, 2);
        limits.shared_address_space = true;
        limits.free -= u32::from(self.shared.opened.load(Relaxed) - self.shared.closed.load(Relaxed));
        limits
    }

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>> {
        let id = QueueId::new(self.below.rank(), 0, self.shared.opened.fetch_add(1, Relaxed), 0);
        let me = self.below.rank();
        let word = |poster| Ok((poster, self.below.local_word::<u64>(self.shared.notice(me, poster))?));
        let posters = (0..self.below.ranks() as u32).map(Rank::new).filter(|poster| *poster != me);
        let notices = posters.map(word).collect::<Result<_>>()?;
        let (below, shared) = (self.below.clone(), self.shared.clone());
        Ok(Box::new(Open { below, shared, id, spec, notices, waits: Mutex::default(), taken: Mutex::default() }))
    }
}

/// The waits for a notice of each poster.
type Waits = Vec<Boxed<'static, Result<MrqNotice>>>;

struct Open {
    below: Fabric,
    shared: Arc<Shared>,
    id: QueueId,
    spec: QueueSpec,
    /// The word of each other rank.
    notices: Vec<(Rank, LocalWord<u64>)>,
    waits: Mutex<Waits>,
    /// The notice that ended the last wait, until it is polled. Polling reads no words: a checker
    /// would count each read as a step of the program.
    taken: Mutex<Option<MrqNotice>>,
}

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id)
    }
}

impl Open {
    /// Returns the execution of a put from the memory at `from` to that at `at` of another rank.
    fn execute(&self, (to, at): (Rank, Stadd), from: Stadd, words: usize) -> Result<impl Future<Output = ()> + use<>> {
        let place = |rank, at: Stadd| {
            let region = *self.shared.regions().get(&at.tag()).ok_or(UNSUPPORTED)?;
            Ok::<_, FabricError>(RemoteAddr { rank, region, offset: at.offset() })
        };
        let (own, there) = (place(self.below.rank(), from)?, place(to, at)?);
        let (below, notice) = (self.below.clone(), self.shared.notice(to, self.below.rank()));
        let behind = at + 8 * words as u64;
        let executed = async move {
            let mut bytes = vec![0u64; words];
            below.read(&below.local_span(own, words)?, &mut bytes)?;
            below.put(&below.remote_span::<u64>(there, words)?, bytes).await?;
            below.flush(to).await?;
            below.put_word(&below.remote_word::<u64>(notice)?, behind.to_bits()).await
        };
        // A put to a lost rank has no effect.
        Ok(async move { drop::<Result<()>>(executed.await) })
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> MutexGuard<'_, Option<MrqNotice>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.closed.fetch_add(1, Relaxed);
    }
}

impl Queue for Open {
    fn id(&self) -> QueueId {
        self.id
    }

    fn spec(&self) -> QueueSpec {
        self.spec
    }

    fn pointers(&self) -> Pointers {
        Pointers { read: 0, write: 0, scheduled: 0 }
    }

    fn register(&self, region: &Region, _: Option<u8>) -> Result<Stadd> {
        let tag = region.key().index + 1;
        self.shared.regions().insert(tag, region.key());
        Ok(Stadd::new(tag, 0))
    }

    fn set_read_only(&self, _: Stadd, _: bool) -> Result<()> {
        Err(UNSUPPORTED)
    }

    fn deregister(&self, _: Stadd) -> Result<()> {
        Err(UNSUPPORTED)
    }

    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        for (posted, posting) in postings.iter().enumerate() {
            let executed = match posting.command {
                Command::Put { to, from, at, len, blocks: Blocks::ONE }
                    if to.number() == RECEIVER && posting.remote_notice && len.is_multiple_of(8) =>
                {
                    self.execute((to.rank(), at), from, len as usize / 8)
                }
                _ => Err(UNSUPPORTED),
            };
            match executed {
                Ok(executed) => self.below.detach(executed),
                Err(error) => return (posted, Err(Refused::Failed(error, ()))),
            }
        }
        (postings.len(), Ok(()))
    }

    /// There is always room.
    fn poll_post(&self, _: &mut WaitState, _: &Posting, _: Deps<'_>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Err(UNSUPPORTED))
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        Ok(None)
    }

    /// Returns a notice only if a wait has ended with it.
    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        Ok(self.taken().take())
    }

    fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        side: QueueSide,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let (QueueSide::Notice, Deps::One(rank)) = (side, deps) else { return Poll::Ready(Err(UNSUPPORTED)) };
        let mut waits = self.waits();
        if wait_state.is_empty() {
            wait_state.0[0] = 1;
            *waits = self.notices.iter().map(|(poster, word)| notice(&self.below, *poster, word, rank)).collect();
        }
        let ready = waits.iter_mut().find_map(|wait| match wait.as_mut().poll(cx) {
            Poll::Ready(found) => Some(found),
            Poll::Pending => None,
        });
        let Some(found) = ready else { return Poll::Pending };
        waits.clear();
        *wait_state = WaitState::default();
        Poll::Ready(found.map(|notice| *self.taken() = Some(notice)))
    }

    fn end_wait(&self, _: &mut WaitState, _: Option<QueueSide>, _: Ended) {
        self.waits().clear();
    }

    fn close(self: Box<Self>) -> Result<u64> {
        Ok(0)
    }
}

/// Waits for a notice of `poster`, and takes it.
fn notice(below: &Fabric, poster: Rank, word: &LocalWord<u64>, dep: Rank) -> Boxed<'static, Result<MrqNotice>> {
    let (below, word) = (below.clone(), word.clone());
    Box::pin(async move {
        let bits = below.wait_until(&word, Deps::One(dep), |bits| bits != 0).await?;
        below.store(&word, 0)?;
        Ok(MrqNotice {
            kind: MrqKind::RemotePut,
            peer: QueueId::new(poster, 0, RECEIVER, 0),
            edata: 0,
            value: 0,
            local: Stadd::from_bits(0),
            remote: Stadd::from_bits(bits),
            status: Ok(()),
        })
    })
}
