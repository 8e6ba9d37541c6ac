//! The threads of a session.

use super::{
    Event, Speaker,
    line::{tick, would_wait},
    standby::{Standby, Unfound},
};
use crate::{
    Error,
    wire::{Down, Inbox, Up},
};
use std::{
    io::Read,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{Builder, JoinHandle},
    time::{Duration, Instant},
};

/// The callback of the program.
pub(super) type OnEvent = Box<dyn FnMut(&Speaker, Event) + Send>;

/// The time that a dropped session waits for the other side to end the connection.
const LINGER: Duration = Duration::from_secs(1);

/// The reason why no further message arrives from a coordinator.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// The connection to the coordinator ended.
    Ended,
    /// The coordinator was silent for the lease, or did not read.
    Silent,
    /// The coordinator considers this rank lost, for this reason.
    Dismissed(String),
    /// The coordinator sent a malformed message, or this session ends.
    Closed,
}

/// Starts the two threads; returns the listening one.
pub(super) fn start(
    speaker: Speaker,
    inbox: Inbox,
    standby: Option<Standby>,
    on_event: OnEvent,
) -> Result<JoinHandle<()>, Error> {
    let refused = |cause| Error::System { call: "thread", cause };
    let (events, received) = channel();
    let calling = speaker.clone();
    Builder::new().name("session events".into()).spawn(move || call(&calling, &received, on_event)).map_err(refused)?;
    let builder = Builder::new().name("session".into()).stack_size(256 << 10);
    builder.spawn(move || serve(&speaker, inbox, standby, &events)).map_err(refused)
}

/// Calls the program for each event, until no further event can follow or the session is dropped.
fn call(speaker: &Speaker, received: &Receiver<Event>, mut on_event: OnEvent) {
    for event in received {
        if speaker.line().is_closed() {
            return;
        }
        on_event(speaker, event);
    }
}

/// Listens to one coordinator after the other, until there is none left.
fn serve(speaker: &Speaker, mut inbox: Inbox, mut standby: Option<Standby>, events: &Sender<Event>) {
    let line = speaker.line();
    let last = loop {
        let departure = listen(speaker, &mut inbox, events);
        if let Departure::Dismissed(text) = departure {
            break Event::Dismissed { text };
        }
        let Some(standby) = standby.as_mut().filter(|standby| standby.searches_after(line, &departure)) else {
            break Event::CoordinatorLost;
        };
        match standby.find(line, &departure) {
            Ok(next) => inbox = next,
            Err(Unfound::Dismissed(text)) => break Event::Dismissed { text },
            Err(Unfound::Smaller(text)) => break Event::CutOff { text },
        }
    };
    if line.record_departure() {
        let _ = events.send(last);
    }
}

/// Receives messages and sends heartbeats, until either side ends the connection or the coordinator
/// is silent for the lease.
fn listen(speaker: &Speaker, inbox: &mut Inbox, events: &Sender<Event>) -> Departure {
    let line = speaker.line();
    let Some(stream) = line.stream() else { return Departure::Closed };
    let mut buffer = vec![0; 64 << 10];
    let (mut received, mut beaten, mut closing) = (Instant::now(), Instant::now(), None);
    let mut late = false;
    // The bytes received together with the welcome may contain complete messages already.
    if let Err(departure) = receive(speaker, inbox, events) {
        return departure;
    }
    loop {
        match (&*stream).read(&mut buffer) {
            Ok(0) if line.is_stuck() => return Departure::Silent,
            Ok(0) => return Departure::Ended,
            Ok(count) => {
                (received, late) = (Instant::now(), false);
                inbox.push(&buffer[..count]);
                if let Err(departure) = receive(speaker, inbox, events) {
                    return departure;
                }
            }
            Err(cause) if would_wait(&cause) => {
                // If this process did not run for a while, bytes that arrived in the meantime are
                // read first.
                if late {
                    return Departure::Silent;
                }
                late = received.elapsed() >= line.lease;
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::ConnectionReset => return Departure::Ended,
            Err(_) => return Departure::Silent,
        }
        if line.is_closed() {
            if closing.get_or_insert_with(Instant::now).elapsed() >= LINGER {
                return Departure::Closed;
            }
        } else if beaten.elapsed() + tick(line.lease) >= line.lease / 4 {
            beaten = Instant::now();
            // If that fails, a later read finds that the connection has ended.
            let _ = line.send(&Up::Beat);
        }
    }
}

/// Handles all complete messages.
fn receive(speaker: &Speaker, inbox: &mut Inbox, events: &Sender<Event>) -> Result<(), Departure> {
    loop {
        let Ok(message) = inbox.message() else { return Err(Departure::Closed) };
        let Some(message) = message else { return Ok(()) };
        let ranks = speaker.line().ranks;
        let Some(down) = Down::read(&message).filter(|down| down.fits(ranks)) else { return Err(Departure::Closed) };
        if !speaker.line().note(&down, &message) {
            // A newly elected coordinator repeats messages that the last one may have sent.
            continue;
        }
        let event = match down {
            Down::Drain { epoch, lost } => Event::Drain { epoch, lost },
            Down::Reopen { epoch } => Event::Reopen { epoch },
            Down::Resume { epoch, contacts, lost } => Event::Resume { epoch, contacts, lost },
            Down::Left { rank } => Event::Left { rank },
            Down::Lost { rank, text } => Event::Lost { rank, text },
            Down::Aborted { rank, code, text } => Event::Aborted { rank, code, text },
            Down::AllEnded => Event::AllEnded,
            Down::Confirm { wave } => Event::Confirm { wave },
            Down::Deadlock { waiting } => Event::Deadlock { waiting },
            Down::Beat | Down::Gathered { .. } | Down::Incomplete { .. } => continue,
            Down::Dismissed { text } => return Err(Departure::Dismissed(text)),
            Down::Noted { .. } | Down::Refused(_) | Down::Welcome { .. } => return Err(Departure::Closed),
            Down::Elected | Down::NotElected { .. } => return Err(Departure::Closed),
        };
        // The other thread has ended if the program panicked; its answers are missing then.
        let _ = events.send(event);
    }
}
