//! The arguments of commands, checked and converted to postings.

use crate::{
    caps::{MAX_GAP, MAX_MTU, MAX_PUT_GET},
    failure::{Code, Outcome},
    ids::stadd_from_bits,
    torus,
    vcq::Vcq,
};
use core::ffi::c_int;
use rdma_fabric::{
    Amo,
    control_queue::{Blocks, Command, Inline, Posting, QueueId, Stadd, Width},
};

/// Flags of commands. The others have no effect here: a response is always awaited, memory is
/// coherent, and only the bytes of a put are written.
mod flag {
    pub(super) const STRONG_ORDER: u64 = 1 << 0;
    pub(super) const PACKET_RESPONSE: u64 = 1 << 1;
    pub(super) const REMOTE_MRQ_NOTICE: u64 = 1 << 2;
    pub(super) const PADDING: u64 = 1 << 3;
    pub(super) const CACHE_INJECTION: u64 = 1 << 5;
    pub(super) const DELAY_START: u64 = 1 << 8;
    pub(super) const TCQ_NOTICE: u64 = 1 << 14;
    pub(super) const LOCAL_MRQ_NOTICE: u64 = 1 << 15;
    /// Position of the session offset's advance: 4 bits.
    pub(super) const SPS: u32 = 24;
    /// Position of the path id: 8 bits.
    pub(super) const PATH: u32 = 28;
    pub(super) const ALL: u64 = STRONG_ORDER
        | PACKET_RESPONSE
        | REMOTE_MRQ_NOTICE
        | PADDING
        | CACHE_INJECTION
        | DELAY_START
        | TCQ_NOTICE
        | LOCAL_MRQ_NOTICE
        | 0xf << SPS
        | 0xff << PATH;
}

/// The operation of an atomic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The number of an operation, and its operand.
    Op(c_int, u64),
    /// The expected value, and the new one.
    CompareSwap(u64, u64),
}

/// A command as the program describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Put { local: u64, remote: u64, len: usize, stride: usize, blocks: usize },
    Piggyback { bytes: Inline, remote: u64 },
    Get { local: u64, remote: u64, len: usize, stride: usize, blocks: usize },
    Atomic { remote: u64, width: Width, change: Change },
}

/// The arguments that all commands for a VCQ have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    /// A VCQ id.
    pub(crate) to: u64,
    pub(crate) edata: u64,
    pub(crate) flags: u64,
    /// The largest packet and the gap between packets, if they are given.
    pub(crate) shape: Option<[usize; 2]>,
}

/// Returns the bytes of a piggyback put of a word.
pub(crate) fn word(value: u64, len: usize) -> Outcome<Inline> {
    let bytes = value.to_ne_bytes();
    let Some(bytes) = bytes.get(..len) else {
        return Err(Code::INVALID_SIZE.because(format_args!("{len} bytes are more than 8")));
    };
    Ok(Inline::new(bytes).unwrap_or(Inline::word(value)))
}

#[inline]
fn blocks(len: usize, stride: usize, count: usize) -> Outcome<(u32, Blocks)> {
    if len > MAX_PUT_GET {
        return Err(Code::INVALID_SIZE.because(format_args!("{len} bytes are more than {MAX_PUT_GET}")));
    }
    if count == 1 {
        return Ok((len as u32, Blocks::ONE));
    }
    let fits = count > 0 && (count as u64).saturating_mul(stride as u64) < 1 << Stadd::OFFSET_BITS;
    let Some(count) = u32::try_from(count).ok().filter(|_| fits) else {
        return Err(Code::INVALID_NUMBER.because(format_args!("{count} blocks with a stride of {stride} bytes")));
    };
    Ok((len as u32, Blocks { count, stride: stride as u64 }))
}

fn amo(change: Change) -> Outcome<Amo<u64>> {
    Ok(match change {
        Change::CompareSwap(expected, new) => Amo::CompareSwap { expected, new },
        Change::Op(1, value) => Amo::Swap(value),
        Change::Op(2, value) => Amo::Add(value),
        Change::Op(3, value) => Amo::Xor(value),
        Change::Op(4, value) => Amo::And(value),
        Change::Op(5, value) => Amo::Or(value),
        Change::Op(op, _) => return Err(Code::INVALID_OP.because(format_args!("{op} is not an operation"))),
    })
}

/// Returns a posting of `command` with these flags.
///
/// # Errors
/// [`Code::INVALID_FLAGS`], [`Code::INVALID_PATH_ID`].
#[inline]
pub(crate) fn with_flags(command: Command, flags: u64) -> Outcome<Posting> {
    if flags & !flag::ALL != 0 {
        return Err(Code::INVALID_FLAGS.because(format_args!("{flags:#x} has unknown bits")));
    }
    let path = (flags >> flag::PATH) as u8;
    if path != 0 && torus::path(path).is_none() {
        return Err(Code::INVALID_PATH_ID.because(format_args!("{path} is not a path id")));
    }
    let mut posting = Posting::new(command);
    posting.sps = (flags >> flag::SPS) as u8 & 0xf;
    posting.strong_order = flags & flag::STRONG_ORDER != 0;
    posting.remote_notice = flags & flag::REMOTE_MRQ_NOTICE != 0;
    posting.delay_start = flags & flag::DELAY_START != 0;
    posting.tcq_notice = flags & flag::TCQ_NOTICE != 0;
    posting.local_notice = flags & flag::LOCAL_MRQ_NOTICE != 0;
    posting.path = (path != 0).then_some(path);
    Ok(posting)
}

impl Vcq {
    /// Returns the posting of a command for another VCQ.
    ///
    /// # Errors
    /// The codes of wrong arguments.
    #[inline]
    pub(crate) fn request(&mut self, common: &Common, request: &Request) -> Outcome<Posting> {
        let (to, context) = self.peers.queue(common.to, self.job.ranks)?;
        let command = self.command(to, context, request)?;
        let mut posting = with_flags(command, common.flags)?;
        posting.edata = u8::try_from(common.edata)
            .map_err(|_| Code::INVALID_EDATA.because(format_args!("{} is more than 255", common.edata)))?;
        if let Some([mtu, gap]) = common.shape {
            if mtu > MAX_MTU || gap > MAX_GAP {
                return Err(Code::INVALID_ARG.because(format_args!("MTU {mtu} or gap {gap} is too large")));
            }
            (posting.mtu, posting.gap) = (mtu as u16, gap as u8);
        }
        Ok(posting)
    }

    #[inline]
    fn command(&self, to: QueueId, context: u8, request: &Request) -> Outcome<Command> {
        let own = |bits| stadd_from_bits(bits, self.id.context);
        let theirs = |bits| stadd_from_bits(bits, context);
        Ok(match *request {
            Request::Put { local, remote, len, stride, blocks: count } => {
                let (len, blocks) = blocks(len, stride, count)?;
                Command::Put { to, from: own(local), at: theirs(remote), len, blocks }
            }
            Request::Get { local, remote, len, stride, blocks: count } => {
                let (len, blocks) = blocks(len, stride, count)?;
                Command::Get { to, from: theirs(remote), at: own(local), len, blocks }
            }
            Request::Piggyback { bytes, remote } => Command::PutInline { to, bytes, at: theirs(remote) },
            Request::Atomic { remote, width, change } => {
                Command::Atomic { to, at: theirs(remote), width, amo: amo(change)? }
            }
        })
    }
}
