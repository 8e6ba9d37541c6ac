//! Scripts: posts one after another on two queues, and the observable state after each.

use crate::start::at;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Completion, Inline, MrqNotice, Pointers, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank, Refused, Time};
use tofu2_virt::Job;

/// The first byte of every rank's memory, on all queues of the script.
pub(super) const AT: Stadd = Stadd::fixed(0);
/// The size of that memory in bytes.
pub(super) const BYTES: usize = 3 << 20;
/// The queue under test. The sender's is the other rank's or, in a job of one rank, that rank's
/// second queue.
pub(super) const OWN: QueueId = QueueId::new(Rank::new(0), 0, 0, 0);

pub(super) fn sender(ranks: u32) -> QueueId {
    QueueId::new(Rank::new(ranks - 1), 1, 0, 0)
}

/// A post to one of the queues.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Own(Posting),
    Send(Posting),
}

/// The reports of one queue since the last step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reports {
    pub(super) completions: Vec<Completion>,
    pub(super) notices: Vec<MrqNotice>,
    pub(super) errors: Vec<FabricError>,
}

/// The state that is observed after a step. Each rank observes only its own queue.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// The pointers of the queue under test.
    pub(super) pointers: Pointers,
    pub(super) own: Reports,
    pub(super) sent: Reports,
    /// The reason why the post was refused, if it was: the error, or `None` if the queue was full.
    pub(super) refused: Option<Option<FabricError>>,
    /// Words 0 to 63 of the first rank's memory.
    pub(super) words: Vec<u64>,
}

fn reports(queue: &ControlQueue) -> Reports {
    let mut reports = Reports::default();
    loop {
        match queue.poll_tcq() {
            Ok(Some(completion)) => reports.completions.push(completion),
            Ok(None) => break,
            Err(error) => reports.errors.push(error),
        }
        if reports.errors.len() > 2 {
            return reports;
        }
    }
    while let Ok(Some(notice)) = queue.poll_mrq() {
        reports.notices.push(notice);
    }
    reports
}

/// Takes step k at (k + 1) times 400 us. Its effects are complete when the next step starts.
pub(super) async fn script(
    fabric: Fabric,
    own: QueueSpec,
    sender: QueueSpec,
    steps: Vec<Step>,
) -> ProgramResult<Vec<Seen>> {
    let me = fabric.rank().index();
    let last = fabric.ranks() - 1;
    let region = fabric.alloc_symmetric(BYTES).await?;
    let own =
        if me == 0 { Some(ControlQueue::open(&fabric, QueueSpec { number: Some(0), ..own.on(0) })?) } else { None };
    let sender = if me == last {
        Some(ControlQueue::open(&fabric, QueueSpec { number: Some(0), ..sender.on(1) })?)
    } else {
        None
    };
    for queue in own.iter().chain(&sender) {
        queue.register_fixed(&region, 0)?;
    }
    let mut seen = vec![];
    for (number, step) in steps.into_iter().enumerate() {
        fabric.sleep_until(Time::from_picos(400_000_000 * (number as u64 + 1))).await;
        let posted = match (step, &own, &sender) {
            (Step::Own(posting), Some(queue), _) => queue.try_post(posting),
            (Step::Send(posting), _, Some(queue)) => queue.try_post(posting),
            _ => Ok(()),
        };
        fabric.sleep_until(Time::from_picos(400_000_000 * (number as u64 + 1) + 399_000_000)).await;
        let mut words = vec![0; 64];
        fabric.read(&fabric.local_span::<u64>(at(me, region.key(), 0), 64)?, &mut words)?;
        seen.push(Seen {
            pointers: own.as_ref().map_or(Pointers { read: 0, write: 0, scheduled: 0 }, |queue| queue.pointers()),
            own: own.as_ref().map(reports).unwrap_or_default(),
            sent: sender.as_ref().map(reports).unwrap_or_default(),
            refused: posted.err().map(|refused| match refused {
                Refused::Full(()) => None,
                Refused::Failed(error, ()) => Some(error),
            }),
            words,
        });
    }
    let _ = region.word::<u64>(&fabric, 0)?;
    fabric.sleep(std::time::Duration::from_millis(1)).await;
    Ok(seen)
}

/// Runs a script on `job`. Returns the observations of the rank of the queue under test after each
/// step, together with the sender's.
pub(super) fn run(job: &Job<'_>, own: QueueSpec, steps: &[Step]) -> Vec<Seen> {
    let sender = QueueSpec::new(QueueMode::Normal).checked(own.checked);
    let run = job.run(&async |fabric| script(fabric, own, sender, steps.to_vec()).await).unwrap();
    let mut outs = run.outs;
    let last = outs.pop().unwrap_or_default();
    match outs.into_iter().next() {
        None => last,
        Some(first) => first
            .into_iter()
            .zip(last)
            .map(|(first, last)| Seen { sent: last.sent, refused: first.refused.or(last.refused), ..first })
            .collect(),
    }
}

pub(super) fn session(depth: u32) -> QueueSpec {
    QueueSpec::new(QueueMode::Session).depth(depth).checked(false)
}

pub(super) fn nop(tag: u64) -> Posting {
    Posting::new(Command::Nop).tcq(tag)
}

/// Returns a step that advances the queue under test by a put of no bytes.
pub(super) fn credit(slots: u8) -> Step {
    Step::Send(Posting::new(Command::put(OWN, AT, AT, 0)).sps(slots))
}

/// Returns a put that carries a word inline.
pub(super) fn word(to: QueueId, value: u64, at: Stadd) -> Command {
    Command::PutInline { to, bytes: Inline::word(value), at }
}
