//! The entry point for fuzzing: a lock's file with words of any value. The module is public only with
//! `--cfg fuzzing`, for the target in `fuzz/`, whose seeds a test replays.

#![allow(unreachable_pub)]

use crate::{
    Error, NamedLock, Result, join,
    layout::{self, GHOSTS, RANKS, SLOT},
};
use core::time::Duration;
use std::{
    fs::{self, File},
    io::Write as _,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// The time limit of each call.
const DEADLINE: Duration = Duration::from_millis(4);
/// How much longer a call may take: it may wait for a place in the next file first, and the machine may
/// be busy.
const SLACK: Duration = Duration::from_secs(8);
/// Bytes of a change: how and where, an index, and a value.
const CHANGE: usize = 11;
/// The maximum number of changes in an input.
const MOST: usize = 48;

/// Opens and uses a lock in a new file of `folder`, to which changes encoded in these bytes are
/// applied before the file is opened and between calls: a byte with the number of changes, then
/// [`CHANGE`] bytes for each.
///
/// # Panics
/// If a call exceeds its time limit by far.
pub fn lock_file(folder: &Path, bytes: &[u8]) {
    let Some((when, changes)) = bytes.split_first() else { return };
    let mut changes = changes.as_chunks::<CHANGE>().0.iter().take(MOST);
    let path = fresh(folder);
    // While the lock is used, its file may be replaced: later changes are made in the next file.
    let mut change = |count: u8| {
        let file = File::options().read(true).write(true).open(&path).expect("the lock's file");
        changes.by_ref().take(count.into()).for_each(|change| apply(&file, change));
    };
    change(when & 7);
    let lock = timed("open", || {
        let joined = join::join(&path, Instant::now() + DEADLINE)?;
        Ok(NamedLock::of(path.clone(), joined))
    });
    if let Ok(lock) = lock {
        change(when >> 3 & 7);
        use_all(&lock);
        change(u8::MAX);
        use_all(&lock);
        let dropped = timed("drop", || {
            drop(lock);
            Ok(())
        });
        dropped.expect("dropped");
    }
    for left in [path.clone(), beside(&path, ".next"), beside(&path, ".again")] {
        let _ = fs::remove_file(left);
    }
}

/// Makes each call that acquires the lock, one after the other, on the state that the previous one left.
fn use_all(lock: &NamedLock) {
    let calls: [(&str, &dyn Fn() -> Result<()>); 6] = [
        ("try_read", &|| lock.try_read()?.map_or(Ok(()), |guard| guard.release())),
        ("write_within", &|| lock.write_within(DEADLINE)?.release()),
        ("read_within", &|| lock.read_within(DEADLINE)?.release()),
        ("try_write", &|| lock.try_write()?.map_or(Ok(()), |guard| guard.release())),
        ("mend_within", &|| {
            let mut guard = lock.mend_within(DEADLINE)?;
            let _ = guard.torn();
            guard.clear_torn()?;
            guard.release()
        }),
        ("try_mend", &|| lock.try_mend()?.map_or(Ok(()), |guard| guard.release())),
    ];
    for (name, call) in calls {
        if let Err(error) = timed(name, call) {
            assert!(!matches!(error, Error::Name { .. } | Error::Forked { .. }), "{name}: {error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

fn timed<T>(name: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let outcome = call();
    let took = began.elapsed();
    assert!(took < DEADLINE + SLACK, "{name} took {took:?}");
    outcome
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().expect("a file").to_string_lossy();
    path.with_file_name(format!(".{name}{suffix}"))
}

/// Creates a file like one that was just founded, without the search for removed ones that founding
/// requires.
fn fresh(folder: &Path) -> PathBuf {
    static FOUNDED: OnceLock<Vec<u8>> = OnceLock::new();
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let path = folder.join(format!("{}-{}.lock", std::process::id(), NUMBER.fetch_add(1, Relaxed)));
    let founded = FOUNDED.get_or_init(|| {
        drop(NamedLock::open_path(&path).expect("a lock"));
        let bytes = fs::read(&path).expect("its file");
        fs::remove_file(&path).expect("removed");
        bytes
    });
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
    file.write_all(founded).expect("written");
    path
}

/// Changes a word, several words, or a slot. The index is that of a word of the header, of a slot, of
/// the lock's own words, or of any part; the value is written, added, or that of another word.
fn apply(file: &File, change: &[u8; CHANGE]) {
    let [what, low, high, value @ ..] = *change;
    let (index, value) = (usize::from(u16::from_le_bytes([low, high])), u64::from_le_bytes(value));
    let words = layout::part_bytes() / 8;
    let place = |index: usize| match what & 3 {
        0 => index % 32 * 8,
        // Mostly the first process's slot, which is this one's, or a ghost's.
        1 => layout::slot([1, index / 16 % RANKS, RANKS - 1 - index / 16 % GHOSTS][index % 3]) + index % (SLOT / 8) * 8,
        2 => layout::PARTS + index % words * 8,
        _ => layout::PARTS + index % (words * RANKS) * 8,
    };
    let read = |at: usize| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at as u64).expect("inside the file");
        u64::from_ne_bytes(word)
    };
    let at = place(index);
    let new = match what >> 2 & 7 {
        0 | 1 => value,
        2 => value >> (value & 63),
        3 => read(at).wrapping_add(value),
        4 => read(at) ^ 1 << (value & 63),
        5 => read(place(value as usize % (1 << 16))),
        6 => u64::MAX << (value & 63),
        _ => value & 0xff,
    };
    let run = if what >> 5 == 7 { 16 } else { 1 };
    for at in (at..).step_by(8).take(run).take_while(|at| at + 8 <= layout::file_bytes()) {
        file.write_all_at(&new.to_ne_bytes(), at as u64).expect("inside the file");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_conformance::seeds::replay;

    #[test]
    fn seeds_of_the_fuzz_target_are_withstood() {
        let folder = tempfile::tempdir().expect("a folder");
        replay(env!("CARGO_MANIFEST_DIR"), "lock_file", |bytes| lock_file(folder.path(), bytes));
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "files are left");
    }
}
