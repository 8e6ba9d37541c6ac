//! The file of a lock by name.

#![no_main]

use std::{path::PathBuf, sync::LazyLock};

/// Where the files of all inputs are, one at a time.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("onesided-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for lock files");
    folder
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| named_lock::fuzz::lock_file(&FOLDER, bytes));
