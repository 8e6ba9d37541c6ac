//! Reading completion queues.

use super::{
    Endpoint, Failed,
    call::found,
    endpoint::Noted,
    post::{Brings, Held, Holds},
    sys, text, text_of,
};
use crate::{
    error::Reply,
    event::{Brought, Event, Failure},
};
use std::{fmt, slice};

/// Number of entries that are read at a time.
const BATCH: usize = 16;

/// Entries that were read but not reported yet.
pub(super) struct Batch {
    entries: [sys::fi_cq_data_entry; BATCH],
    next: usize,
    end: usize,
}

impl Default for Batch {
    fn default() -> Self {
        // SAFETY: zeros are values of the entries.
        Self { entries: unsafe { std::mem::zeroed() }, next: 0, end: 0 }
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", self.end - self.next)
    }
}

impl Batch {
    /// Returns whether any entries are left.
    pub(super) fn is_left(&self) -> bool {
        self.next < self.end
    }
}

/// The receiver of events.
type Sink<'a> = &'a mut dyn FnMut(Event<'_>);

impl Endpoint {
    /// Lets the provider make progress, reports completions and arrivals, and returns the number of
    /// entries.
    ///
    /// If the sink panics, the events that it has received are not reported again; the remaining
    /// ones are.
    pub(crate) fn progress(&mut self, sink: Sink<'_>) -> Result<usize, Failed> {
        let mut told = 0;
        while let Some((tag, failure)) = self.refused.pop_front() {
            sink(Event::Complete { tag, outcome: Err(failure) });
            told += 1;
        }
        told += if self.batch.is_left() { self.report(sink) } else { self.read(sink)? };
        if !self.unposted.is_empty() {
            self.post_receives()?;
        }
        Ok(told)
    }

    fn read(&mut self, sink: Sink<'_>) -> Result<usize, Failed> {
        let queue = self.objects.queue();
        // SAFETY: the queue is open, and its format is that of these entries.
        let returned = unsafe { sys::fi_cq_read(queue, self.batch.entries.as_mut_ptr().cast(), BATCH) };
        if returned == -(sys::FI_EAGAIN as isize) {
            return Ok(0);
        }
        if returned == -(sys::FI_EAVAIL as isize) {
            return self.read_error(sink);
        }
        Failed::check("fi_cq_read", returned as i64)?;
        self.batch.next = 0;
        self.batch.end = usize::try_from(returned).unwrap_or(0).min(BATCH);
        Ok(self.report(sink))
    }

    /// Reports the entries that were read.
    fn report(&mut self, sink: Sink<'_>) -> usize {
        let first = self.batch.next;
        while self.batch.is_left() {
            let entry = self.batch.entries[self.batch.next];
            self.batch.next += 1;
            let noted = self.used.noted(entry.op_context);
            let has = |bit: u32| entry.flags & u64::from(bit) != 0;
            if has(sys::FI_REMOTE_CQ_DATA) && (noted.is_none() || has(sys::FI_REMOTE_WRITE)) {
                sink(Event::Data(entry.data));
                continue;
            }
            match noted {
                Some(Noted::Slot(slot)) => self.finish(slot, None, sink),
                Some(Noted::Receive(buffer)) => {
                    self.unposted.push(buffer);
                    let len = entry.len.min(self.used.sizes.message);
                    // SAFETY: the message has arrived, so the buffer is not used until it is posted
                    // again, which is after the event.
                    let bytes = unsafe { slice::from_raw_parts(self.used.bytes_of(Noted::Receive(buffer)), len) };
                    sink(Event::Message(bytes));
                }
                None => {}
            }
        }
        self.batch.end - first
    }

    fn read_error(&mut self, sink: Sink<'_>) -> Result<usize, Failed> {
        let queue = self.objects.queue();
        // SAFETY: zeros are values of the entry, and ask for the provider's own buffer of details.
        let mut entry: sys::fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: the queue is open.
        let returned = unsafe { sys::fi_cq_readerr(queue, &mut entry, 0) };
        if returned == -(sys::FI_EAGAIN as isize) {
            return Ok(0);
        }
        Failed::check("fi_cq_readerr", returned as i64)?;
        let mut buffer = [0; 256];
        // SAFETY: code and details belong to the entry that was just read, which is valid until the
        // next read; the text is copied immediately.
        let provider = unsafe {
            let (code, details) = (entry.prov_errno, entry.err_data);
            text(sys::fi_cq_strerror(queue, code, details, buffer.as_mut_ptr(), buffer.len()))
        };
        let provider = provider.filter(|text| !text.is_empty());
        let reply = Reply { code: entry.err, text: text_of(entry.err), provider_code: entry.prov_errno, provider };
        match self.used.noted(entry.op_context) {
            Some(Noted::Slot(slot)) => self.finish(slot, Some(reply), sink),
            Some(Noted::Receive(buffer)) => {
                self.unposted.push(buffer);
                sink(Event::Fault(reply));
            }
            None => sink(Event::Fault(reply)),
        }
        Ok(1)
    }

    /// Completes the operation in a slot; an error without an operation is a fault.
    fn finish(&mut self, slot: usize, failed: Option<Reply>, sink: Sink<'_>) {
        let Some(Held { call, peer, tag, len, brings, holds }) = self.used.slots.finish(slot) else {
            failed.into_iter().for_each(|reply| sink(Event::Fault(reply)));
            return;
        };
        if let Some(reply) = failed {
            // Its bytes may arrive late, so its buffer is not reused.
            if matches!(holds, Holds::Buffer(_)) {
                self.used.pool.lose(len);
            }
            sink(Event::Complete { tag, outcome: Err(Failure { call, peer, reply }) });
            return;
        }
        let start = match &holds {
            Holds::Slot => self.used.bytes_of(Noted::Slot(slot)),
            Holds::Buffer(buffer) => buffer.as_ptr(),
            Holds::Span(span) => span.as_ptr(),
        };
        self.free(len, holds);
        let brought = match brings {
            Brings::Nothing => Brought::Nothing,
            // SAFETY: the operation has completed, and nothing is posted before the event returns,
            // so the slot's bytes are not in use; nor is the buffer, which belongs to the endpoint
            // as long as it is open.
            Brings::Bytes => Brought::Bytes(unsafe { slice::from_raw_parts(start, len) }),
            // SAFETY: as above; atomics use the bytes of their slot.
            Brings::Word(width) => Brought::Word(unsafe { found(start, width) }),
        };
        sink(Event::Complete { tag, outcome: Ok(brought) });
    }
}
