//! PMI-1: lines of text over a descriptor that the launcher left open.
//!
//! A request is `cmd=NAME` and further `KEY=VALUE` fields, separated by spaces and terminated by a
//! newline; an answer has the same form. Values in the store have no spaces: bytes are written in
//! hexadecimal, in as many parts as the store's limit on values requires. The first part,
//! `COUNTxDIGITS`, is stored under the key itself, part `i` under `KEY.i`.

use crate::{
    inherited::{duplicate, read_line},
    launcher::{Bootstrap, LauncherError},
};
use rustix::{fd::OwnedFd, io::Errno};
use std::{
    collections::HashMap,
    io,
    time::{Duration, Instant},
};

const NAME: &str = "PMI-1";

/// The maximum length of an answer.
const LINE_LIMIT: usize = 64 << 10;

/// The maximum number of parts of a value.
const PART_LIMIT: usize = 4096;

/// The store of a PMI-1 launcher. Dropping it sends `cmd=finalize` to the launcher.
#[derive(Debug)]
pub struct Pmi1 {
    fd: OwnedFd,
    rank: u32,
    ranks: usize,
    within: Duration,
    space: String,
    key_limit: usize,
    value_limit: usize,
    /// The connection to the launcher is usable.
    well: bool,
}

impl Pmi1 {
    /// Opens the connection to the launcher over the descriptor `fd`. Each call has the time limit
    /// `within`.
    pub fn open(rank: u32, ranks: usize, fd: i32, within: Duration) -> Result<Self, LauncherError> {
        let fd = duplicate(fd).map_err(|cause| LauncherError::System { launcher: NAME, call: "PMI_FD", cause })?;
        let space = String::new();
        let mut pmi = Self { fd, rank, ranks, within, space, key_limit: 0, value_limit: 0, well: true };
        pmi.ask("init", "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init")?;
        let maxes = pmi.ask("get_maxes", "cmd=get_maxes\n", "maxes")?;
        (pmi.key_limit, pmi.value_limit) = (maxes.number("keylen_max")?, maxes.number("vallen_max")?);
        // Both limits count a final zero byte; a key has to hold the number of its part.
        if pmi.key_limit < 16 || pmi.value_limit < 16 {
            return Err(maxes.malformed());
        }
        pmi.space = pmi.ask("get_my_kvsname", "cmd=get_my_kvsname\n", "my_kvsname")?.take("kvsname")?;
        Ok(pmi)
    }

    /// Sends a request and returns the answer, which has to be of this kind and to report success.
    fn ask(&mut self, call: &'static str, request: &str, kind: &str) -> Result<Answer, LauncherError> {
        let answer = self.transfer(request).map_err(|cause| {
            self.well = false;
            match cause.kind() {
                io::ErrorKind::TimedOut => LauncherError::Silent { launcher: NAME, call, within: self.within },
                _ => LauncherError::System { launcher: NAME, call, cause },
            }
        })?;
        let answer = Answer::read(call, answer);
        match (answer.fields.get("cmd"), answer.fields.get("rc").map(String::as_str)) {
            (Some(cmd), Some("0") | None) if cmd == kind => Ok(answer),
            (Some(cmd), Some(_)) if cmd == kind => {
                Err(LauncherError::Refused { launcher: NAME, call, answer: answer.text })
            }
            _ => Err(answer.malformed()),
        }
    }

    fn transfer(&self, request: &str) -> io::Result<String> {
        let mut bytes = request.as_bytes();
        let until = Instant::now() + self.within;
        while !bytes.is_empty() {
            match rustix::io::write(&self.fd, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        let line = read_line(&self.fd, LINE_LIMIT, until.saturating_duration_since(Instant::now()))?;
        if line.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
    }

    fn put_part(&mut self, key: &str, value: &str) -> Result<(), LauncherError> {
        let request = format!("cmd=put kvsname={} key={key} value={value}\n", self.space);
        self.ask("put", &request, "put_result").map(drop)
    }

    fn get_part(&mut self, key: &str) -> Result<Answer, LauncherError> {
        self.ask("get", &format!("cmd=get kvsname={} key={key}\n", self.space), "get_result")
    }
}

impl Bootstrap for Pmi1 {
    fn launcher(&self) -> &'static str {
        NAME
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), LauncherError> {
        let text: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        // Leaves space for the number of parts and the `x`.
        let size = self.value_limit - 8;
        let parts: Vec<&str> = if text.is_empty() {
            vec![""]
        } else {
            text.as_bytes().chunks(size).map(|part| std::str::from_utf8(part).unwrap_or_default()).collect()
        };
        if parts.len() > PART_LIMIT {
            let limit = size * PART_LIMIT / 2;
            return Err(LauncherError::TooLong { launcher: NAME, what: "value", size: value.len(), limit });
        }
        let (longest, limit) = (key.len() + 6, self.key_limit);
        if longest >= limit {
            return Err(LauncherError::TooLong { launcher: NAME, what: "key", size: longest, limit: limit - 1 });
        }
        self.put_part(key, &format!("{}x{}", parts.len(), parts[0]))?;
        for (index, part) in parts.iter().enumerate().skip(1) {
            self.put_part(&format!("{key}.{index}"), part)?;
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), LauncherError> {
        self.ask("barrier_in", "cmd=barrier_in\n", "barrier_out").map(drop)
    }

    /// All ranks share one space, so `of` makes no difference.
    fn get(&mut self, _of: u32, key: &str) -> Result<Vec<u8>, LauncherError> {
        let first = self.get_part(key)?;
        let value = first.take("value")?;
        let (count, head) = parts_of(&value).ok_or_else(|| first.malformed())?;
        let mut text = head.to_owned();
        for index in 1..count {
            text.push_str(&self.get_part(&format!("{key}.{index}"))?.take("value")?);
        }
        bytes_of(&text).ok_or_else(|| first.malformed())
    }
}

impl Drop for Pmi1 {
    fn drop(&mut self) {
        if self.well {
            self.within = self.within.min(Duration::from_secs(2));
            let _ = self.ask("finalize", "cmd=finalize\n", "finalize_ack");
        }
    }
}

/// Parses hexadecimal digits.
pub(crate) fn bytes_of(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Parses a line as an answer, and the number and head of a value's parts.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(line: &str) {
    let answer = Answer::read("fuzz", line.to_owned());
    let _ = (answer.number("keylen_max"), answer.take("kvsname"), answer.malformed().to_string());
    if let Ok(value) = answer.take("value")
        && let Some((count, head)) = parts_of(&value)
    {
        assert!(count <= PART_LIMIT && head.len() < value.len());
    }
}

/// Parses the first part of a value: the number of parts, and its digits.
fn parts_of(value: &str) -> Option<(usize, &str)> {
    let (count, head) = value.split_once('x')?;
    let count = count.parse().ok().filter(|count| (1..=PART_LIMIT).contains(count))?;
    Some((count, head))
}

/// A line of the launcher.
struct Answer {
    call: &'static str,
    text: String,
    fields: HashMap<String, String>,
}

impl Answer {
    fn read(call: &'static str, text: String) -> Self {
        let fields = text.split_ascii_whitespace().filter_map(|field| field.split_once('='));
        let fields = fields.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Self { call, text, fields }
    }

    fn take(&self, field: &str) -> Result<String, LauncherError> {
        self.fields.get(field).cloned().ok_or_else(|| self.malformed())
    }

    fn number(&self, field: &str) -> Result<usize, LauncherError> {
        self.take(field)?.parse().map_err(|_| self.malformed())
    }

    fn malformed(&self) -> LauncherError {
        let answer = self.text.chars().take(200).collect();
        LauncherError::Malformed { launcher: NAME, call: self.call, answer }
    }
}
