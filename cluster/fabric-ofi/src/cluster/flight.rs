//! Operations and requests of this rank that are in flight.

use super::{directory::RemoteRegion, message::Head, pending_transfer::PendingTransfer};
use rdma_fabric::{FabricError, RegionKey, Result, provider::Place};
use std::{sync::Arc, task::Waker, time::Instant};
use tofu2_shm::part::RemoteCommand;

/// The kind of an operation or request.
#[derive(Debug)]
pub(super) enum Job {
    /// A libfabric put.
    Put,
    /// A libfabric get that makes acknowledged puts visible.
    Confirm,
    /// A libfabric put that is followed by its notice.
    PutThenNotice,
    /// A libfabric get into the flight's own buffer.
    Get,
    /// A libfabric get into this rank's own memory.
    GetInto(Place),
    /// A request by message.
    Ask,
    /// A message with updates of a gate, which requests the updates of another gate. The flight
    /// stores the answer.
    Gate,
    /// A message that looks up this region. The result is stored as soon as the answer arrives,
    /// because the next message may revoke the region.
    Locate(RegionKey),
    /// A message that requests a word, which is stored in this rank's own memory.
    WordInto(Place),
    /// A libfabric atomic, or the load or store of a word. Its result is stored in this rank's own
    /// memory if a place is given.
    Word(Option<Place>),
    /// A message with a notice. It occupies room at the target until it completes, and longer if
    /// the target holds it back.
    Notice,
    /// A message with a command of a control queue.
    Command(Box<RemoteCommand>),
    /// A libfabric transfer of the bytes of a command that another rank posted.
    Move(Box<Moved>),
}

/// A command whose bytes are being moved, and the region of this rank that they are moved to or
/// from.
#[derive(Clone, Debug)]
pub(super) struct Moved {
    pub(super) command: RemoteCommand,
    /// The message that brought the command.
    pub(super) head: Head,
    pub(super) region: RegionKey,
}

/// One operation or request.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) rank: u32,
    pub(super) job: Job,
    /// The outcome; `None` while in flight.
    pub(super) outcome: Option<Result<u64>>,
    /// The bytes that it fetched.
    pub(super) bytes: Vec<u8>,
    pub(super) waker: Option<Waker>,
    /// Whether the outcome will be requested; otherwise the flight is removed when it completes.
    pub(super) wanted: bool,
    /// For a put: its number among the puts to its rank, and its number among all puts.
    pub(super) put: Option<(u64, u64)>,
    /// The region of another rank that libfabric accesses.
    pub(super) remote: Option<Arc<RemoteRegion>>,
    /// The region of this rank that libfabric accesses.
    pub(super) own: Option<RegionKey>,
    /// The part of the transfer that has not been posted.
    pub(super) pending: Option<PendingTransfer>,
    /// Whether it is posted to the network, which may then access memory.
    pub(super) posted: bool,
    /// When and why the network refused it. The cause may be the loss of its target, which is
    /// reported later.
    pub(super) refused: Option<(Instant, FabricError)>,
}

impl Flight {
    pub(super) fn new(rank: u32, job: Job) -> Self {
        Flight {
            rank,
            job,
            outcome: None,
            bytes: Vec::new(),
            waker: None,
            wanted: false,
            put: None,
            remote: None,
            own: None,
            pending: None,
            posted: false,
            refused: None,
        }
    }
}

/// Number of slots that remain allocated even if all are free.
const KEPT: usize = 16;

#[derive(Debug, Default)]
struct Slot {
    /// The number of the flight that last used it.
    number: u32,
    flight: Option<Flight>,
}

/// All flights that are in progress, or have completed with an outcome that is still wanted.
#[derive(Debug, Default)]
pub(super) struct Flights {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Number of flights so far. It makes ids unique even if the slots are reallocated.
    number: u32,
    /// Number of flights without an outcome.
    in_flight: usize,
}

impl Flights {
    /// Returns the number of flights in progress.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Adds a flight, and returns its id: never 0, and below 2⁶³.
    pub(super) fn add(&mut self, flight: Flight) -> u64 {
        self.in_flight += 1;
        self.number = (self.number + 1) & 0x7fff_ffff;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.slots[index as usize] = Slot { number: self.number, flight: Some(flight) };
        id_of(self.number, index)
    }

    fn slot(&mut self, id: u64) -> Option<(u32, &mut Slot)> {
        let index = (id as u32).checked_sub(1)?;
        let slot = self.slots.get_mut(index as usize)?;
        (slot.number == (id >> 32) as u32).then_some((index, slot))
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Flight> {
        self.slot(id)?.1.flight.as_mut()
    }

    /// Returns whether a flight has completed or does not exist.
    pub(super) fn is_complete(&mut self, id: u64) -> bool {
        self.get(id).is_none_or(|flight| flight.outcome.is_some())
    }

    /// Stores the outcome of a flight in progress, and returns the flight.
    pub(super) fn end(&mut self, id: u64, outcome: Result<u64>) -> Option<&mut Flight> {
        let in_flight = self.get(id).is_some_and(|flight| flight.outcome.is_none());
        self.in_flight -= usize::from(in_flight);
        let flight = self.get(id).filter(|_| in_flight)?;
        flight.outcome = Some(outcome);
        Some(flight)
    }

    /// Removes a flight.
    pub(super) fn remove(&mut self, id: u64) -> Option<Flight> {
        let (index, slot) = self.slot(id)?;
        let flight = slot.flight.take()?;
        self.free.push(index);
        self.in_flight -= usize::from(flight.outcome.is_none());
        if self.slots.len() > KEPT && self.free.len() == self.slots.len() {
            // Only operations on words of all ranks need many slots at once, and they are rare.
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
        Some(flight)
    }

    /// Returns all flights in progress.
    pub(super) fn all(&self) -> impl Iterator<Item = &Flight> {
        self.slots.iter().filter_map(|slot| slot.flight.as_ref()).filter(|flight| flight.outcome.is_none())
    }

    /// Returns the ids of the flights in progress that `which` selects.
    pub(super) fn those(&self, which: impl Fn(&Flight) -> bool) -> Vec<u64> {
        let id = |(index, slot): (usize, &Slot)| {
            let flight = slot.flight.as_ref().filter(|flight| flight.outcome.is_none())?;
            which(flight).then_some(id_of(slot.number, index as u32))
        };
        self.slots.iter().enumerate().filter_map(id).collect()
    }
}

fn id_of(number: u32, index: u32) -> u64 {
    (u64::from(number) << 32) | (u64::from(index) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_one_flight() {
        let mut flights = Flights::default();
        let first = flights.add(Flight::new(1, Job::Ask));
        assert!(flights.end(first, Ok(3)).is_some() && flights.end(first, Ok(4)).is_none());
        assert_eq!(flights.remove(first).unwrap().outcome, Some(Ok(3)));
        let second = flights.add(Flight::new(2, Job::Put));
        assert_ne!(first, second);
        assert!(flights.get(first).is_none() && flights.remove(first).is_none() && flights.get(0).is_none());
        assert_eq!((flights.in_flight(), flights.those(|flight| flight.rank == 2)), (1, vec![second]));
        assert!(flights.remove(second).is_some());
        assert_eq!(flights.in_flight(), 0);
    }

    #[test]
    fn slots_of_a_burst_are_given_back_and_their_ids_are_not_used_again() {
        let mut flights = Flights::default();
        let burst = |flights: &mut Flights| (0..100).map(|rank| flights.add(Flight::new(rank, Job::Ask))).collect();
        let first: Vec<u64> = burst(&mut flights);
        first[1..].iter().for_each(|id| drop(flights.remove(*id)));
        assert!(flights.get(first[0]).is_some(), "one is under way");
        flights.remove(first[0]);
        assert_eq!(flights.slots.capacity() + flights.free.capacity(), 0);
        let second: Vec<u64> = burst(&mut flights);
        assert!(first.iter().all(|id| flights.get(*id).is_none() && flights.remove(*id).is_none()));
        assert!(second.iter().all(|id| flights.remove(*id).is_some()));
    }
}
