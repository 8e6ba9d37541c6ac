//! The roles of the processes in the cases.

use crate::{garbage, probes};
use named_lock::{Error, NamedLock, WriteGuard};
use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

/// Plays a role to its end.
pub(crate) fn play(role: &str, path: &Path, args: &[String]) -> ExitCode {
    // Ending a case leaves no process behind.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let number = |index: usize| args.get(index).map_or(0, |text| text.parse().expect("a number"));
    match role {
        // Hold the lock until signalled to end, or killed.
        "write" => hold(&NamedLock::open_path(path).expect("opened").write().expect("held")),
        "read" => hold(&NamedLock::open_path(path).expect("opened").read().expect("held")),
        "mend" => hold(&NamedLock::open_path(path).expect("opened").mend().expect("held")),
        // Wait for a lock that another process holds.
        "wait-to-write" => {
            let lock = NamedLock::open_path(path).expect("opened");
            print("waits");
            match lock.write() {
                Ok(guard) => hold(&guard),
                Err(error) => print(&error.to_string()),
            }
        }
        "stay" => {
            let lock = NamedLock::open_path(path).expect("opened");
            hold(&lock);
        }
        // Hold it after a signal.
        "write-later" => {
            let lock = NamedLock::open_path(path).expect("opened");
            print("opened");
            await_input();
            hold(&lock.write().expect("held"));
        }
        // Open a lock by its name instead of a path, and print its path.
        "name" => match path.to_str().map(NamedLock::open).expect("UTF-8") {
            Ok(lock) => print(&lock.path().display().to_string()),
            Err(error) => print(&error.to_string()),
        },
        // Add to the number in the file next to the lock.
        "count" => count(path, number(0)),
        "read-and-write" => read_and_write(path, number(0)),
        // Open the lock, take it once, and end.
        "visit" => visit(path, args),
        // Write for ever, and report each write.
        "write-repeatedly" => write_repeatedly(path),
        // Open a lock by a relative path, change the directory, and hold the lock.
        "relative" => {
            env::set_current_dir(path.parent().expect("a folder")).expect("entered");
            let lock = NamedLock::open_path(path.file_name().expect("a name")).expect("opened");
            env::set_current_dir("/").expect("entered");
            print(&lock.path().display().to_string());
            await_input();
            hold(&lock.write().expect("held"));
        }
        "without-pidfds" => probes::wait_without_pidfds(path, &args[0]),
        "without-descriptors" => probes::wait_without_descriptors(path),
        "open-with-two-descriptors" => probes::open_with_two_descriptors(path),
        "fuzz" => return garbage::fuzz(number(0)..number(1)),
        other => panic!("there is no role {other}"),
    }
    ExitCode::SUCCESS
}

/// Prints a line.
pub(crate) fn print(text: &str) {
    println!("{text}");
    io::stdout().flush().expect("standard output is open");
}

/// Waits for a line of the standard input.
pub(crate) fn await_input() {
    let mut line = String::new();
    assert!(io::stdin().read_line(&mut line).expect("standard input is open") > 0, "it has ended");
}

fn hold<T>(_held: &T) {
    print("holds");
    await_input();
}

fn data(path: &Path) -> std::path::PathBuf {
    path.with_file_name("data")
}

fn add_one(path: &Path) {
    let data = data(path);
    let number: u64 = fs::read_to_string(&data).expect("there").trim().parse().expect("a number");
    fs::write(&data, (number + 1).to_string()).expect("written");
}

fn count(path: &Path, turns: u64) {
    let lock = NamedLock::open_path(path).expect("opened");
    for _ in 0..turns {
        let guard = lock.write().expect("held");
        add_one(path);
        guard.release().expect("released");
    }
}

/// Readers find the file as a writer left it: two equal lines.
fn read_and_write(path: &Path, turns: u64) {
    let lock = NamedLock::open_path(path).expect("opened");
    let data = data(path);
    for turn in 0..turns {
        if turn % 4 == 0 {
            let guard = lock.write().expect("held");
            let line = format!("{} {turn}\n", std::process::id());
            fs::write(&data, &line).expect("written");
            thread::yield_now();
            fs::OpenOptions::new()
                .append(true)
                .open(&data)
                .and_then(|mut file| file.write_all(line.as_bytes()))
                .expect("written");
            guard.release().expect("released");
        } else {
            let guard = lock.read().expect("held");
            let text = fs::read_to_string(&data).expect("there");
            let lines: Vec<&str> = text.lines().collect();
            assert!(matches!(lines[..], [one, two] if one == two), "half-written: {text:?}");
            guard.release().expect("released");
        }
    }
}

fn visit(path: &Path, args: &[String]) {
    let lock = NamedLock::open_path(path).expect("opened");
    match args.first().map(String::as_str) {
        Some("read") => lock.read().expect("held").release().expect("released"),
        Some("nothing") => {}
        // Ends without closing anything.
        Some("abandon") => {
            lock.write().expect("held").release().expect("released");
            std::process::exit(0);
        }
        _ => {
            let guard = lock.write().expect("held");
            add_one(path);
            guard.release().expect("released");
        }
    }
}

fn write_repeatedly(path: &Path) {
    let lock = NamedLock::open_path(path).expect("opened");
    print("writes");
    loop {
        let mut guard = match lock.write() {
            Err(Error::Torn { .. }) => mended(&lock),
            guard => guard.expect("held"),
        };
        thread::sleep(Duration::from_micros(300));
        guard.clear_torn().expect("cleared");
        guard.release().expect("released");
    }
}

/// Takes a torn lock, and declares the data whole.
pub(crate) fn mended(lock: &NamedLock) -> WriteGuard {
    let mut guard = lock.mend().expect("held");
    guard.clear_torn().expect("cleared");
    guard
}
