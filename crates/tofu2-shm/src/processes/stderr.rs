//! The thread that forwards the ranks' standard error.
//!
//! Writing to the launcher's standard error may block for as long as its reader takes. So the
//! supervising thread, which has to notice deaths and signals in the meantime, must not do it.

use super::memory_file::refused;
use rdma_fabric::FabricError;
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_setfl},
    io::{Errno, read},
};
use std::{
    io::{self, Read as _, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    process::ChildStderr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::Duration,
};

/// How long [`Forwarding::finish`] waits for a reader that reads nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The running thread.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// Carries the last lines; closed when all ranks have ended.
    stop: UnixStream,
    /// Closed when the thread ends.
    done: Receiver<()>,
    /// The number of pieces written.
    progress: Arc<AtomicU64>,
}

impl Forwarding {
    /// Forwards the output of `relays` to this process's standard error until all streams have
    /// ended.
    ///
    /// # Errors
    /// [`FabricError::System`] if no thread can be started.
    pub(crate) fn start(relays: Vec<Relay>) -> Result<Self, FabricError> {
        Self::to(relays, io::stderr())
    }

    fn to(relays: Vec<Relay>, out: impl Write + Send + 'static) -> Result<Self, FabricError> {
        let failed = |call| move |error: io::Error| refused(call)(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
        let (stop, stopped) = UnixStream::pair().map_err(failed(&"socketpair"))?;
        let (alive, done) = channel();
        let progress = Arc::default();
        let out = Counted { out, written: Arc::clone(&progress) };
        thread::Builder::new()
            .name("stderr of ranks".to_owned())
            .spawn(move || {
                // Dropped when the thread ends, for whatever reason, and after the thread's files.
                let _alive = alive;
                let stopped = stopped;
                forward(relays, &stopped, out);
            })
            .map_err(failed(&"pthread_create"))?;
        Ok(Forwarding { stop, done, progress })
    }

    /// Waits until everything, and then `lines`, has been forwarded. All ranks must have ended. If
    /// nothing is read for a second, the rest is left to the thread, which then ends with the
    /// process.
    pub(crate) fn finish(self, lines: Vec<String>) {
        let Forwarding { mut stop, done, progress } = self;
        // Lines that do not fit into the socket are cut off, since nothing reads them.
        if stop.set_nonblocking(true).is_ok() {
            let _ = lines.into_iter().try_for_each(|line| stop.write_all((line + "\n").as_bytes()));
        }
        drop(stop);
        let mut seen = progress.load(Relaxed);
        while done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let now = progress.load(Relaxed);
            if now == std::mem::replace(&mut seen, now) {
                return;
            }
        }
    }
}

/// Forwards lines until all streams have ended, or until `stopped` is readable and the streams'
/// contents at that time have been forwarded; then forwards everything from `stopped`.
fn forward(mut relays: Vec<Relay>, stopped: &UnixStream, mut out: impl Write) {
    while !relays.is_empty() {
        let mut sources = vec![PollFd::new(stopped, PollFlags::IN)];
        sources.extend(relays.iter().map(|relay| PollFd::new(relay, PollFlags::IN)));
        match poll(&mut sources, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // The ranks' output is no longer read, but they still run.
            Err(_) => return,
        }
        let stop = !sources[0].revents().is_empty();
        // A pipe usually holds 64 KiB, less than a relay forwards in one call, so after the last
        // process has ended this empties it.
        relays.retain_mut(|relay| relay.pump(&mut out));
        if stop {
            // A grandchild may hold a pipe open; its later output belongs to no rank.
            relays.iter_mut().for_each(|relay| relay.finish(&mut out));
            break;
        }
    }
    let mut last = Vec::new();
    let _ = (&*stopped).read_to_end(&mut last);
    if !last.is_empty() {
        let _ = out.write_all(&last);
    }
}

/// Counts the written pieces.
struct Counted<W> {
    out: W,
    written: Arc<AtomicU64>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.written.fetch_add(1, Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

// ----- one rank's stream, line by line, prefixed with the rank -----

/// The longest line that is shown in one piece, in bytes.
const LONGEST_LINE: usize = 64 << 10;

/// Bytes forwarded for one rank before the other ranks get a turn.
const AT_ONCE: usize = 256 << 10;

/// One rank's stream.
#[derive(Debug)]
pub(crate) struct Relay {
    prefix: String,
    pipe: ChildStderr,
    /// The part of the current, incomplete line that has arrived.
    line: Vec<u8>,
}

impl Relay {
    pub(crate) fn new(rank: usize, pipe: ChildStderr) -> Result<Self, Errno> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Relay { prefix: format!("[rank {rank}] "), pipe, line: Vec::new() })
    }

    /// Forwards the available output, at most [`AT_ONCE`] bytes. Returns false at the end of the
    /// stream.
    pub(crate) fn pump(&mut self, out: &mut impl Write) -> bool {
        let mut buffer = [0; 8192];
        for _ in 0..AT_ONCE / buffer.len() {
            match read(&self.pipe, &mut buffer[..]) {
                Ok(0) => {
                    self.finish(out);
                    return false;
                }
                Ok(count) => self.take(&buffer[..count], out),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Forwards the last line even if it has no line ending.
    pub(crate) fn finish(&mut self, out: &mut impl Write) {
        if !self.line.is_empty() {
            self.show(out);
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut impl Write) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ended) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            self.line.extend_from_slice(text);
            if ended || self.line.len() >= LONGEST_LINE {
                self.show(out);
            }
        }
    }

    fn show(&mut self, out: &mut impl Write) {
        let mut whole = Vec::with_capacity(self.prefix.len() + self.line.len() + 1);
        whole.extend_from_slice(self.prefix.as_bytes());
        whole.append(&mut self.line);
        whole.push(b'\n');
        // The ranks still run even if their output is no longer read.
        let _ = out.write_all(&whole);
    }
}

impl AsFd for Relay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::{
        process::{Command, Stdio},
        sync::mpsc::Sender,
        time::Instant,
    };

    #[test]
    fn every_line_gets_its_rank() {
        let script = "printf 'one\\n\\ntw' >&2; sleep 0.05; printf 'o\\nthree' >&2";
        let mut child = Command::new("sh").args(["-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        let mut relay = Relay::new(7, child.stderr.take().unwrap()).unwrap();
        let mut out = Vec::new();
        while relay.pump(&mut out) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "[rank 7] one\n[rank 7] \n[rank 7] two\n[rank 7] three\n");
    }

    /// A writer that accepts one piece per message, and everything once all senders are dropped.
    struct Slow(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_takes_nothing_is_not_waited_for_long() {
        let mut child =
            Command::new("sh").args(["-c", "echo one >&2; echo two >&2"]).stderr(Stdio::piped()).spawn().unwrap();
        let relay = Relay::new(0, child.stderr.take().unwrap()).unwrap();
        child.wait().unwrap();
        let ((take, taken), (show, shown)) = (channel(), channel());
        let forwarding = Forwarding::to(vec![relay], Slow(taken, show)).unwrap();
        take.send(()).unwrap();
        let start = Instant::now();
        forwarding.finish(vec!["the last".to_owned()]);
        let took = start.elapsed();
        assert!(took >= PATIENCE && took < 10 * PATIENCE, "{took:?}");
        // Output that `finish` did not wait for still arrives.
        drop(take);
        let lines: Vec<_> = shown.iter().collect();
        assert_eq!(lines, [&b"[rank 0] one\n"[..], b"[rank 0] two\n", b"the last\n"]);
    }
}
