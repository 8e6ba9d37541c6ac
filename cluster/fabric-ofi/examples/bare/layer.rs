//! The endpoint of this crate, as one side of the measurement.

use crate::{LONG, Operation, Result, Side, answer_until, bounded};
use fabric_ofi::{
    Amo, Domain, Endpoint, EndpointOptions, Event, GetInto, Peer, PutFrom, Region, RemoteKey, Wanted, providers,
};
use std::time::Instant;

pub(crate) struct Layer {
    endpoint: Endpoint,
    region: Region,
    bytes: Vec<u8>,
    other: Option<(Peer, RemoteKey)>,
}

/// The events of one or more polls.
#[derive(Default)]
struct Seen {
    over: bool,
    messages: usize,
    failed: Option<String>,
}

impl Layer {
    pub(crate) fn open(provider: &str, domain: &str) -> Result<Self> {
        let offers = providers(&Wanted::default().provider(provider).domain(domain))?;
        let offer = offers.iter().find(|offer| offer.is_usable()).ok_or("no usable offer")?;
        let domain = Domain::open(offer)?;
        let endpoint = Endpoint::open(&domain, EndpointOptions::default())?;
        let region = domain.region(2 * LONG)?;
        Ok(Self { endpoint, region, bytes: vec![1; LONG], other: None })
    }

    fn look(&mut self, seen: &mut Seen) -> Result<()> {
        self.endpoint.progress(&mut |event| match event {
            Event::Complete { outcome, .. } => {
                seen.over = true;
                seen.failed = outcome.err().map(|failure| failure.to_string());
            }
            Event::Message(_) => seen.messages += 1,
            other => seen.failed = Some(format!("{other:?}")),
        })?;
        seen.failed.take().map_or(Ok(()), |failed| Err(failed.into()))
    }

    /// Executes an operation, and waits until it completes.
    fn run_once(&mut self, operation: Operation) -> Result<()> {
        let (peer, key) = self.other.ok_or("no other process")?;
        let (begun, mut seen) = (Instant::now(), Seen::default());
        loop {
            let Self { endpoint, region, bytes, .. } = self;
            let posted = match operation {
                Operation::PutBytes(len) => endpoint.put(peer, PutFrom::Bytes(&bytes[..len]), key, 0, None, 0),
                Operation::Put(len) => endpoint.put(peer, PutFrom::Region(region, LONG..LONG + len), key, 0, None, 0),
                Operation::Get(len) => endpoint.get(peer, GetInto::Region(region, LONG..LONG + len), key, 0, 0),
                Operation::Add => endpoint.change(peer, key, 0, 8, Amo::Add(1), 0),
                Operation::PingPong => endpoint.send(peer, &[&[1; 8]], 0),
            };
            if posted? {
                break;
            }
            self.look(&mut seen)?;
            bounded(begun)?;
        }
        while !seen.over || (operation == Operation::PingPong && seen.messages == 0) {
            self.look(&mut seen)?;
        }
        Ok(())
    }

    /// Makes progress once, and answers messages.
    fn answer(&mut self) -> Result<()> {
        let mut seen = Seen::default();
        self.look(&mut seen)?;
        while seen.messages > 0 {
            seen.messages -= 1;
            let (peer, _) = self.other.ok_or("no other process")?;
            while !self.endpoint.send(peer, &[&[2; 8]], 0)? {
                self.look(&mut seen)?;
            }
        }
        Ok(())
    }
}

impl Side for Layer {
    fn contact(&self) -> Vec<u8> {
        [&self.region.key().to_bytes()[..], &self.endpoint.name()].concat()
    }

    fn connect(&mut self, contact: &[u8]) -> Result<()> {
        let (key, name) = contact.split_at(RemoteKey::BYTES);
        self.other = Some((self.endpoint.insert(name)?, RemoteKey::from_bytes(key)?));
        Ok(())
    }

    fn run(&mut self, operation: Operation, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.run_once(operation))
    }

    fn serve(&mut self, has_ended: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        answer_until(has_ended, || self.answer())
    }
}
