//! Threads that pass on the output of ranks.

use super::spawn::spawn;
use std::{
    io::{self, BufRead, BufReader, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Duration,
};

/// How long [`Relay::finish`] waits without progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// A thread that passes on output of a rank.
#[derive(Debug)]
pub(super) struct Relay {
    /// Closed when all output has been passed on.
    done: Receiver<()>,
    /// Number of pieces that have been passed on.
    pieces: Arc<AtomicU64>,
}

impl Relay {
    /// Passes on whole lines, with `prefix` in front of each.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn lines(
        from: impl Read + Send + 'static,
        prefix: String,
        mut to: impl FnMut(Vec<u8>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::start(from, move |from| {
            let mut line = prefix.clone().into_bytes();
            let whole = from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0);
            if whole {
                if line.last() != Some(&b'\n') {
                    line.push(b'\n');
                }
                to(line);
            }
            whole
        })
    }

    /// Passes on bytes as they arrive.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn bytes(
        from: impl Read + Send + 'static,
        mut to: impl FnMut(Vec<u8>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::start(from, move |from| {
            let piece = from.fill_buf().map(<[u8]>::to_vec).unwrap_or_default();
            let more = !piece.is_empty();
            from.consume(piece.len());
            if more {
                to(piece);
            }
            more
        })
    }

    fn start<R: Read + Send + 'static>(
        from: R,
        mut pass: impl FnMut(&mut BufReader<R>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (alive, done) = channel();
        let pieces = Arc::new(AtomicU64::new(0));
        let counted = pieces.clone();
        let work = move || {
            // Dropped when the thread ends, in any case.
            let _alive: std::sync::mpsc::Sender<()> = alive;
            let mut from = BufReader::with_capacity(32 << 10, from);
            while pass(&mut from) {
                counted.fetch_add(1, Relaxed);
            }
        };
        spawn("what a rank writes", work)?;
        Ok(Relay { done, pieces })
    }

    /// Waits until all output has been passed on. After a second without progress, the rest is left
    /// to the thread: a process that the rank started may hold the pipe open.
    pub(super) fn finish(self) {
        let mut seen = self.pieces.load(Relaxed);
        while self.done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let now = self.pieces.load(Relaxed);
            if now == std::mem::replace(&mut seen, now) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn lines_have_a_prefix_and_bytes_have_none() {
        let gathered: Arc<Mutex<Vec<u8>>> = Arc::default();
        let to = || {
            let gathered = gathered.clone();
            move |piece: Vec<u8>| gathered.lock().unwrap().extend(piece)
        };
        Relay::lines(&b"one\n\ntwo"[..], "[3] ".into(), to()).unwrap().finish();
        Relay::bytes(&b"one\ntwo"[..], to()).unwrap().finish();
        assert_eq!(*gathered.lock().unwrap(), b"[3] one\n[3] \n[3] two\none\ntwo");
    }

    #[test]
    fn a_pipe_that_stays_open_is_left() {
        let (reader, _writer) = std::io::pipe().unwrap();
        Relay::bytes(reader, drop).unwrap().finish();
    }
}
