//! Files that others remove or replace while processes have them open.

use crate::children::{Place, SOON, succeed};
use named_lock::{Error, NamedLock};
use std::{
    fs,
    os::unix::fs::{FileExt, PermissionsExt},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

type Taking = fn(&NamedLock) -> Result<(), Error>;

/// Every way to take a lock, each of which finds the lock free.
const TAKINGS: [(&str, Taking); 9] = [
    ("read", |lock| lock.read()?.release()),
    ("read_within", |lock| lock.read_within(SOON)?.release()),
    ("try_read", |lock| lock.try_read()?.expect("free").release()),
    ("write", |lock| lock.write()?.release()),
    ("write_within", |lock| lock.write_within(SOON)?.release()),
    ("try_write", |lock| lock.try_write()?.expect("free").release()),
    ("mend", |lock| lock.mend()?.release()),
    ("mend_within", |lock| lock.mend_within(SOON)?.release()),
    ("try_mend", |lock| lock.try_mend()?.expect("free").release()),
];

fn is_removed(outcome: Result<(), Error>) -> bool {
    matches!(outcome, Err(Error::Removed { .. }))
}

fn is_replaced(outcome: Result<(), Error>) -> bool {
    matches!(outcome, Err(Error::Replaced { .. }))
}

pub(crate) fn every_acquisition_notices_a_removed_file() {
    for (name, take) in TAKINGS {
        let place = Place::new();
        let (lock, path) = (place.open(), place.path());
        take(&lock).expect("free");
        fs::remove_file(&path).expect("removed");
        assert!(is_removed(take(&lock)), "{name}");
        // The refused acquisition has released the lock.
        assert!(TAKINGS.iter().all(|(_, take)| is_removed(take(&lock))), "after {name}");
        // Another file is another lock: a handle of the first file never enters at the same time.
        let elsewhere = path.with_file_name("elsewhere");
        let other = NamedLock::open_path(&elsewhere).expect("opened");
        fs::rename(&elsewhere, &path).expect("moved");
        drop(other);
        let other = NamedLock::open_path(&path).expect("opened");
        let guard = other.write_within(SOON).expect("its own");
        assert!(is_replaced(take(&lock)), "{name}");
        guard.release().expect("released");
        take(&other).expect("free");
        let error = take(&lock).expect_err("replaced").to_string();
        assert!(error.contains("was replaced") && error.contains("open the lock anew"), "{error}");
    }
}

/// A process that finds no file makes the next one from the file that others still have open.
pub(crate) fn the_next_file_continues_a_removed_one() {
    let place = Place::new();
    let lock = place.open();
    let mut idle = place.start("write-later", &[]);
    idle.expect_line("opened");
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    fs::remove_file(place.path()).expect("removed");
    let path = place.path();
    let opens = thread::spawn(move || NamedLock::open_path(path));
    thread::sleep(Duration::from_millis(400));
    assert!(!opens.is_finished(), "it does not enter while the holder is inside");
    holder.write("\n");
    succeed(holder);
    let other = opens.join().expect("no panic").expect("opened");
    // All are in the same file again.
    let guard = other.write_within(SOON).expect("free");
    assert!(lock.try_read().expect("no error").is_none());
    idle.write("\n");
    assert!(matches!(lock.write_within(Duration::from_millis(30)), Err(Error::TimedOut { .. })));
    guard.release().expect("released");
    idle.expect_line("holds");
    assert!(other.try_write().expect("no error").is_none());
    idle.write("\n");
    succeed(idle);
}

/// The torn state that the removed file records is not lost.
pub(crate) fn torn_data_stay_torn_when_their_file_is_removed() {
    let place = Place::new();
    let lock = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    fs::remove_file(place.path()).expect("removed");
    holder.kill();
    let other = place.open();
    for lock in [&other, &lock] {
        let outcome = lock.write_within(SOON);
        assert!(matches!(outcome, Err(Error::Torn { by, .. }) if by == holder.id()), "{outcome:?}");
    }
}

pub(crate) fn an_open_is_refused_while_a_removed_file_is_held() {
    let place = Place::new();
    let lock = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    fs::remove_file(place.path()).expect("removed");
    assert!(is_removed(NamedLock::open_path(place.path()).map(drop)));
    assert!(!place.path().exists());
    drop(lock);
}

/// Two files of one path are open without a name: the first is idle, the second is held.
pub(crate) fn an_open_respects_the_holder_in_any_removed_file() {
    let place = Place::new();
    let path = place.path();
    let mut idle = place.start("write-later", &[]);
    idle.expect_line("opened");
    let elsewhere = path.with_file_name("elsewhere");
    drop(NamedLock::open_path(&elsewhere).expect("opened"));
    fs::rename(&elsewhere, &path).expect("moved over the first");
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    fs::remove_file(&path).expect("removed");
    let at = path.clone();
    let opens = thread::spawn(move || NamedLock::open_path(at));
    thread::sleep(Duration::from_millis(400));
    assert!(!opens.is_finished() && !path.exists(), "it does not enter while the holder is inside");
    holder.write("\n");
    succeed(holder);
    let lock = opens.join().expect("no panic").expect("opened");
    // Both generations have ended: the idle process uses the new file, too.
    let guard = lock.write_within(SOON).expect("free");
    idle.write("\n");
    thread::sleep(Duration::from_millis(50));
    guard.release().expect("released");
    idle.expect_line("holds");
    assert!(lock.try_write().expect("no error").is_none());
    idle.write("\n");
    succeed(idle);
}

/// A failed search for removed files does not prove that there are none.
pub(crate) fn an_open_that_cannot_search_is_refused() {
    let place = Place::new();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    fs::remove_file(place.path()).expect("removed");
    let mut opener = place.start("open-with-two-descriptors", &[]);
    opener.expect_line("refused");
    succeed(opener);
    assert!(!place.path().exists(), "no file is made while another one is held");
    holder.write("\n");
    succeed(holder);
}

pub(crate) fn files_that_are_moved_or_covered_are_noticed() {
    for (name, take) in TAKINGS {
        let place = Place::new();
        let (lock, path) = (place.open(), place.path());
        take(&lock).expect("free");
        // Its link count stays.
        fs::rename(&path, path.with_file_name("elsewhere")).expect("moved");
        assert!(is_removed(take(&lock)), "{name}, at once");
        fs::rename(path.with_file_name("elsewhere"), &path).expect("moved back");
        take(&lock).expect("free again");
        // Long enough for its change time to be trusted.
        thread::sleep(Duration::from_millis(50));
        take(&lock).expect("free");
        take(&lock).expect("free");
        fs::rename(&path, path.with_file_name("elsewhere")).expect("moved");
        assert!(is_removed(take(&lock)), "{name}, later");
        drop(place.open());
        assert!(is_replaced(take(&lock)), "{name}");
    }
}

/// Moving a directory changes nothing in its files.
pub(crate) fn a_moved_directory_does_not_lead_to_two_locks() {
    for turn in 0..10 {
        let place = Place::new();
        let folder = place.path().with_file_name("locks");
        fs::create_dir(&folder).expect("made");
        let path = folder.join("lock");
        let lock = NamedLock::open_path(&path).expect("opened");
        thread::sleep(Duration::from_millis(3 * turn));
        lock.write().expect("free").release().expect("released");
        fs::rename(&folder, folder.with_file_name("elsewhere")).expect("moved");
        fs::create_dir(&folder).expect("made");
        let other = NamedLock::open_path(&path).expect("opened");
        let guard = other.write_within(SOON).expect("its own");
        assert!(is_replaced(lock.write_within(SOON).map(drop)), "turn {turn}");
        guard.release().expect("released");
    }
}

pub(crate) fn a_waiter_gets_an_error_if_the_file_is_removed() {
    let place = Place::new();
    let lock = place.open();
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    let waits = thread::spawn(move || lock.write_within(SOON).map(drop));
    thread::sleep(Duration::from_millis(30));
    fs::remove_file(place.path()).expect("removed");
    holder.write("\n");
    succeed(holder);
    assert!(is_removed(waits.join().expect("no panic")));
}

pub(crate) fn a_relative_path_is_resolved_once() {
    let place = Place::new();
    let mut child = place.start("relative", &[]);
    child.expect_line(&place.path().display().to_string());
    // The next file is opened while the process is in another directory.
    let file = fs::File::options().write(true).open(place.path()).expect("opened");
    file.write_all_at(&2u64.to_ne_bytes(), 40).expect("written");
    let lock = place.open();
    child.write("\n");
    child.expect_line("holds");
    assert!(lock.try_write().expect("no error").is_none(), "the same lock");
    child.write("\n");
    succeed(child);
    lock.write_within(SOON).expect("free").release().expect("released");
}

/// Cleans a directory as `systemd-tmpfiles` does every day, with an age that all files have
/// reached. Returns false if the program is not installed.
fn clean(folder: &Path) -> bool {
    let config = folder.with_extension("conf");
    fs::write(&config, format!("e {} - - - 0\n", folder.display())).expect("written");
    let ran = Command::new("systemd-tmpfiles").arg("--clean").arg(&config).output();
    fs::remove_file(config).expect("removed");
    ran.is_ok_and(|output| output.status.success())
}

pub(crate) fn cleaners_leave_locks_alone() {
    let place = Place::new();
    // Like `/tmp` and the directory of a user's locks in it.
    let temporary = place.path().with_file_name("temporary");
    let folder = temporary.join("locks");
    fs::create_dir_all(&folder).expect("made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("its user");
    let (path, other) = (folder.join("lock"), folder.join("other"));
    fs::write(&path, "old").expect("written");
    if !clean(&temporary) {
        println!("    SKIPPED: there is no `systemd-tmpfiles`");
        return;
    }
    assert!(!path.exists(), "the cleaner cleans");
    let _ = fs::create_dir(&folder);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("its user");
    let lock = NamedLock::open_path(&path).expect("opened");
    fs::write(&other, "old").expect("written");
    assert!(clean(&temporary));
    assert!(path.exists() && other.exists(), "the directory is locked while a process has a lock in it open");
    drop(lock);
    assert!(clean(&temporary));
    assert!(path.exists() && !other.exists(), "afterwards the file stays, which may record that the data are torn");
}
