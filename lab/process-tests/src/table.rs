//! Tables that tests measure, for `cargo xtask`.

use std::{env, fs};

/// The variable that names a file for the table.
pub const VARIABLE: &str = "TEST_TABLE";

/// Prints a table, and writes it to the file that [`VARIABLE`] names, if it is set.
///
/// # Panics
/// If the file cannot be written.
pub fn publish(table: &str) {
    println!("{table}");
    if let Some(file) = env::var_os(VARIABLE) {
        fs::write(&file, table).unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    }
}
