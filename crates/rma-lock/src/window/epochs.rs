//! The kinds of epochs, and the epochs that a rank is inside.

use super::{
    error::{WindowError, WindowResult},
    locked,
};
use core::fmt;
use std::sync::Mutex;

/// The kinds of epochs, as named in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EpochKind {
    /// Between fences.
    Fence,
    /// Between start and complete.
    Start,
    /// Between post and wait.
    Exposure,
    /// One rank's memory, shared.
    Shared,
    /// One rank's memory, exclusively.
    Exclusive,
    /// All ranks' memory, shared.
    All,
    /// Without a lock.
    NoCheck,
    /// A barrier or fence that members have not all reached.
    Barrier,
    /// The wait for the end of an exposure.
    Wait,
}

impl fmt::Display for EpochKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EpochKind::Fence => "an epoch between fences",
            EpochKind::Start => "an epoch between start and complete",
            EpochKind::Exposure => "an exposure between post and wait",
            EpochKind::Shared => "a shared epoch",
            EpochKind::Exclusive => "an exclusive epoch",
            EpochKind::All => "an epoch of all ranks",
            EpochKind::NoCheck => "an epoch without a lock",
            EpochKind::Barrier => "a barrier",
            EpochKind::Wait => "a wait for the end of an exposure",
        })
    }
}

/// The number of open epochs of each [kind](EpochKind), indexed by its number.
#[derive(Debug, Default)]
pub(super) struct OpenEpochs(Mutex<[u32; 9]>);

use EpochKind::{All, Barrier, Exclusive, Exposure, Fence, NoCheck, Shared, Start, Wait};

/// Returns the kinds that exclude an epoch of this kind while one of them is open. `nests` is
/// whether the lock can be held shared twice.
fn excluded(kind: EpochKind, nests: bool) -> &'static [EpochKind] {
    match kind {
        Fence => &[Fence, Start, Exposure, Shared, Exclusive, All, NoCheck],
        Start => &[Fence, Start, Shared, Exclusive, All, NoCheck],
        Exposure => &[Fence],
        Shared if nests => &[Fence, Start, Exclusive, All],
        Shared | Exclusive | All => &[Fence, Start, Shared, Exclusive, All],
        NoCheck => &[Fence, Start],
        // A second one would be mistaken for the continuation of the first.
        Barrier => &[Barrier],
        Wait => &[Wait],
    }
}

impl OpenEpochs {
    /// Opens an epoch.
    pub(super) fn begin(&self, asked: EpochKind, nests: bool) -> WindowResult<OpenEpoch<'_>> {
        let mut counts = locked(&self.0);
        match excluded(asked, nests).iter().find(|kind| counts[**kind as usize] > 0) {
            Some(&open) => Err(WindowError::EpochOpen { open, asked }),
            None => {
                counts[asked as usize] += 1;
                Ok(OpenEpoch { open: self, kind: asked })
            }
        }
    }

    pub(super) fn end(&self, kind: EpochKind) {
        locked(&self.0)[kind as usize] -= 1;
    }
}

/// An open epoch, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct OpenEpoch<'a> {
    open: &'a OpenEpochs,
    kind: EpochKind,
}

impl OpenEpoch<'_> {
    /// Keeps the epoch open; [`OpenEpochs::end`] ends it.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for OpenEpoch<'_> {
    fn drop(&mut self) {
        self.open.end(self.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_exclude_what_they_must() {
        let open = OpenEpochs::default();
        let refused = |asked, nests| match open.begin(asked, nests) {
            Err(WindowError::EpochOpen { open, asked: same }) if same == asked => Some(open),
            Err(error) => panic!("{error}"),
            Ok(_) => None,
        };
        let fence = open.begin(Fence, true).unwrap();
        for asked in [Fence, Start, Exposure, Shared, Exclusive, All, NoCheck] {
            assert_eq!(refused(asked, true), Some(Fence), "{asked}");
        }
        drop(fence);
        let shared = open.begin(Shared, true).unwrap();
        assert_eq!((refused(Shared, true), refused(Shared, false)), (None, Some(Shared)));
        assert_eq!((refused(Exclusive, true), refused(All, true)), (Some(Shared), Some(Shared)));
        assert_eq!((refused(NoCheck, true), refused(Start, true)), (None, Some(Shared)));
        drop(shared);
        open.begin(Exposure, true).unwrap().keep();
        let start = open.begin(Start, true).unwrap();
        assert_eq!((refused(Fence, true), refused(NoCheck, true)), (Some(Start), Some(Start)));
        drop(start);
        assert_eq!(refused(Fence, true), Some(Exposure));
        open.end(Exposure);
        assert_eq!(refused(Fence, true), None);
        let met = open.begin(Barrier, false).unwrap();
        assert_eq!((refused(Barrier, false), refused(Wait, false), refused(Shared, true)), (Some(Barrier), None, None));
        drop(met);
        let wait = open.begin(Wait, false).unwrap();
        assert_eq!((refused(Wait, false), refused(Barrier, false)), (Some(Wait), None));
        drop(wait);
        assert_eq!((refused(Wait, false), refused(Barrier, false)), (None, None));
    }
}
