//! The threads of a session.

use super::{
    Event, Speaker,
    line::{tick, would_wait},
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

/// What the program is called with.
pub(super) type OnEvent = Box<dyn FnMut(&Speaker, Event) + Send>;

/// For how long a session that is dropped waits for the coordinator to have heard it.
const LINGER: Duration = Duration::from_secs(1);

/// Starts the two threads; returns the one that listens.
pub(super) fn start(speaker: Speaker, inbox: Inbox, on_event: OnEvent) -> Result<JoinHandle<()>, Error> {
    let refused = |cause| Error::System { call: "thread", cause };
    let (events, heard) = channel();
    let calling = speaker.clone();
    Builder::new().name("session events".into()).spawn(move || call(&calling, &heard, on_event)).map_err(refused)?;
    let builder = Builder::new().name("session".into()).stack_size(256 << 10);
    builder.spawn(move || listen(&speaker, inbox, &events)).map_err(refused)
}

/// Calls the program for each event, until nothing more can come or the session is dropped.
fn call(speaker: &Speaker, heard: &Receiver<Event>, mut on_event: OnEvent) {
    for event in heard {
        if speaker.line().is_closed() {
            return;
        }
        on_event(speaker, event);
    }
}

/// Hears the coordinator and beats, until either side ends the connection or the coordinator is
/// silent for the lease.
fn listen(speaker: &Speaker, mut inbox: Inbox, events: &Sender<Event>) {
    let line = speaker.line();
    let mut buffer = vec![0; 64 << 10];
    let (mut heard, mut beaten, mut closing) = (Instant::now(), Instant::now(), None);
    // What came with the welcome may be whole messages already.
    let mut good = hear(speaker, &mut inbox, events);
    while good {
        match (&line.stream).read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                heard = Instant::now();
                inbox.push(&buffer[..count]);
                good = hear(speaker, &mut inbox, events);
            }
            Err(cause) if would_wait(&cause) => good = heard.elapsed() < line.lease + tick(line.lease),
            Err(_) => break,
        }
        if line.is_closed() {
            good &= closing.get_or_insert_with(Instant::now).elapsed() < LINGER;
        } else if beaten.elapsed() + tick(line.lease) >= line.lease / 4 {
            beaten = Instant::now();
            good &= line.say(&Up::Beat).is_ok();
        }
    }
    if line.note_gone() {
        let _ = events.send(Event::CoordinatorLost);
    }
}

/// Handles all whole messages; tells whether all were good.
fn hear(speaker: &Speaker, inbox: &mut Inbox, events: &Sender<Event>) -> bool {
    loop {
        let Ok(message) = inbox.message() else { return false };
        let Some(message) = message else { return true };
        let Some(down) = Down::read(&message) else { return false };
        speaker.line().note(&down);
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
            Down::Noted { .. } | Down::Refused(_) | Down::Welcome { .. } => return false,
        };
        // The other thread has ended if the program panicked; answers that it owes are missed.
        let _ = events.send(event);
    }
}
