//! Commands as their executor has executed them before, decoded and with both ends resolved.
//!
//! A persistent program posts the same commands again and again, with other numbers in them
//! ([`descriptor::fixed_part`]). An executor keeps puts that it has seen twice. The key is the
//! descriptor's fixed part itself: the words copied from a slot are compared with those that were
//! decoded and checked then, so a slot that was rewritten or damaged is another command.
//!
//! Before each use, the state that the command was resolved against is compared with the current
//! one: the target's queue ([`KeptRoute::current`]), both registrations, and both regions'
//! generations. If anything has changed, the general path executes the command, and gives the
//! reason. As on every fast path, all checks precede all effects.

mod put;

use super::{
    route::{KeptRoute, KeptTag, Route, keep_tag},
    tags::{FoundTag, find},
    view::View,
};
use crate::{
    job::Job,
    memory::Piece,
    queues::format::descriptor::{self, Brief, Payload, SLOT},
};
use rdma_fabric::{
    RegionKey,
    control_queue::{QueueId, Stadd},
};

/// Bytes of a put that carries them.
const WORD: usize = 8;

/// A put, decoded and resolved.
#[derive(Debug)]
struct KnownPut {
    /// The queue whose command it is, and the key of its words: it is the same queue, with the same
    /// tags, until it closes.
    of: (QueueId, RegionKey),
    /// The descriptor's fixed part.
    fixed: [u64; SLOT],
    route: Route,
    kept: KeptRoute,
    to: Piece,
    /// The bytes to be put, unless the descriptor carries them.
    from: Option<KnownSource>,
    /// The byte after the last one written.
    end: Stadd,
    sps: u8,
    remote_notice: bool,
    tcq_notice: bool,
}

/// Bytes to be put, and their registration on the command's queue.
#[derive(Debug)]
struct KnownSource {
    found: FoundTag,
    tag: KeptTag,
    piece: Piece,
}

/// A place of the table.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Empty,
    /// A command that was seen once: the hash of its fixed part.
    Seen(u64),
    Known(Box<KnownPut>),
}

/// The commands that a rank executes repeatedly.
#[derive(Debug, Default)]
pub(crate) struct KnownCommands {
    /// [`KnownCommands::PLACES`] places, or none while the rank has executed nothing.
    places: Vec<Place>,
}

impl KnownCommands {
    const PLACES: usize = 256;

    fn hash(of: QueueId, [zero, one, two, three]: &[u64; SLOT]) -> u64 {
        // Queues, tags and offsets differ in few bits: Fibonacci hashing spreads them.
        let queues = zero ^ of.to_bits().rotate_left(20) ^ three.rotate_left(40);
        (queues.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ two.wrapping_add(one.rotate_left(29)))
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    fn place(hash: u64) -> usize {
        (hash >> 56) as usize
    }

    /// Returns the command of `queue` with this fixed part.
    #[inline(always)]
    fn get(&self, queue: &View<'_>, fixed: &[u64; SLOT]) -> Option<&KnownPut> {
        match self.places.get(Self::place(Self::hash(queue.id, fixed))) {
            Some(Place::Known(known)) if known.of == (queue.id, queue.key) && is_same(&known.fixed, fixed) => {
                Some(known)
            }
            _ => None,
        }
    }

    /// Remembers a command that was executed, from the second time on.
    #[cold]
    #[inline(never)]
    pub(crate) fn remember(&mut self, job: &Job, queue: &View<'_>, first: [u64; SLOT], brief: &Brief) {
        if self.places.is_empty() {
            self.places.resize_with(Self::PLACES, Place::default);
        }
        let fixed = descriptor::fixed_part(first);
        let hash = Self::hash(queue.id, &fixed);
        let place = &mut self.places[Self::place(hash)];
        let is_seen = match place {
            Place::Empty => false,
            Place::Seen(seen) => *seen == hash,
            // Something has changed.
            Place::Known(known) => known.of.0 == queue.id && known.fixed == fixed,
        };
        let known = if is_seen { KnownPut::find(job, queue, fixed, brief) } else { None };
        *place = known.map_or(Place::Seen(hash), |known| Place::Known(Box::new(known)));
    }

    /// Returns the number of known commands of a queue.
    #[cfg(test)]
    pub(crate) fn count(&self, queue: QueueId) -> usize {
        self.places.iter().filter(|place| matches!(place, Place::Known(known) if known.of.0 == queue)).count()
    }

    /// Forgets the commands of a queue that closes.
    pub(crate) fn forget(&mut self, queue: QueueId) {
        for place in &mut self.places {
            if matches!(place, Place::Known(known) if known.of.0 == queue) {
                *place = Place::Empty;
            }
        }
    }
}

/// Compares slots word by word: a comparison of arrays goes through memory.
#[inline(always)]
fn is_same([a, b, c, d]: &[u64; SLOT], [e, f, g, h]: &[u64; SLOT]) -> bool {
    (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h) == 0
}

impl KnownPut {
    fn find(job: &Job, queue: &View<'_>, fixed: [u64; SLOT], brief: &Brief) -> Option<Self> {
        let Brief { to, at, payload, sps, remote_notice, tcq_notice, .. } = *brief;
        let segment = job.segment(to.rank()).ok()?;
        let route = Route::find(job, to, at)?;
        let kept = route.keep(segment)?;
        let target = kept.current(&route)?;
        let (len, from) = match payload {
            Payload::Nothing => return None,
            Payload::Word(_) => (WORD, None),
            Payload::Memory(_, len) if len > job.queues.machine.longest => return None,
            Payload::Memory(from, len) => {
                let (found, own) = (find(queue, from).ok()?, job.segment(queue.owner()).ok()?);
                let (tag, piece) = (
                    keep_tag(own, queue.tags_at()?, &found)?,
                    found.kept_piece((queue, own), from, len as usize, false)?,
                );
                (len as usize, Some(KnownSource { found, tag, piece }))
            }
        };
        if sps != 0 && !target.is_session() {
            return None;
        }
        let target = View::find(job, to).ok()?;
        let (to, end) = (route.found().kept_piece((&target, segment), at, len, true)?, at + len as u64);
        Some(KnownPut { of: (queue.id, queue.key), fixed, route, kept, to, from, end, sps, remote_notice, tcq_notice })
    }
}
