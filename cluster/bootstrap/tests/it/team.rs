//! Jobs whose ranks are threads.

use bootstrap::{Coordinator, Error, Event, Hello, Plan, Secret, Session, Speaker, Succession};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::mpsc::{Receiver, channel},
    thread::{scope, spawn},
    time::Duration,
};

/// The time after which a hanging test ends.
pub(crate) const LONG: Duration = Duration::from_secs(8);

pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) fn plan(ranks: usize) -> Plan {
    Plan { ranks, join_within: LONG, lease: LONG, segment: b"segment".to_vec(), succession: Succession::Never }
}

pub(crate) fn hello(rank: u32, ranks: usize) -> Hello {
    let (build, provider) = ("build 1".into(), "threads".into());
    Hello { rank, ranks, build, provider, host: format!("host{}", rank / 2), node: format!("node{}", rank / 2) }
}

pub(crate) fn coordinator(plan: Plan) -> (Coordinator, Secret) {
    let secret = Secret::random().unwrap();
    (Coordinator::start(ANYWHERE, secret.clone(), plan).unwrap(), secret)
}

/// A rank: its session and the events that it receives.
pub(crate) struct Rank {
    pub(crate) session: Session,
    pub(crate) events: Receiver<Event>,
}

impl Rank {
    pub(crate) fn next(&self) -> Event {
        self.events.recv_timeout(LONG).expect("an event")
    }
}

/// Answers everything immediately, with a contact that names the epoch and the rank.
pub(crate) fn answer(rank: u32) -> impl FnMut(&Speaker, &Event) + Send + 'static {
    move |speaker, event| match event {
        Event::Drain { epoch, .. } => speaker.drained(*epoch).unwrap(),
        Event::Reopen { epoch } => speaker.reopened(*epoch, contact(*epoch, rank)).unwrap(),
        _ => {}
    }
}

pub(crate) fn contact(epoch: u64, rank: u32) -> Vec<u8> {
    format!("{epoch} {rank}").into_bytes()
}

/// Joins as one rank that answers by `answers`.
pub(crate) fn join(
    address: SocketAddr,
    secret: &Secret,
    hello: Hello,
    mut answers: impl FnMut(&Speaker, &Event) + Send + 'static,
) -> Result<Rank, Error> {
    let (heard, events) = channel();
    let session = Session::join(address, secret, hello, LONG, move |speaker, event| {
        answers(speaker, &event);
        let _ = heard.send(event);
    })?;
    Ok(Rank { session, events })
}

/// Joins as these ranks, at the same time.
pub(crate) fn join_all(address: SocketAddr, secret: &Secret, hellos: Vec<Hello>) -> Vec<Result<Rank, Error>> {
    let joining: Vec<_> = hellos
        .into_iter()
        .map(|hello| {
            let secret = secret.clone();
            spawn(move || join(address, &secret, hello.clone(), answer(hello.rank)))
        })
        .collect();
    joining.into_iter().map(|joining| joining.join().unwrap()).collect()
}

/// Starts a whole job.
pub(crate) fn team(plan: Plan) -> (Coordinator, Vec<Rank>) {
    let ranks = plan.ranks;
    let (coordinator, secret) = coordinator(plan);
    let hellos = (0..ranks as u32).map(|rank| hello(rank, ranks)).collect();
    let team = join_all(coordinator.address(), &secret, hellos);
    (coordinator, team.into_iter().map(Result::unwrap).collect())
}

/// Runs `act` on all ranks at the same time.
pub(crate) fn at_once<T: Send>(team: &[Rank], act: impl Fn(usize, &Session) -> T + Sync) -> Vec<T> {
    scope(|scope| {
        let act = &act;
        let acting: Vec<_> = team
            .iter()
            .map(|rank| &rank.session)
            .enumerate()
            .map(|(rank, session)| scope.spawn(move || act(rank, session)))
            .collect();
        acting.into_iter().map(|acting| acting.join().unwrap()).collect()
    })
}
