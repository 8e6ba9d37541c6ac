//! The test programs, compiled and run if the tools that they need are installed.

use process_tests::programs::{Compilation, Linkage, ended_within, exported_names, is_installed, libraries};
use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
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

/// Compiles a program into a directory; `None` without a compiler.
fn compiled(source: &str, folder: &TempDir, linkage: Linkage) -> Option<PathBuf> {
    let mut compilation = Compilation::new(package(), &[source], folder.path())?;
    Some(compilation.link("onesided_lock", linkage).args(["-lpthread"]).compile())
}

/// Runs a program, which must succeed, and returns its output.
fn output(mut command: Command, folder: &TempDir) -> String {
    command.env("ONESIDED_LOCK_DIR", folder.path());
    let ended = ended_within(HANG, command);
    assert!(ended.status.success(), "{ended}");
    ended.out
}

fn python(script: &Path, folder: &TempDir) -> Command {
    let mut command = Command::new("python3");
    command.arg(script).env("PYTHONPATH", package().join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command.env("ONESIDED_LOCK_LIBRARY", libraries().join("libonesided_lock.so")).current_dir(folder.path());
    command
}

/// Returns the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(package().join("include/onesided_lock.h")).expect("a file of this package");
    let lines = header.lines().filter(|line| line.starts_with("int ") || line.starts_with("const char *"));
    lines.filter_map(|line| line.split('(').next()?.split([' ', '*']).next_back().map(str::to_owned)).collect()
}

pub(crate) fn all_names_and_no_others_are_exported() {
    let Some(exported) = exported_names("onesided_lock") else { return };
    assert_eq!(exported, declared());
    assert_eq!(exported.len(), 10);
}

pub(crate) fn codes_are_those_of_the_header() {
    let (header, codes) = (package().join("include/onesided_lock.h"), package().join("src/codes.rs"));
    let letters = |text: &str| text.to_lowercase().replace('_', "");
    let header = fs::read_to_string(header).expect("a file of this package");
    let of_header = header.lines().filter_map(|line| line.trim().strip_prefix("ONESIDED_LOCK_"));
    let of_header: BTreeSet<_> = of_header
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, rest)| (letters(name), rest.split([',', ' ']).next().unwrap_or_default().to_owned()))
        .collect();
    let codes = fs::read_to_string(codes).expect("a file of this package");
    let of_code = codes.lines().filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "));
    let of_code: BTreeSet<_> = of_code.map(|(name, number)| (letters(name), number.to_owned())).collect();
    assert_eq!(of_header, of_code);
    assert_eq!(of_code.len(), 16);
}

/// Runs a program that is given the path of its lock.
fn succeeds(source: &str, linkage: Linkage) {
    let folder = folder();
    let Some(program) = compiled(source, &folder, linkage) else { return };
    let mut command = Command::new(program);
    command.arg(folder.path().join("lock"));
    output(command, &folder);
}

pub(crate) fn every_error_has_its_code() {
    succeeds("tests/programs/errors.c", Linkage::Shared);
}

pub(crate) fn the_static_library_behaves_alike() {
    succeeds("tests/programs/errors.c", Linkage::Static);
}

/// Runs a program without standard descriptors, whose `printf` must not write to a lock's file.
pub(crate) fn closed_standard_descriptors_stay_closed() {
    succeeds("tests/programs/descriptors.c", Linkage::Shared);
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

/// Checks that an example has reported a death, and repaired what the dead process left.
fn expect_recovery(out: &str) {
    for part in ["holds the lock and writes", "told: what ", "left 50 + 40", "mended, and gone on: 55 + 45"] {
        assert!(out.contains(part), "{part:?} is not in\n{out}");
    }
}

pub(crate) fn the_example_in_c_runs() {
    let folder = folder();
    let Some(program) = compiled("../../examples/c/named_lock.c", &folder, Linkage::Shared) else { return };
    expect_recovery(&output(Command::new(program), &folder));
}

pub(crate) fn the_example_in_python_runs() {
    if is_installed("python3") {
        let folder = folder();
        expect_recovery(&output(python(&package().join("../../examples/python/named_lock.py"), &folder), &folder));
    }
}
