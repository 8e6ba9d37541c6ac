//! The ranks' standard error, line by line, with the rank in front.

use rustix::{
    fs::{OFlags, fcntl_setfl},
    io::{Errno, read},
};
use std::{
    io::Write,
    os::fd::{AsFd, BorrowedFd},
    process::ChildStderr,
};

/// A longer line is shown in pieces.
const LONGEST_LINE: usize = 64 << 10;

/// Bytes of one rank before the others get their turn.
const AT_ONCE: usize = 256 << 10;

/// One rank's stream.
#[derive(Debug)]
pub(super) struct Relay {
    prefix: String,
    pipe: ChildStderr,
    /// What has come of the line that is not complete yet.
    line: Vec<u8>,
}

impl Relay {
    pub(super) fn new(rank: usize, pipe: ChildStderr) -> Result<Self, Errno> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Relay { prefix: format!("[rank {rank}] "), pipe, line: Vec::new() })
    }

    /// Pass on what there is, but no more than [`AT_ONCE`]. False at the end of the stream.
    pub(super) fn pump(&mut self, out: &mut impl Write) -> bool {
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

    /// Show the last line even if it was never ended.
    pub(super) fn finish(&mut self, out: &mut impl Write) {
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
        // If nobody listens any more, the ranks still run.
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
    use std::process::{Command, Stdio};

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
}
