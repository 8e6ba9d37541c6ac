//! Two ranks of one case: this program, executed twice, with a socket between the two processes.

use crate::{
    PROVIDERS,
    line::{BOUND, Line},
};
use fabric_ofi::{Domain, EndpointOptions, Offer, Peer, Region, RemoteKey, Wanted, providers};
use process_tests::child::{Child, Ended, this_program};
use std::{
    io::{ErrorKind, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// Time limit for a case.
const CASE: Duration = Duration::from_secs(150);

/// Suffix of a provider's name: the provider chooses keys, and addresses are virtual.
pub(crate) const PROVIDER_KEYS: &str = ", provider keys";

/// Returns a provider's own name, and the query for its offers.
fn wanted(name: &str) -> (&str, Wanted) {
    match name.strip_suffix(PROVIDER_KEYS) {
        Some(provider) => (provider, Wanted::default().provider(provider).provider_keys()),
        None => (name, Wanted::default().provider(name)),
    }
}

/// Returns the first usable offer of a provider.
pub(crate) fn usable(name: &str, domain: Option<&str>) -> Option<Offer> {
    let (provider, wanted) = wanted(name);
    let offers = providers(&domain.into_iter().fold(wanted, Wanted::domain)).expect("an answer of libfabric");
    let offer = offers.into_iter().find(|offer| offer.provider == provider && offer.is_usable())?;
    let provider_keys = offer.provider_keys && offer.virtual_addresses;
    assert!(provider_keys || provider == name, "{name} has offered other keys");
    Some(offer)
}

/// Returns why there is no usable offer of a provider.
pub(crate) fn why_not(name: &str) -> String {
    let (provider, wanted) = wanted(name);
    let offers = providers(&wanted).expect("an answer of libfabric");
    let verdict = offers.into_iter().find(|offer| offer.provider == provider).and_then(|offer| offer.verdict);
    verdict.map_or_else(|| "libfabric has no offer of it here".to_owned(), |reason| reason.to_string())
}

/// Runs both ranks of a case, which must succeed in time.
pub(crate) fn run(case: &str, provider: &str) {
    let (first, second) = UnixStream::pair().expect("sockets");
    let start = |rank: &str, socket: UnixStream| {
        let mut command = this_program(["role", case, provider, rank]);
        command.stdin(OwnedFd::from(socket)).stdout(Stdio::inherit());
        Child::start(command)
    };
    let until = Instant::now() + CASE;
    let ended = [start("0", first), start("1", second)]
        .map(|rank| rank.end_within(until.saturating_duration_since(Instant::now())));
    for (rank, Ended { status, .. }) in ended.iter().enumerate() {
        assert!(status.success(), "rank {rank}: {status}");
    }
}

/// One of the two ranks, with an endpoint that has the other rank and itself as peers.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) rank: usize,
    pub(crate) domain: Domain,
    pub(crate) line: Line,
    /// The other rank.
    pub(crate) other: Peer,
    /// This rank itself.
    pub(crate) same: Peer,
    pub(crate) socket: UnixStream,
}

impl Rank {
    pub(crate) fn new(provider: &str, rank: &str) -> Self {
        let domain = PROVIDERS.iter().find(|(name, _)| *name == provider).and_then(|(_, domain)| *domain);
        let offer = usable(provider, domain).expect("the offer that the parent has found");
        let domain = Domain::open(&offer).expect("a domain");
        let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("the socket to the other rank");
        let mut socket = UnixStream::from(socket);
        socket.set_nonblocking(true).expect("a socket that does not block");
        let options = EndpointOptions { wait: true, ..EndpointOptions::default() };
        let (mut line, same) = Line::with_itself(&domain, options);
        let name = line.endpoint.name();
        let theirs = swap(&mut socket, &mut line, &name);
        let other = line.endpoint.insert(&theirs).expect("the other rank");
        Self { rank: rank.parse().expect("a rank"), domain, line, other, same, socket }
    }

    /// Closes the endpoint, and opens a new one.
    pub(crate) fn reopen(self, offer: Option<&Offer>) -> Self {
        let Self { rank, domain, line, mut socket, .. } = self;
        drop(line);
        let domain = offer.map_or(domain, |offer| Domain::open(offer).expect("a domain"));
        let (mut line, same) = Line::with_itself(&domain, EndpointOptions::default());
        let name = line.endpoint.name();
        let theirs = swap(&mut socket, &mut line, &name);
        let other = line.endpoint.insert(&theirs).expect("the other rank");
        Self { rank, domain, line, other, same, socket }
    }

    /// Opens a region, and returns it with the key of the other rank's region.
    pub(crate) fn regions(&mut self, bytes: usize) -> (Region, RemoteKey) {
        let region = self.domain.region(bytes).expect("a region");
        let theirs = self.swap(&region.key().to_bytes());
        (region, RemoteKey::from_bytes(&theirs).expect("a key"))
    }

    /// Sends bytes to the other rank, and returns the bytes that it sends; makes progress
    /// meanwhile.
    pub(crate) fn swap(&mut self, mine: &[u8]) -> Vec<u8> {
        swap(&mut self.socket, &mut self.line, mine)
    }

    /// Waits until the other rank has reached the same point.
    pub(crate) fn connect(&mut self) {
        self.swap(&[]);
    }
}

fn swap(socket: &mut UnixStream, line: &mut Line, mine: &[u8]) -> Vec<u8> {
    socket.write_all(&(mine.len() as u32).to_le_bytes()).expect("room in the socket");
    socket.write_all(mine).expect("room in the socket");
    let begun = Instant::now();
    let mut fill = |bytes: &mut [u8]| {
        let mut got = 0;
        while got < bytes.len() {
            match socket.read(&mut bytes[got..]) {
                Ok(0) => panic!("the other rank has ended"),
                Ok(read) => got += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    line.progress();
                    thread::yield_now();
                }
                Err(error) => panic!("{error}"),
            }
            assert!(begun.elapsed() < BOUND, "the other rank sends nothing");
        }
    };
    let mut len = [0; 4];
    fill(&mut len);
    let mut theirs = vec![0; u32::from_le_bytes(len) as usize];
    fill(&mut theirs);
    theirs
}
