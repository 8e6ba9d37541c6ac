//! The test programs, compiled and run if the tools that they need are installed.

use process_tests::{
    child::Child,
    programs::{NATIVE_LIBRARIES, is_installed, libraries},
};
use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// Ten times the duration of the slowest program.
const HANG: Duration = Duration::from_secs(30);
fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Makes a directory that only its user can access, like the system's directory for run-time files.
fn folder() -> TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().expect("a folder")
}

/// Compiles a program into a directory.
fn compiled(source: &str, folder: &TempDir, with_static: bool) -> PathBuf {
    let program = folder.path().join("program");
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    command.arg("-I").arg(package().join("include")).arg(package().join(source));
    if with_static {
        command.arg(libraries().join("libonesided_lock.a")).args(NATIVE_LIBRARIES);
    } else {
        command.arg("-L").arg(libraries()).arg("-lonesided_lock");
        command.arg(format!("-Wl,-rpath,{}", libraries().display())).arg("-lpthread");
    }
    let output = command.output().expect("the compiler is there");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program, which must succeed, and returns its output.
fn output(mut command: Command, folder: &TempDir) -> String {
    // Cargo's library path contains libraries that `cargo build` may have left behind.
    command.env_remove("LD_LIBRARY_PATH").env("ONESIDED_LOCK_DIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = Child::start(command).end_within(HANG);
    assert!(ended.status.success(), "{ended}");
    ended.out
}

/// Returns the command that runs a program with the path of its lock.
fn locking(program: PathBuf, folder: &TempDir) -> Command {
    let mut command = Command::new(program);
    command.arg(folder.path().join("lock"));
    command
}

fn python(script: &Path, folder: &TempDir) -> Command {
    let mut command = Command::new("python3");
    command.arg(script).env("PYTHONPATH", package().join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("ONESIDED_LOCK_LIBRARY", libraries().join("libonesided_lock.so")).current_dir(folder.path());
    command
}

/// Returns the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(package().join("include/onesided_lock.h")).expect("there");
    let lines = header.lines().filter(|line| line.starts_with("int ") || line.starts_with("const char *"));
    lines.filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back().map(str::to_owned)).collect()
}

pub(crate) fn all_names_and_no_others_are_exported() {
    if !is_installed("nm") {
        return;
    }
    let library = libraries().join("libonesided_lock.so");
    let listed = Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library).output();
    let listed = String::from_utf8(listed.expect("nm is there").stdout).expect("names");
    let exported: BTreeSet<String> =
        listed.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
    assert_eq!(exported.len(), 10);
}

pub(crate) fn codes_are_those_of_the_header() {
    let (header, codes) = (package().join("include/onesided_lock.h"), package().join("src/codes.rs"));
    let letters = |text: &str| text.to_lowercase().replace('_', "");
    let header = fs::read_to_string(header).expect("there");
    let of_header = header.lines().filter_map(|line| line.trim().strip_prefix("ONESIDED_LOCK_"));
    let of_header: BTreeSet<_> = of_header
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, rest)| (letters(name), rest.split([',', ' ']).next().unwrap_or_default().to_owned()))
        .collect();
    let codes = fs::read_to_string(codes).expect("there");
    let of_code = codes.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "));
    let of_code: BTreeSet<_> = of_code.map(|(name, number)| (letters(name), number.to_owned())).collect();
    assert_eq!(of_header, of_code);
    assert_eq!(of_code.len(), 16);
}

fn mistakes(with_static: bool) {
    if is_installed("cc") {
        let folder = folder();
        let program = compiled("tests/programs/errors.c", &folder, with_static);
        output(locking(program, &folder), &folder);
    }
}

pub(crate) fn every_error_has_its_code() {
    mistakes(false);
}

pub(crate) fn the_static_library_behaves_alike() {
    mistakes(true);
}

/// Runs a program without standard descriptors, whose `printf` must not write to a lock's file.
pub(crate) fn closed_standard_descriptors_stay_closed() {
    if is_installed("cc") {
        let folder = folder();
        let program = compiled("tests/programs/descriptors.c", &folder, false);
        output(locking(program, &folder), &folder);
    }
}

pub(crate) fn the_python_module_keeps_its_promises() {
    if is_installed("python3") {
        let folder = folder();
        let script = package().join("tests/programs/check.py");
        let mut command = python(&script, &folder);
        command.arg(folder.path().join("lock"));
        output(command, &folder);
    }
}

fn tells(out: &str) {
    for part in ["holds the lock and writes", "told: what ", "left 50 + 40", "mended, and gone on: 55 + 45"] {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
}

pub(crate) fn the_example_in_c_runs() {
    if is_installed("cc") {
        let folder = folder();
        let program = compiled("../../examples/c/named_lock.c", &folder, false);
        tells(&output(Command::new(program), &folder));
    }
}

pub(crate) fn the_example_in_python_runs() {
    if is_installed("python3") {
        let folder = folder();
        tells(&output(python(&package().join("../../examples/python/named_lock.py"), &folder), &folder));
    }
}
