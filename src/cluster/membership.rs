//! Membership events of a rank, passed on to its memory and to pending waits.

use bootstrap::{Event, Speaker};
use rdma_fabric::{FabricError, Rank};
use std::{
    process,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};
use tofu2_sim::{Stuck, shm::part::Part};

/// How long a rank may continue after its job was ended.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// The receiver of events.
#[derive(Debug)]
pub(crate) enum Recipient {
    /// All ranks are on this node.
    SingleNode(Part),
    /// There are other nodes.
    #[cfg(feature = "ofi")]
    Cluster(Arc<fabric_ofi::cluster::Member>),
}

/// The state of a rank that waits for others and has no operations in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitStatus {
    /// Changes whenever the rank has made progress, or an event has arrived.
    pub(crate) stamp: u64,
    /// Number of its unsuccessful polls.
    pub(crate) looks: u64,
}

impl State {
    /// Prints, once, the wait of the rank at the time when all ranks waited.
    fn print_deadlock(&mut self, waiting: usize) {
        if let Some(awaited) = self.awaited.take() {
            crate::report::emit(format_args!("error: deadlock: {waiting} ranks wait for each other: {awaited}"));
        }
    }

    /// Handles an event of a rank that has no memory yet, and therefore no operations in flight. It
    /// answers immediately, because others wait for the answer, and keeps the events that concern
    /// its memory.
    fn receive_early(&mut self, speaker: &Speaker, event: Event) {
        let mut gone = |rank: u32| _ = self.gone_early.get_or_insert(Rank::new(rank));
        // If the answer can't be sent, the coordinator is lost, which is the next event.
        match &event {
            Event::Drain { epoch, lost } => {
                lost.iter().copied().for_each(gone);
                _ = speaker.drained(*epoch);
                return;
            }
            Event::Reopen { epoch } => {
                _ = speaker.reopened(*epoch, Vec::new());
                return;
            }
            Event::Aborted { code, text, .. } => return end_alone(format_args!("the job was aborted: {text}"), *code),
            Event::Left { rank } | Event::Lost { rank, .. } => gone(*rank),
            _ if end_without(&event) => return,
            _ => {}
        }
        self.early.push((speaker.clone(), event));
    }

    fn wait_status(&self) -> Option<WaitStatus> {
        let recipient = self.recipient.as_ref()?;
        let waiting = recipient.part().waiting()?;
        let moved = match recipient {
            Recipient::SingleNode(_) => 0,
            #[cfg(feature = "ofi")]
            Recipient::Cluster(member) => member.at_rest()?,
        };
        // Each of these numbers only grows.
        let stamp = waiting.wait.rotate_left(40) ^ self.heard.rotate_left(20) ^ moved;
        Some(WaitStatus { stamp, looks: waiting.looks })
    }
}

impl Recipient {
    fn part(&self) -> &Part {
        match self {
            Recipient::SingleNode(part) => part,
            #[cfg(feature = "ofi")]
            Recipient::Cluster(member) => member.part(),
        }
    }
}

/// Receives events, and keeps them until the rank has its memory.
#[derive(Debug, Default)]
pub(crate) struct Membership(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    recipient: Option<Recipient>,
    /// Number of events that may end a wait.
    heard: u64,
    /// The wait of the rank at the last query: another rank of the node may end its waits before it
    /// is notified that all wait.
    awaited: Option<Stuck>,
    early: Vec<(Speaker, Event)>,
    /// A rank that was lost, or left, before this one had its memory.
    gone_early: Option<Rank>,
}

impl Membership {
    /// Passes on an event.
    pub(crate) fn receive(&self, speaker: &Speaker, event: Event) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::Confirm { wave } = event {
            let wait_status = state.wait_status();
            state.awaited =
                state.recipient.as_ref().filter(|_| wait_status.is_some()).map(|recipient| recipient.part().awaited());
            // If the answer can't be sent, the coordinator is lost, which is the next event.
            let _ = speaker.still_waiting(wave, wait_status.map(|wait_status| wait_status.stamp));
            return;
        }
        if let Event::Deadlock { waiting } = event {
            state.print_deadlock(waiting);
        }
        state.heard += 1;
        match &state.recipient {
            Some(recipient) => pass_on(recipient, speaker, event),
            None => state.receive_early(speaker, event),
        }
    }

    /// Returns an error if a rank is known to have ended before this one had its memory: the job
    /// then does not start.
    pub(crate) fn can_begin(&self) -> Result<(), FabricError> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.gone_early.map_or(Ok(()), |rank| Err(FabricError::PeerLost { rank }))
    }

    /// Prints the wait of the rank if it was ended because all ranks waited. Another rank of the
    /// node may have ended it before the event arrived.
    pub(crate) fn print_deadlock(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = state.recipient.as_ref().and_then(|recipient| recipient.part().deadlock()) {
            state.print_deadlock(waiting);
        }
    }

    /// Sets the receiver of events, which also receives the earlier ones.
    pub(crate) fn set_recipient(&self, recipient: Recipient) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (speaker, event) in std::mem::take(&mut state.early) {
            pass_on(&recipient, &speaker, event);
        }
        state.recipient = Some(recipient);
    }

    /// Returns the state of the rank, if it waits for others and has no operations in flight.
    pub(crate) fn wait_status(&self) -> Option<WaitStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).wait_status()
    }

    /// Removes the receiver of events: the rank has ended.
    pub(crate) fn leave(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).recipient = None;
    }
}

fn pass_on(recipient: &Recipient, speaker: &Speaker, event: Event) {
    // If an answer can't be sent, the coordinator is lost, which is the next event.
    match event {
        Event::Drain { epoch, lost: _lost } => match recipient {
            Recipient::SingleNode(_) => _ = speaker.drained(epoch),
            #[cfg(feature = "ofi")]
            Recipient::Cluster(member) => member.drain(epoch, &ranks(&_lost)),
        },
        Event::Reopen { epoch } => match recipient {
            Recipient::SingleNode(_) => _ = speaker.reopened(epoch, Vec::new()),
            #[cfg(feature = "ofi")]
            Recipient::Cluster(member) => match member.reopen() {
                Ok(contact) => _ = speaker.reopened(epoch, contact),
                Err(error) => _ = speaker.lost(&error.to_string()),
            },
        },
        Event::Resume { mut contacts, lost, .. } => {
            // The contact data of a rank that had no memory at the time.
            contacts.iter_mut().for_each(|contact| _ = contact.take_if(|contact| contact.is_empty()));
            let lost: Vec<u32> = lost.into_iter().map(|(rank, _)| rank).collect();
            resume(recipient, &contacts, &ranks(&lost));
        }
        Event::Left { rank } => match recipient {
            Recipient::SingleNode(part) => part.left(Rank::new(rank)),
            #[cfg(feature = "ofi")]
            Recipient::Cluster(member) => member.left(Rank::new(rank)),
        },
        Event::Lost { rank, .. } => match recipient {
            Recipient::SingleNode(part) => part.lost(&[Rank::new(rank)], false),
            #[cfg(feature = "ofi")]
            Recipient::Cluster(member) => member.lost(Rank::new(rank)),
        },
        Event::Deadlock { waiting } => deadlock(recipient, waiting),
        Event::Aborted { rank, code, text } => end(recipient, rank, &text, code),
        // The node is not notified: its other ranks receive events themselves, and may be
        // unaffected.
        other => _ = end_without(&other),
    }
}

/// Ends this process if the event means that it no longer belongs to a job. Returns whether it
/// does.
fn end_without(event: &Event) -> bool {
    match event {
        Event::CoordinatorLost => end_alone(format_args!("the job's coordinator is gone"), 1),
        Event::CutOff { text } => {
            end_alone(format_args!("this rank is cut off from the job's coordinator: {text}"), 1);
        }
        Event::Dismissed { text } => end_alone(format_args!("the others hold this rank for lost: {text}"), 1),
        _ => return false,
    }
    true
}

fn resume(recipient: &Recipient, contacts: &[Option<Vec<u8>>], lost: &[Rank]) {
    match recipient {
        Recipient::SingleNode(part) => {
            let _ = contacts;
            part.lost(lost, true);
        }
        #[cfg(feature = "ofi")]
        Recipient::Cluster(member) => {
            if let Err(error) = member.connect(contacts) {
                crate::report::emit(format_args!("error: {error}"));
            }
            member.resume(lost);
        }
    }
}

/// Ends the waits of the rank's node.
fn deadlock(recipient: &Recipient, waiting: usize) {
    match recipient {
        Recipient::SingleNode(part) => part.deadlocked(waiting),
        #[cfg(feature = "ofi")]
        Recipient::Cluster(member) => member.deadlocked(waiting),
    }
}

/// Ends all waits of the rank; a rank that continues nevertheless is terminated shortly afterwards.
fn end(recipient: &Recipient, rank: Option<u32>, text: &str, code: i32) {
    let me = recipient.part().fabric().rank();
    let rank = rank.map_or(me, Rank::new);
    match recipient {
        Recipient::SingleNode(part) => part.aborted(rank, text, code),
        #[cfg(feature = "ofi")]
        Recipient::Cluster(member) => member.aborted(rank, text, code),
    }
    exit_soon(code);
}

/// Prints why this rank can't continue, and ends its process shortly afterwards.
fn end_alone(why: std::fmt::Arguments<'_>, code: i32) {
    crate::report::emit(format_args!("error: {why}"));
    exit_soon(code);
}

/// Ends this process after a moment, unless it ends by itself before; immediately if no thread can
/// be started to wait. An invalid exit code is replaced by 1.
fn exit_soon(code: i32) {
    let code = if (1..=255).contains(&code) { code } else { 1 };
    let late = move || {
        thread::sleep(LAST_MOMENT);
        process::exit(code);
    };
    if thread::Builder::new().name("the end".to_owned()).stack_size(128 << 10).spawn(late).is_err() {
        process::exit(code);
    }
}

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank::new).collect()
}

/// The reports of a rank to the coordinator.
#[cfg(feature = "ofi")]
#[derive(Debug)]
pub(crate) struct Voice(pub(crate) Speaker);

#[cfg(feature = "ofi")]
impl fabric_ofi::cluster::Council for Voice {
    fn drained(&self, epoch: u64) {
        let _ = self.0.drained(epoch);
    }

    fn aborted(&self, text: &str, code: i32) {
        let _ = self.0.abort(code, text);
    }
}

/// Returns events that a session and the rank share.
pub(crate) fn new() -> Arc<Membership> {
    Arc::default()
}
