//! Jobs aborted by one of their ranks: [`rdma_fabric::Fabric::abort`].
//!
//! Each rank has room in its own segment for its message, so ranks that abort at the same time
//! don't interfere with each other. The first rank that writes its number into the control block
//! wins. Then every segment's [`layout::LOST`] is set to its number and code, which makes all
//! operations fail: they read that word when they find that a region is condemned. Waits end only
//! after that, so a rank whose wait has ended finds every operation refused.

use super::{Control, Job};
use crate::{
    JobError,
    memory::{Mapping, layout, regions},
};
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use rdma_fabric::{FabricError, Rank};

/// The value of [`layout::LOST`] for a rank that was lost by itself. The values of an aborted job
/// are greater in their lower half.
pub(crate) const LOST: u64 = 1;

/// Packs the rank that has aborted the job, and the exit code.
fn bits_of(rank: Rank, code: i32) -> u64 {
    u64::from(code.cast_unsigned()) << 32 | u64::from(rank.number().saturating_add(2))
}

/// Unpacks them; `None` if no rank has aborted the job.
fn parts_of(bits: u64) -> Option<(Rank, i32)> {
    let rank = (bits as u32).checked_sub(2)?;
    Some((Rank::new(rank), ((bits >> 32) as u32).cast_signed()))
}

/// Returns why operations on `rank` fail, given the value of its [`layout::LOST`].
#[cold]
pub(crate) fn loss(rank: Rank, bits: u64) -> FabricError {
    match parts_of(bits) {
        Some((rank, code)) => FabricError::Aborted { rank, code },
        None => FabricError::PeerLost { rank },
    }
}

impl Control {
    /// Checks that the job is not aborted.
    ///
    /// # Errors
    /// [`FabricError::Aborted`].
    pub(crate) fn not_aborted(&self) -> Result<(), FabricError> {
        // Acquire: pairs with the store in `Job::abort`, for the segments' words.
        match parts_of(self.word(layout::ABORTED).load(Acquire)) {
            None => Ok(()),
            Some((rank, code)) => Err(FabricError::Aborted { rank, code }),
        }
    }
}

impl Job {
    /// Aborts the job on behalf of `me`, which does this at most once, and returns the error with
    /// the rank that has aborted it. A rank that is a thread cannot be stopped from outside; if
    /// ranks are processes, notifies their launcher.
    #[cold]
    pub(crate) fn abort(&self, me: Rank, text: &str, code: i32) -> FabricError {
        let Some(own) = self.segments.get(me.index()) else {
            return FabricError::NoSuchRank { rank: me, ranks: self.plan.ranks };
        };
        write(own, text);
        let (word, bits) = (self.control.word(layout::ABORTING), bits_of(me, code));
        // Release, at least: pairs with the load in `aborted`.
        let bits = word.compare_exchange(0, bits, SeqCst, SeqCst).err().unwrap_or(bits);
        // A rank that loses the exchange also does this, because the winner may die in the
        // meantime.
        for segment in &self.segments {
            segment.word(layout::LOST).store(bits, SeqCst);
            regions::condemn(segment);
        }
        // Release, at least: pairs with the load in `not_aborted`.
        self.control.word(layout::ABORTED).store(bits, SeqCst);
        // Release: pairs with the acquire in `Control::changes`.
        self.control.word(layout::CHANGES).fetch_add(1, SeqCst);
        self.wake_all();
        #[cfg(target_os = "linux")]
        if let Some(peers) = &self.peers {
            peers.call_launcher();
        }
        loss(me, bits)
    }

    /// Returns the job's error if a rank has aborted it.
    pub(crate) fn aborted(&self) -> Option<JobError> {
        // Acquire: pairs with the exchange in `abort`, for the text. Not `ABORTED`: the rank that
        // aborts may have been killed before it set that.
        let (rank, code) = parts_of(self.control.word(layout::ABORTING).load(Acquire))?;
        let text = self.segments.get(rank.index()).map(|segment| read(segment)).unwrap_or_default();
        // Only a rank that writes garbage writes 0.
        Some(JobError::Aborted { rank, text, code: if code == 0 { 1 } else { code } })
    }

    /// Returns why operations on `rank`, which is lost, fail.
    #[cold]
    pub(crate) fn loss_of(&self, rank: Rank) -> FabricError {
        let lost = self.segments.get(rank.index()).map_or(LOST, |segment| segment.word(layout::LOST).load(Acquire));
        loss(rank, lost)
    }
}

/// Writes as much of the text as there is room for; nothing if the rank is on another node, whose
/// launcher receives the text by other means.
fn write(own: &Mapping, text: &str) {
    if own.is_absent() {
        return;
    }
    let mut len = text.len().min(layout::ABORT_BYTES);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    for (index, bytes) in text.as_bytes()[..len].chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        own.word(layout::ABORT_TEXT + 8 * index).store(u64::from_ne_bytes(word), Relaxed);
    }
    own.word(layout::ABORT_LEN).store(len as u64, Relaxed);
}

/// Reads the message of a rank, which may be garbage.
fn read(segment: &Mapping) -> String {
    if segment.is_absent() {
        return String::new();
    }
    let len = segment.word(layout::ABORT_LEN).load(Relaxed).min(layout::ABORT_BYTES as u64) as usize;
    let words = (0..len.div_ceil(8)).map(|index| segment.word(layout::ABORT_TEXT + 8 * index).load(Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).take(len).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{job::Plan, memory::allocator::Pages};
    use rdma_fabric::Deps;

    #[test]
    fn the_first_to_abort_decides_and_says_why() {
        let plan = Plan { ranks: 3, ranks_per_node: 3, heap_bytes: 1 << 16, start_ns: 0 };
        let job = Job::of_threads(plan).unwrap();
        let [first, second] = [1, 2].map(Rank::new);
        let _endpoint = crate::endpoint::Endpoint::new(job.clone(), first, Pages::Private).unwrap();
        assert!(job.aborted().is_none() && job.control.not_aborted().is_ok());
        let text = "é".repeat(layout::ABORT_BYTES);
        let error = FabricError::Aborted { rank: first, code: -7 };
        assert_eq!(job.abort(first, &text, -7), error);
        assert_eq!(job.abort(second, "too late", 3), error);
        assert_eq!(job.outlook(second, &Deps::One(Rank::new(0))), Err(error.clone()));
        assert_eq!(job.loss_of(Rank::new(0)), error);
        let Some(JobError::Aborted { rank, text: told, code }) = job.aborted() else { panic!("it was") };
        assert_eq!((rank, code, told.len()), (first, -7, layout::ABORT_BYTES));
        assert!(text.starts_with(&told));
    }

    #[test]
    fn a_lost_rank_is_no_aborted_job() {
        assert_eq!(parts_of(LOST), None);
        assert_eq!(loss(Rank::new(5), LOST), FabricError::PeerLost { rank: Rank::new(5) });
        for (rank, code) in [(0, 1), (0, i32::MIN), ((1 << 24) - 1, i32::MAX), (3, -1)] {
            assert_eq!(parts_of(bits_of(Rank::new(rank), code)), Some((Rank::new(rank), code)));
        }
    }
}
