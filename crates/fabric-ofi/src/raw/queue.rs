//! Reading completions.

use super::{Endpoint, Failed, post::before, sys, text, text_of};
use crate::{error::Reply, table::Token};

/// How an operation ended: with the word that was there before, or 0.
pub(crate) type Outcome = Result<u64, Failure>;

/// What a queue said of an operation that failed, and which one it was.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) call: &'static str,
    pub(crate) remote: super::Remote,
    pub(crate) reply: Reply,
}

/// What an endpoint is told that belongs to none of its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The data of a peer's put, whose bytes are here.
    Data(u64),
    /// An error that is no operation's of this endpoint, such as a peer's with a wrong key.
    Fault(Reply),
}

/// Entries that are read at a time.
const BATCH: usize = 16;

impl Endpoint {
    /// Lets the provider work, and notes what is over; returns how many entries there were.
    pub(crate) fn progress(&mut self) -> Result<usize, Failed> {
        let queue = self.queue();
        // SAFETY: zeros are values of the entries.
        let mut entries: [sys::fi_cq_data_entry; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open, and of the format whose entries these are.
        let returned = unsafe { sys::fi_cq_read(queue, entries.as_mut_ptr().cast(), BATCH) };
        if returned == -(sys::FI_EAGAIN as isize) {
            return Ok(0);
        }
        if returned == -(sys::FI_EAVAIL as isize) {
            return self.read_error();
        }
        Failed::check("fi_cq_read", returned as i64)?;
        let read = usize::try_from(returned).unwrap_or(0).min(BATCH);
        for entry in &entries[..read] {
            if entry.flags & u64::from(sys::FI_REMOTE_CQ_DATA) != 0 {
                self.arrivals.push_back(Arrival::Data(entry.data));
            } else {
                self.finish(entry.op_context, None);
            }
        }
        Ok(read)
    }

    fn read_error(&mut self) -> Result<usize, Failed> {
        let queue = self.queue();
        // SAFETY: zeros are values of the entry, and ask for the provider's own buffer of details.
        let mut entry: sys::fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open.
        let returned = unsafe { sys::fi_cq_readerr(queue, &mut entry, 0) };
        if returned == -(sys::FI_EAGAIN as isize) {
            return Ok(0);
        }
        Failed::check("fi_cq_readerr", returned as i64)?;
        let mut buffer = [0; 256];
        // SAFETY: code and details are of the entry that was just read, which is valid until the
        // next reading; the text is copied at once.
        let provider = unsafe {
            let (code, details) = (entry.prov_errno, entry.err_data);
            text(sys::fi_cq_strerror(queue, code, details, buffer.as_mut_ptr(), buffer.len()))
        };
        let provider = provider.filter(|text| !text.is_empty());
        let reply = Reply { code: entry.err, text: text_of(entry.err), provider_code: entry.prov_errno, provider };
        if !self.finish(entry.op_context, Some(&reply)) {
            self.arrivals.push_back(Arrival::Fault(reply));
        }
        Ok(1)
    }

    /// Ends the operation that a context belongs to, if there is one.
    fn finish(&mut self, context: *mut std::ffi::c_void, failed: Option<&Reply>) -> bool {
        if context.is_null() {
            return false;
        }
        let used = self.used();
        let Some(slot) = used.slot(context) else { return false };
        let word = used.words.load(before(slot)).unwrap_or(0);
        used.table.finish(slot, |held| match failed {
            Some(reply) => Err(Failure { call: held.call, remote: held.remote, reply: reply.clone() }),
            None => Ok(if held.brings_a_word() { word } else { 0 }),
        })
    }

    /// Returns how the operation of a token ended, if it is over; nothing if the token is another
    /// endpoint's.
    pub(crate) fn outcome(&self, token: &Token) -> Option<Option<&Outcome>> {
        self.table().knows(token).then(|| self.table().outcome(token))
    }

    /// Takes the oldest of what has arrived.
    pub(crate) fn arrival(&mut self) -> Option<Arrival> {
        self.arrivals.pop_front()
    }
}
