//! Posting of commands, immediately or as descriptors that were prepared before.

use crate::{
    failure::{Code, Outcome, of_fabric},
    request::{Common, Request},
    settings::KEPT_SLOTS,
    vcq::Vcq,
};
use rdma_fabric::{
    Refused,
    control_queue::{Blocks, Command, Posting},
};
use tofu2_shm::nic;

/// Postings that are passed on at a time.
const CHUNK: usize = 32;

/// A slot of a transmit order queue.
pub(crate) type Slot = [u64; nic::SLOT_BYTES / 8];

#[cold]
fn busy() -> Code {
    Code::BUSY.because("the transmit order queue, or the target's message receive queue, is full")
}

/// Returns the number of notices of own commands that a posting asks for.
fn local_notices(posting: &Posting) -> u64 {
    let is_noticed = posting.local_notice && !matches!(posting.command, Command::Nop);
    if is_noticed { posting.command.commands().into() } else { 0 }
}

impl Vcq {
    /// Posts a command.
    ///
    /// # Errors
    /// [`Code::BUSY`] if there is no room, and the codes of wrong arguments.
    #[inline]
    pub(crate) fn post_request(
        &mut self,
        call: &'static str,
        common: &Common,
        request: &Request,
        cb: u64,
    ) -> Outcome<()> {
        let mut posting = self.request(common, request)?;
        posting.tag = cb;
        self.post(call, &posting)
    }

    /// Posts a command.
    ///
    /// # Errors
    /// As [`Vcq::post_request`].
    #[inline]
    pub(crate) fn post(&mut self, call: &'static str, posting: &Posting) -> Outcome<()> {
        let commands = u64::from(posting.command.commands());
        if posting.tcq_notice && self.unread_tcq + commands > self.room() {
            return Err(busy());
        }
        if self.checks.is_some() {
            self.check_before(call, posting);
        }
        let (_, posted) = self.queue.try_post(core::slice::from_ref(posting));
        match posted {
            Ok(()) => {}
            Err(Refused::Full(())) => return Err(busy()),
            Err(Refused::Failed(error, ())) => return Err(of_fabric(&error)),
        }
        self.count(posting);
        if self.checks.is_some() {
            self.check_after(call, posting);
        }
        Ok(())
    }

    /// The number of commands that can be unfinished.
    #[inline]
    fn room(&self) -> u64 {
        u64::from(self.job.settings.toq) - KEPT_SLOTS
    }

    #[inline]
    fn count(&mut self, posting: &Posting) {
        if posting.tcq_notice {
            self.unread_tcq += u64::from(posting.command.commands());
        }
        self.unread_mrq += local_notices(posting);
    }

    /// Posts all commands of prepared descriptors, or none.
    ///
    /// # Errors
    /// [`Code::INVALID_DESC`], [`Code::BUSY`].
    pub(crate) fn post_slots(&mut self, call: &'static str, slots: &[Slot], cb: u64) -> Outcome<()> {
        let (mut noticed, mut count) = (0, 0u64);
        for posting in Postings(slots) {
            let posting = posting?;
            noticed += u64::from(posting.tcq_notice);
            count += 1;
        }
        if count == 0 {
            return Err(Code::INVALID_DESC.because("there is no descriptor"));
        }
        let pointers = self.queue.pointers();
        let waiting = pointers.write.saturating_sub(pointers.read);
        if self.unread_tcq + noticed > self.room() || waiting + slots.len() as u64 > self.room() {
            return Err(busy());
        }
        let mut postings = Postings(slots).map_while(Result::ok);
        let mut posted_any = false;
        loop {
            let mut chunk = [Posting::new(Command::Nop); CHUNK];
            let mut len = 0;
            for (place, posting) in chunk.iter_mut().zip(&mut postings) {
                *place = Posting { tag: cb, ..posting };
                len += 1;
            }
            let Some(chunk) = chunk.get(..len).filter(|chunk| !chunk.is_empty()) else { return Ok(()) };
            self.post_chunk(call, chunk, &mut posted_any)?;
        }
    }

    /// Posts several commands. Once one was posted, the others wait for room: the program cannot post
    /// a part again.
    fn post_chunk(&mut self, call: &'static str, chunk: &[Posting], posted_any: &mut bool) -> Outcome<()> {
        if self.checks.is_some() {
            chunk.iter().for_each(|posting| self.check_before(call, posting));
        }
        let mut rest = chunk;
        while !rest.is_empty() {
            let (posted, refused) = self.queue.try_post(rest);
            let (done, others) = rest.split_at(posted.min(rest.len()));
            for posting in done {
                self.count(posting);
                if self.checks.is_some() {
                    self.check_after(call, posting);
                }
            }
            *posted_any |= posted > 0;
            rest = others;
            match refused {
                Ok(()) => return Ok(()),
                Err(Refused::Full(())) if *posted_any => {
                    if let Some(rank) = self.job.lost() {
                        return Err(Code::MRQ_PEER.because(format_args!("{rank} was lost")));
                    }
                    std::thread::yield_now();
                }
                Err(Refused::Full(())) => return Err(busy()),
                Err(Refused::Failed(error, ())) => return Err(of_fabric(&error)),
            }
        }
        Ok(())
    }
}

/// The postings that slots encode.
struct Postings<'a>(&'a [Slot]);

impl Iterator for Postings<'_> {
    type Item = Outcome<Posting>;

    fn next(&mut self) -> Option<Self::Item> {
        let (first, rest) = self.0.split_first()?;
        let wrong = || Code::INVALID_DESC.because("it holds something that no prepare function wrote");
        let (second, rest) = match nic::slots(first) {
            Some(2) => match rest.split_first() {
                Some((second, rest)) => (Some(*second), rest),
                None => return Some(Err(wrong())),
            },
            _ => (None, rest),
        };
        self.0 = rest;
        Some(nic::decode(*first, second).ok_or_else(wrong))
    }
}

/// Calls `put` with each slot of a command, one command for each block, in order. Returns the number
/// of bytes.
pub(crate) fn prepare(posting: &Posting, mut put: impl FnMut(usize, Slot)) -> usize {
    let (count, stride) = match posting.command {
        Command::Put { blocks, .. } | Command::Get { blocks, .. } => (blocks.count, blocks.stride),
        _ => (1, 0),
    };
    let mut at = 0;
    for block in 0..u64::from(count) {
        let mut one = *posting;
        if let Command::Put { from, at, blocks, .. } | Command::Get { from, at, blocks, .. } = &mut one.command {
            let ahead = block.saturating_mul(stride);
            (*from, *at, *blocks) = (*from + ahead, *at + ahead, Blocks::ONE);
        }
        let (first, second) = nic::encode(&one);
        for slot in [Some(first), second].into_iter().flatten() {
            put(at, slot);
            at += 1;
        }
    }
    at * nic::SLOT_BYTES
}
