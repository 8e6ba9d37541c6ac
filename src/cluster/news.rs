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
pub(crate) enum Seat {
    /// All ranks are on this node.
    Alone(Part),
    /// There are other nodes.
    #[cfg(feature = "ofi")]
    Among(Arc<fabric_ofi::cluster::Member>),
}

/// The state of a rank that waits for others and has no operations in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    /// Changes whenever the rank has made progress, or an event has arrived.
    pub(crate) stamp: u64,
    /// Number of its unsuccessful polls.
    pub(crate) looks: u64,
}

impl State {
    /// Prints, once, the wait of the rank at the time when all ranks waited.
    fn say_deadlock(&mut self, waiting: usize) {
        if let Some(awaited) = self.awaited.take() {
            crate::report::say(format_args!("error: deadlock: {waiting} ranks wait for each other: {awaited}"));
        }
    }

    /// Handles an event of a rank that has no memory yet, and therefore no operations in flight. It
    /// answers immediately, because others wait for the answer, and keeps the events that concern
    /// its memory.
    fn hear_early(&mut self, speaker: &Speaker, event: Event) {
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

    fn standing(&self) -> Option<Standing> {
        let seat = self.seat.as_ref()?;
        let waiting = seat.part().waiting()?;
        let moved = match seat {
            Seat::Alone(_) => 0,
            #[cfg(feature = "ofi")]
            Seat::Among(member) => member.at_rest()?,
        };
        // Each of these numbers only grows.
        let stamp = waiting.wait.rotate_left(40) ^ self.heard.rotate_left(20) ^ moved;
        Some(Standing { stamp, looks: waiting.looks })
    }
}

impl Seat {
    fn part(&self) -> &Part {
        match self {
            Seat::Alone(part) => part,
            #[cfg(feature = "ofi")]
            Seat::Among(member) => member.part(),
        }
    }
}

/// Receives events, and keeps them until the rank has its memory.
#[derive(Debug, Default)]
pub(crate) struct News(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    seat: Option<Seat>,
    /// Number of events that may end a wait.
    heard: u64,
    /// The wait of the rank at the last query: another rank of the node may end its waits before it
    /// is notified that all wait.
    awaited: Option<Stuck>,
    early: Vec<(Speaker, Event)>,
    /// A rank that was lost, or left, before this one had its memory.
    gone_early: Option<Rank>,
}

impl News {
    /// Passes on an event.
    pub(crate) fn hear(&self, speaker: &Speaker, event: Event) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::Confirm { wave } = event {
            let standing = state.standing();
            state.awaited = state.seat.as_ref().filter(|_| standing.is_some()).map(|seat| seat.part().awaited());
            // If the answer can't be sent, the coordinator is lost, which is the next event.
            let _ = speaker.still(wave, standing.map(|standing| standing.stamp));
            return;
        }
        if let Event::Deadlock { waiting } = event {
            state.say_deadlock(waiting);
        }
        state.heard += 1;
        match &state.seat {
            Some(seat) => pass_on(seat, speaker, event),
            None => state.hear_early(speaker, event),
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
    pub(crate) fn say_deadlock(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = state.seat.as_ref().and_then(|seat| seat.part().deadlock()) {
            state.say_deadlock(waiting);
        }
    }

    /// Sets the receiver of events, which also receives the earlier ones.
    pub(crate) fn take_seat(&self, seat: Seat) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (speaker, event) in std::mem::take(&mut state.early) {
            pass_on(&seat, &speaker, event);
        }
        state.seat = Some(seat);
    }

    /// Returns the state of the rank, if it waits for others and has no operations in flight.
    pub(crate) fn standing(&self) -> Option<Standing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).standing()
    }

    /// Removes the receiver of events: the rank has ended.
    pub(crate) fn leave(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seat = None;
    }
}

fn pass_on(seat: &Seat, speaker: &Speaker, event: Event) {
    // If an answer can't be sent, the coordinator is lost, which is the next event.
    match event {
        Event::Drain { epoch, lost: _lost } => match seat {
            Seat::Alone(_) => _ = speaker.drained(epoch),
            #[cfg(feature = "ofi")]
            Seat::Among(member) => member.drain(epoch, &ranks(&_lost)),
        },
        Event::Reopen { epoch } => match seat {
            Seat::Alone(_) => _ = speaker.reopened(epoch, Vec::new()),
            #[cfg(feature = "ofi")]
            Seat::Among(member) => match member.reopen() {
                Ok(contact) => _ = speaker.reopened(epoch, contact),
                Err(error) => _ = speaker.lost(&error.to_string()),
            },
        },
        Event::Resume { mut cards, lost, .. } => {
            // The contact data of a rank that had no memory at the time.
            cards.iter_mut().for_each(|card| _ = card.take_if(|card| card.is_empty()));
            let lost: Vec<u32> = lost.into_iter().map(|(rank, _)| rank).collect();
            resume(seat, &cards, &ranks(&lost));
        }
        Event::Left { rank } => match seat {
            Seat::Alone(part) => part.left(Rank::new(rank)),
            #[cfg(feature = "ofi")]
            Seat::Among(member) => member.left(Rank::new(rank)),
        },
        Event::Lost { rank, .. } => match seat {
            Seat::Alone(part) => part.lost(&[Rank::new(rank)], false),
            #[cfg(feature = "ofi")]
            Seat::Among(member) => member.lost(Rank::new(rank)),
        },
        Event::Deadlock { waiting } => deadlock(seat, waiting),
        Event::Aborted { rank, code, text } => end(seat, rank, &text, code),
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

fn resume(seat: &Seat, cards: &[Option<Vec<u8>>], lost: &[Rank]) {
    match seat {
        Seat::Alone(part) => {
            let _ = cards;
            part.lost(lost, true);
        }
        #[cfg(feature = "ofi")]
        Seat::Among(member) => {
            if let Err(error) = member.meet(cards) {
                crate::report::say(format_args!("error: {error}"));
            }
            member.resume(lost);
        }
    }
}

/// Ends the waits of the rank's node.
fn deadlock(seat: &Seat, waiting: usize) {
    match seat {
        Seat::Alone(part) => part.deadlocked(waiting),
        #[cfg(feature = "ofi")]
        Seat::Among(member) => member.deadlocked(waiting),
    }
}

/// Ends all waits of the rank; a rank that continues nevertheless is terminated shortly afterwards.
fn end(seat: &Seat, rank: Option<u32>, text: &str, code: i32) {
    let me = seat.part().fabric().rank();
    let rank = rank.map_or(me, Rank::new);
    match seat {
        Seat::Alone(part) => part.aborted(rank, text, code),
        #[cfg(feature = "ofi")]
        Seat::Among(member) => member.aborted(rank, text, code),
    }
    exit_soon(code);
}

/// Prints why this rank can't continue, and ends its process shortly afterwards.
fn end_alone(why: std::fmt::Arguments<'_>, code: i32) {
    crate::report::say(format_args!("error: {why}"));
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
pub(crate) fn new() -> Arc<News> {
    Arc::default()
}
