//! Requests of ranks of other nodes, executed by the CPU of this rank in its own memory.

use super::{
    arrivals::Arrival,
    core::Core,
    directory::RemoteRegion,
    flight::{Flight, Job},
    keys::RankKeys,
    message::{Answer, Head, INLINE, Kind, WordWork},
    mutant::Mutant,
    outbox::answer_tag,
    remote_rank::{HeldNotice, NOTICES},
};
use rdma_fabric::{
    FabricError, Rank, RegionKey, Result,
    provider::{Posted, Source},
};
use tofu2_shm::part::{ControlRecord, Located, Lock};

impl Core {
    /// Executes the request in a message. Messages that are not from ranks of the job are dropped.
    pub(super) fn receive(&mut self, message: &[u8]) {
        let Some((head, bytes)) = Head::read(message) else { return };
        let known = head.door == self.door && (head.from as usize) < self.below.ranks();
        if !known || self.lost.contains(&head.from) {
            return;
        }
        self.counters.served += u64::from(head.kind != Kind::Done);
        let answer = match head.kind {
            Kind::Done => return self.answered(&head, bytes),
            Kind::Gate => return self.arrivals.push_back(Arrival::Gate { head, news: bytes.to_vec() }),
            Kind::Locate => self.locate(&head),
            Kind::Word => self.word(&head).map(|old| (Answer::Good, old, 0)),
            Kind::Notice => self.notice(&head, bytes).map(|answer| (answer, 0, 0)),
            Kind::Credit => {
                let remote = self.remote(head.from);
                remote.notices = remote.notices.saturating_sub(head.a);
                self.woken.append(&mut self.waiters);
                Ok((Answer::Good, 0, 0))
            }
            Kind::Revoke => {
                let idle = self.directory.revoke(head.from, head.region);
                if !idle && !self.has_mutant(Mutant::AnswersAtOnce) {
                    self.revoking.push(head);
                    return;
                }
                Ok((Answer::Good, 0, 0))
            }
            Kind::Written => {
                self.part.wake();
                Ok((Answer::Good, 0, 0))
            }
            Kind::Command => {
                return self.arrivals.push_back(Arrival::Command { head, bytes: bytes.to_vec() });
            }
            Kind::ControlRecord => {
                if let Some(control_record) = ControlRecord::from_bytes(bytes) {
                    let _ = self.part.control_record(Rank::new(head.from), &control_record);
                }
                Ok((Answer::Good, 0, 0))
            }
        };
        let (answer, a, b) = answer.unwrap_or_else(|error| (why(&error), 0, 0));
        let bytes = match head.kind {
            Kind::Locate if answer == Answer::Good => {
                self.part.locate(head.region).map_or_else(|_| Vec::new(), |located| self.published(&located))
            }
            _ => Vec::new(),
        };
        self.send_soon(head.from, answer_tag(head.from), head.answer(self.me, answer, a, b), bytes);
    }

    /// Returns the location of a region of this rank, and records that the sender knows it.
    fn locate(&mut self, head: &Head) -> Result<(Answer, u64, u64)> {
        let located = self.part.locate(head.region)?;
        if !self.directory.hold(head.from, head.region) {
            return Err(FabricError::StaleRegion { rank: Rank::new(self.me), region: head.region });
        }
        Ok((Answer::Good, located.at, located.len))
    }

    /// Encodes the access policy of a region and the keys of its pieces.
    fn published(&self, located: &Located) -> Vec<u8> {
        let (start, end) = (located.at as usize, located.at.saturating_add(located.len) as usize);
        let keys = self.heap.keys(self.door, start..end).to_bytes();
        bytes_of(located.lock).into_iter().chain(keys).collect()
    }

    /// Executes an operation on a word of this rank by atomics of the CPU, as for ranks of this
    /// node.
    fn word(&mut self, head: &Head) -> Result<u64> {
        let unsupported = FabricError::Unsupported { feature: &"this work on a word" };
        let work = WordWork::read(head).filter(|_| head.width == 4 || head.width == 8);
        let work = work.ok_or_else(|| unsupported.clone())?;
        let width = usize::from(head.width);
        let place = self.part.place(head.region, head.offset, width, width)?;
        let provider = self.below.provider();
        let mut word = [0; 8];
        match work {
            WordWork::Load => provider.read(&place, &mut word[..width], false)?,
            WordWork::Store(value) => provider.write(&place, &value.to_le_bytes()[..width], true)?,
            WordWork::Change(amo) => match provider.atomic(&place, amo) {
                Posted::Complete(old) => return Ok(old),
                Posted::Failed(error) => return Err(error),
                // Shared memory is never full, and its operations complete immediately.
                _ => return Err(unsupported),
            },
        }
        Ok(u64::from_le_bytes(word))
    }

    /// Writes the bytes of a put with a notice, and delivers the notice or holds it until there is
    /// room.
    fn notice(&mut self, head: &Head, bytes: &[u8]) -> Result<Answer> {
        let corrupt = FabricError::Corrupt { rank: Rank::new(head.from), what: &"a notice" };
        let carries = if head.detail == INLINE { head.b } else { 0 };
        let too_many = self.held.get(&head.from).is_some_and(|held| held.len() as u64 >= NOTICES);
        if bytes.len() as u64 != carries || too_many || head.offset.checked_add(head.b).is_none() {
            return Err(corrupt);
        }
        if head.detail == INLINE {
            let place = self.part.place(head.region, head.offset, bytes.len(), 1)?;
            if let Posted::Failed(error) = self.below.provider().put(&place, Source::Bytes(bytes), None) {
                return Err(error);
            }
        }
        let notice = HeldNotice { data: head.a, region: head.region, end: head.offset + head.b };
        if !self.held.contains_key(&head.from) && self.leave(head.from, notice)? {
            return Ok(Answer::Good);
        }
        self.held.entry(head.from).or_default().push_back(notice);
        Ok(Answer::Held)
    }

    fn leave(&self, from: u32, notice: HeldNotice) -> Result<bool> {
        self.part.notify(Rank::new(from), notice.data, notice.region, notice.end)
    }

    /// Delivers held notices for which there is room, and credits their senders.
    pub(super) fn offer_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let mut held = core::mem::take(&mut self.held);
        held.retain(|rank, notices| {
            let mut left = 0;
            while notices.front().is_some_and(|notice| matches!(self.leave(*rank, *notice), Ok(true))) {
                notices.pop_front();
                left += 1;
            }
            if left > 0 {
                self.credit(*rank, left);
            }
            !notices.is_empty()
        });
        self.held = held;
    }

    /// Returns credit for notices to their sender.
    fn credit(&mut self, rank: u32, notices: u64) {
        let head = Head { a: notices, ..Head::request(Kind::Credit, self.me, RegionKey::from_bits(0)) };
        self.send_message(rank, head, Vec::new());
    }

    /// Answers the revoke requests for a region in which no operation is in flight any longer.
    pub(super) fn answer_revokes(&mut self, remote: &RemoteRegion) {
        let (ready, later) = core::mem::take(&mut self.revoking)
            .into_iter()
            .partition(|head| (head.from, head.region) == (remote.rank, remote.key));
        self.revoking = later;
        let ready: Vec<Head> = ready;
        for head in ready {
            let answer = head.answer(self.me, Answer::Good, 0, 0);
            self.send_soon(head.from, answer_tag(head.from), answer, Vec::new());
        }
    }

    /// Completes the request that a message answers.
    fn answered(&mut self, head: &Head, bytes: &[u8]) {
        let asked = |flight: &&mut Flight| {
            use Job::{Ask, Command, Gate, Locate, Notice, WordInto};
            let asks = matches!(flight.job, Ask | Gate | Locate(_) | WordInto(_) | Notice | Command(_));
            flight.rank == head.from && flight.outcome.is_none() && asks
        };
        let Some(flight) = self.flights.get(head.id).filter(asked) else { return };
        let (rank, answer) = (Rank::new(head.from), head.answered());
        let (mut into, mut wanted, mut room) = (None, None, 0);
        match &flight.job {
            Job::WordInto(place) => into = Some(place.clone()),
            Job::Gate => flight.bytes = bytes.to_vec(),
            Job::Locate(key) => wanted = Some(*key),
            Job::Command(_) => flight.bytes = bytes.to_vec(),
            Job::Notice => {
                // Its room has been returned, or will be by a separate message.
                room = u64::from(answer != Some(Answer::Held));
                flight.job = Job::Ask;
            }
            _ => {}
        }
        let remote = self.remote(head.from);
        remote.notices = remote.notices.saturating_sub(room);
        let (region, corrupt) = (head.region, FabricError::Corrupt { rank, what: &"an answer" });
        let outcome = match answer {
            Some(Answer::Good | Answer::Held) => Ok(head.a),
            Some(Answer::Stale) => Err(FabricError::StaleRegion { rank, region }),
            Some(Answer::NoSuchRegion) => Err(FabricError::NoSuchRegion { rank, region }),
            Some(Answer::Unsupported) => {
                Err(FabricError::Unsupported { feature: &"this operation on memory of another node" })
            }
            None => Err(corrupt.clone()),
        };
        let outcome = outcome.and_then(|word| {
            if let Some(key) = wanted {
                let is_right = key == region && head.a.checked_add(head.b).is_some();
                let read = lock_of(bytes).and_then(|(lock, keys)| Some((lock, RankKeys::from_bytes(keys)?)));
                let (lock, keys) = read.filter(|_| is_right).ok_or(corrupt)?;
                self.keys.learn(head.from, keys);
                self.directory.keep(RemoteRegion::new(self.net, head.from, key, (head.a, head.b), lock));
            }
            let bytes = word.to_le_bytes();
            into.map_or(Ok(()), |place| self.below.provider().write(&place, &bytes[..place.len().min(8)], true))?;
            Ok(word)
        });
        self.end(head.id, outcome);
    }
}

/// Returns the answer to a request that can't be granted.
fn why(error: &FabricError) -> Answer {
    match error {
        FabricError::StaleRegion { .. } => Answer::Stale,
        FabricError::NoSuchRegion { .. } => Answer::NoSuchRegion,
        _ => Answer::Unsupported,
    }
}

/// The access policy of a region, as encoded: 0 and zeros if it is open to all handles, 1 and zeros
/// if only to the handles that allocated it, 2 and the terms of an access policy otherwise.
const LOCK: usize = 32;

fn bytes_of(lock: Lock) -> [u8; LOCK] {
    let words: [u64; 4] = match lock {
        Lock::Open => [0; 4],
        Lock::Ring => [1, 0, 0, 0],
        Lock::Terms([a, b, c]) => [2, a, b, c],
    };
    let mut bytes = [0; LOCK];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Decodes the access policy of a region, and returns the bytes behind it.
fn lock_of(bytes: &[u8]) -> Option<(Lock, &[u8])> {
    let (lock, rest) = bytes.split_first_chunk::<LOCK>()?;
    let (words, _) = lock.as_chunks::<8>();
    let lock = match words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>()[..] {
        [0, ..] => Lock::Open,
        [2, a, b, c] => Lock::Terms([a, b, c]),
        _ => Lock::Ring,
    };
    Some((lock, rest))
}
