//! The lines of a child's output, read on threads of their own.

use std::{
    io::{BufRead, BufReader, Read},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// The lines of a pipe with the times of their arrival.
pub(super) type Lines = Receiver<(Instant, String)>;

/// Reads the lines of a pipe as they arrive.
pub(super) fn lines(pipe: Option<impl Read + Send + 'static>) -> Lines {
    let (send, lines) = channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                if send.send((Instant::now(), text)).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// Returns the lines that were not read, and whether the pipe is still open when no line has come for `time`:
/// other processes may have it open.
pub(super) fn rest(lines: &Lines, time: Duration) -> (String, bool) {
    let mut text = String::new();
    loop {
        match lines.recv_timeout(time) {
            Ok((_, line)) => text += &line,
            Err(error) => return (text, error == RecvTimeoutError::Timeout),
        }
    }
}
