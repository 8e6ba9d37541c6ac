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
pub(super) enum Parting {
    /// The connection to the coordinator ended.
    Ended,
    /// The coordinator was silent for the lease, or did not read.
    Silent,
    /// The coordinator considers this rank lost, for this reason.
    Dismissed(String),
    /// The coordinator sent a malformed message, or this session ends.
    Over,
}

/// Starts the two threads; returns the listening one.
pub(super) fn start(
    speaker: Speaker,
    inbox: Inbox,
    standby: Option<Standby>,
    on_event: OnEvent,
) -> Result<JoinHandle<()>, Error> {
    let refused = |cause| Error::System { call: "thread", cause };
    let (events, heard) = channel();
    let calling = speaker.clone();
    Builder::new().name("session events".into()).spawn(move || call(&calling, &heard, on_event)).map_err(refused)?;
    let builder = Builder::new().name("session".into()).stack_size(256 << 10);
    builder.spawn(move || serve(&speaker, inbox, standby, &events)).map_err(refused)
}

/// Calls the program for each event, until no further event can follow or the session is dropped.
fn call(speaker: &Speaker, heard: &Receiver<Event>, mut on_event: OnEvent) {
    for event in heard {
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
        let parting = listen(speaker, &mut inbox, events);
        if let Parting::Dismissed(text) = parting {
            break Event::Dismissed { text };
        }
        let Some(standby) = standby.as_mut().filter(|standby| standby.seeks_after(line, &parting)) else {
            break Event::CoordinatorLost;
        };
        match standby.find(line, &parting) {
            Ok(next) => inbox = next,
            Err(Unfound::Dismissed(text)) => break Event::Dismissed { text },
            Err(Unfound::Smaller(text)) => break Event::CutOff { text },
        }
    };
    if line.note_gone() {
        let _ = events.send(last);
    }
}

/// Receives messages and sends heartbeats, until either side ends the connection or the coordinator
/// is silent for the lease.
fn listen(speaker: &Speaker, inbox: &mut Inbox, events: &Sender<Event>) -> Parting {
    let line = speaker.line();
    let Some(stream) = line.stream() else { return Parting::Over };
    let mut buffer = vec![0; 64 << 10];
    let (mut heard, mut beaten, mut closing) = (Instant::now(), Instant::now(), None);
    let mut late = false;
    // The bytes received together with the welcome may contain complete messages already.
    if let Err(parting) = hear(speaker, inbox, events) {
        return parting;
    }
    loop {
        match (&*stream).read(&mut buffer) {
            Ok(0) if line.is_stuck() => return Parting::Silent,
            Ok(0) => return Parting::Ended,
            Ok(count) => {
                (heard, late) = (Instant::now(), false);
                inbox.push(&buffer[..count]);
                if let Err(parting) = hear(speaker, inbox, events) {
                    return parting;
                }
            }
            Err(cause) if would_wait(&cause) => {
                // If this process did not run for a while, bytes that arrived in the meantime are
                // read first.
                if late {
                    return Parting::Silent;
                }
                late = heard.elapsed() >= line.lease;
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::ConnectionReset => return Parting::Ended,
            Err(_) => return Parting::Silent,
        }
        if line.is_closed() {
            if closing.get_or_insert_with(Instant::now).elapsed() >= LINGER {
                return Parting::Over;
            }
        } else if beaten.elapsed() + tick(line.lease) >= line.lease / 4 {
            beaten = Instant::now();
            // If that fails, a later read finds that the connection has ended.
            let _ = line.say(&Up::Beat);
        }
    }
}

/// Handles all complete messages.
fn hear(speaker: &Speaker, inbox: &mut Inbox, events: &Sender<Event>) -> Result<(), Parting> {
    loop {
        let Ok(message) = inbox.message() else { return Err(Parting::Over) };
        let Some(message) = message else { return Ok(()) };
        let ranks = speaker.line().ranks;
        let Some(down) = Down::read(&message).filter(|down| down.fits(ranks)) else { return Err(Parting::Over) };
        if !speaker.line().note(&down, &message) {
            // A newly elected coordinator repeats messages that the last one may have sent.
            continue;
        }
        let event = match down {
            Down::Drain { epoch, lost } => Event::Drain { epoch, lost },
            Down::Reopen { epoch } => Event::Reopen { epoch },
            Down::Resume { epoch, cards, lost } => Event::Resume { epoch, cards, lost },
            Down::Left { rank } => Event::Left { rank },
            Down::Lost { rank, text } => Event::Lost { rank, text },
            Down::Aborted { rank, code, text } => Event::Aborted { rank, code, text },
            Down::AllEnded => Event::AllEnded,
            Down::Confirm { wave } => Event::Confirm { wave },
            Down::Deadlock { waiting } => Event::Deadlock { waiting },
            Down::Beat | Down::Gathered { .. } | Down::Incomplete { .. } => continue,
            Down::Dismissed { text } => return Err(Parting::Dismissed(text)),
            Down::Noted { .. } | Down::Refused(_) | Down::Welcome { .. } => return Err(Parting::Over),
            Down::Elected | Down::NotElected { .. } => return Err(Parting::Over),
        };
        // The other thread has ended if the program panicked; its answers are missing then.
        let _ = events.send(event);
    }
}
