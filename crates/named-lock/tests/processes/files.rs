//! Files that this crate did not make.

use crate::children::{Place, SOON};
use fastrand::Rng;
use named_lock::{Error, NamedLock};
use process_tests::child::{Child, this_program};
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{FileExt, PermissionsExt, symlink},
    path::Path,
    process::Command,
    time::Duration,
};

fn refused(path: &Path, part: &str) {
    match NamedLock::open_path(path) {
        Err(error @ Error::Foreign { .. }) => assert!(error.to_string().contains(part), "{error}"),
        other => panic!("{other:?}, not {part:?}"),
    }
}

pub(crate) fn foreign_files_are_refused() {
    let place = Place::new();
    let path = place.path();
    drop(place.open());
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o7777, 0o1600);
    let link = path.with_file_name("link");
    symlink(&path, &link).expect("linked");
    refused(&link, "symbolic link");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("its user");
    refused(&path, "0600");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its user");
    let second = path.with_file_name("second");
    fs::hard_link(&path, &second).expect("linked");
    refused(&path, "another name");
    fs::remove_file(second).expect("removed");
    drop(place.open());
    let folder = path.with_file_name("folder");
    fs::create_dir(&folder).expect("made");
    refused(&folder, "no file");
    let pipe = path.with_file_name("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("made");
    refused(&pipe, "no file");
    let text = path.with_file_name("text");
    fs::write(&text, "some notes of the user").expect("written");
    fs::set_permissions(&text, Permissions::from_mode(0o600)).expect("its user");
    refused(&text, "another length");
    assert_eq!(fs::read_to_string(&text).expect("there"), "some notes of the user");
    let truncated = path.with_file_name("truncated");
    fs::copy(&path, &truncated).expect("copied");
    File::options().write(true).open(&truncated).and_then(|file| file.set_len(4096)).expect("truncated");
    refused(&truncated, "another length");
    let nowhere = path.with_file_name("nowhere").join("lock");
    assert!(matches!(NamedLock::open_path(nowhere), Err(Error::System { .. })));
}

pub(crate) fn garbage_is_refused_or_reported() {
    let place = Place::new();
    let path = place.path();
    drop(place.open());
    let len = fs::metadata(&path).expect("there").len() as usize;
    let whole = fs::read(&path).expect("read");
    // Zeros, and random bytes.
    let mut random = Rng::with_seed(0x9e37_79b9_7f4a_7c15);
    let garbage: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
    for bytes in [vec![0; len], garbage.clone()] {
        fs::write(&path, bytes).expect("written");
        refused(&path, "no lock of this version");
    }
    // Garbage after a valid header, in slots or in the lock's words, causes errors or timeouts.
    let mut reported = 0;
    for turn in 0..60 {
        let mut bytes = whole.clone();
        let (from, to) = match turn % 3 {
            0 => (4096, 4096 + 142 * 128),
            1 => (4096 + 142 * 128, len),
            _ => (4096, len),
        };
        for _ in 0..=turn * 20 {
            let at = random.usize(from..to);
            bytes[at] = random.u8(..);
        }
        if turn % 10 == 1 {
            bytes[from..to].copy_from_slice(&garbage[from..to]);
        }
        fs::write(&path, bytes).expect("written");
        let held = NamedLock::open_path(&path).and_then(|lock| {
            lock.write_within(Duration::from_millis(20)).and_then(|guard| guard.release())?;
            lock.read_within(Duration::from_millis(20)).and_then(|guard| guard.release())
        });
        reported += u32::from(held.is_err());
    }
    println!("    {reported} of 60 files with garbage were reported");
    assert!(reported > 0);
    // While it is in use.
    fs::write(&path, &whole).expect("written");
    let lock = place.open();
    let guard = lock.write_within(SOON).expect("held");
    let file = File::options().write(true).open(&path).expect("opened");
    file.write_all_at(&garbage[8192..], 8192).expect("written");
    let _ = guard.release();
    let _ = lock.try_write();
}

/// Opens a lock by its name in a process whose lock directory is `folder`.
fn opened_by_name(folder: &Path, name: &str) -> String {
    let mut command = this_program(["role", "name", name]);
    command.env("ONESIDED_LOCK_DIR", folder);
    Child::start(command).succeed().out.trim_end().to_owned()
}

pub(crate) fn a_name_is_a_file_in_the_users_directory() {
    let place = Place::new();
    let folder = place.path().parent().expect("a folder").to_owned();
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("its user");
    let locks = folder.join("locks");
    assert_eq!(opened_by_name(&locks, "a-name"), locks.join("a-name.lock").display().to_string());
    assert_eq!(fs::metadata(&locks).expect("there").permissions().mode() & 0o7777, 0o700);
    assert!(opened_by_name(&locks, "../a-name").contains("is not the name of a lock"));
    mode(&locks, 0o777);
    assert!(opened_by_name(&locks, "a-name").contains("its mode should be 0700"));
    assert!(opened_by_name(Path::new("locks"), "a-name").contains("not an absolute path"));
}

pub(crate) fn the_default_directory_does_not_depend_on_the_session() {
    let name = format!("onesided-test-{}", std::process::id());
    let user = rustix::process::geteuid().as_raw();
    let expected = format!("/tmp/onesided-locks-{user}/{name}.lock");
    let place = Place::new();
    let folder = place.path().parent().expect("a folder").display().to_string();
    for runtime in [None, Some(folder.as_str()), Some("relative"), Some("")] {
        // Outside of any job: without `ONESIDED_LOCK_DIR`, too.
        let mut command = this_program(["role", "name", &name]);
        command.env_remove("XDG_RUNTIME_DIR").envs(runtime.map(|runtime| ("XDG_RUNTIME_DIR", runtime)));
        assert_eq!(Child::start(command).end().out.trim_end(), expected, "{runtime:?}");
    }
    fs::remove_file(expected).expect("removed");
}

pub(crate) fn a_umask_does_not_change_the_modes() {
    for umask in ["0777", "0277", "0"] {
        let place = Place::new();
        let folder = place.path().with_file_name("locks");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("umask {umask} && exec \"$0\" role name a-name")]);
        command.arg(std::env::current_exe().expect("own path")).env("ONESIDED_LOCK_DIR", &folder);
        let output = command.output().expect("there is a shell");
        assert!(output.status.success(), "{output:?}");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        assert_eq!((mode(&folder), mode(&folder.join("a-name.lock"))), (0o700, 0o1600), "umask {umask}");
    }
}
