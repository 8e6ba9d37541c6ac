//! Telling people something.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

/// Write to standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Write to standard error, and a line's end. Nobody can be told if that fails, and nothing else depends on it.
pub(crate) fn say(text: impl Display) {
    // At once, so that lines of several processes stay whole. `eprintln!` would panic.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}
