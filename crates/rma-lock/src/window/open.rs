//! Which epochs of a window its rank is inside of.

use super::{
    error::{EpochKind, WindowError, WindowResult},
    locked,
};
use std::sync::Mutex;

/// How many epochs of each kind are open.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    fence: u32,
    start: u32,
    exposure: u32,
    shared: u32,
    exclusive: u32,
    all: u32,
    no_check: u32,
}

impl Counts {
    fn of(&mut self, kind: EpochKind) -> &mut u32 {
        match kind {
            EpochKind::Fence => &mut self.fence,
            EpochKind::Start => &mut self.start,
            EpochKind::Exposure => &mut self.exposure,
            EpochKind::Shared => &mut self.shared,
            EpochKind::Exclusive => &mut self.exclusive,
            EpochKind::All => &mut self.all,
            EpochKind::NoCheck => &mut self.no_check,
        }
    }
}

use EpochKind::{All, Exclusive, Exposure, Fence, NoCheck, Shared, Start};

/// What must not be open when an epoch of this kind begins. `nests`: whether the lock can be held shared twice.
fn excluded(kind: EpochKind, nests: bool) -> &'static [EpochKind] {
    match kind {
        Fence => &[Fence, Start, Exposure, Shared, Exclusive, All, NoCheck],
        Start => &[Fence, Start, Shared, Exclusive, All, NoCheck],
        Exposure => &[Fence],
        Shared if nests => &[Fence, Start, Exclusive, All],
        Shared | Exclusive | All => &[Fence, Start, Shared, Exclusive, All],
        NoCheck => &[Fence, Start],
    }
}

impl Open {
    /// Begin an epoch.
    pub(super) fn begin(&self, asked: EpochKind, nests: bool) -> WindowResult<Opened<'_>> {
        let mut counts = locked(&self.0);
        match excluded(asked, nests).iter().find(|kind| *counts.of(**kind) > 0) {
            Some(&open) => Err(WindowError::EpochOpen { open, asked }),
            None => {
                *counts.of(asked) += 1;
                Ok(Opened { open: self, kind: asked })
            }
        }
    }

    pub(super) fn end(&self, kind: EpochKind) {
        *locked(&self.0).of(kind) -= 1;
    }
}

/// An epoch that is open until this is dropped.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    open: &'a Open,
    kind: EpochKind,
}

impl Opened<'_> {
    /// It stays open; [`Open::end`] ends it.
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.open.end(self.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_exclude_what_they_must() {
        let open = Open::default();
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
    }
}
