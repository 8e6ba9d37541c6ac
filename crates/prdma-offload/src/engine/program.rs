//! The commands that fill a session queue for one iteration.
//!
//! # With one neighbour to send to (FAST)
//! ```text
//! READY ... READY | DATA
//! ```
//! The session offset is ahead by the number of READYs, so these are sent immediately. The
//! neighbour's READY releases DATA and the READYs of the *next* iteration, which are posted when
//! that iteration is started.
//!
//! # With several (MRC)
//! ```text
//! READY ... READY | NOP ... NOP | SELF ... SELF | DATA ... DATA
//! ```
//! Each of the n arriving READYs releases one slot: n - 1 NOPs and then, regardless of which
//! neighbour was last, the first SELF. A SELF is a put to its own queue that releases 15 slots;
//! together, the necessary number of SELFs release one another, all DATA, and the READYs of the
//! next iteration.
//!
//! # Credit
//! Let an iteration receive data along r edges and have D slots of data, s SELFs and, with n > 1
//! neighbours, n - 1 NOPs. It has T slots: r + D with one neighbour, where a READY releases T, and
//! r + (n - 1) + s + D with several, where a READY releases 1, and each SELF 15 or, the last one,
//! the remainder. Iteration i (from 1) has slots (i-1)T to iT - 1. A slot may start when the
//! session offset S, which begins at r, is above its number.
//!
//! *Sum.* An iteration brings credit for T slots: T from the one READY, or n from the READYs and
//! s - 1 + D + r from the SELFs. When exactly iterations 1 to i have arrived, S = r + iT: this covers
//! the READYs of iteration i + 1, which leave when they are posted, and nothing else.
//!
//! *A neighbour is at most one iteration ahead.* It posts READY(i+1) after its wait(i), which needs
//! this member's data of iteration i. So when a READY(i+1) arrives anywhere, the data that it
//! follows have left.
//!
//! *One neighbour.* After a READYs S = r + aT. The data of iteration i begin at slot (i-1)T + r, so
//! they leave if and only if a >= i. READY(i+1) may come before this member's start(i+1); its
//! credit stays, S is then r + T above the write pointer, and later commands leave when they are
//! posted.
//!
//! *Several.* Claim: the first SELF of iteration i starts if and only if all n READYs of iterations
//! 1 to i are here.
//! ```text
//!   iteration i                                   iteration i + 1
//!   ... | NOP NOP | SELF SELF | DATA DATA DATA DATA | READY READY READY | NOP NOP | SELF ...
//!                   1           2                   3                   4         5
//! ```
//! 1: released by the n-th READY(i). 2: an early READY(i+1) may replace a SELF's credit here; data
//! of i may leave anyway. 3: the last credit of the SELFs of i. 4: READYs(i+1) release these, one
//! each. 5: released by the n-th READY(i+1).
//!
//! *Safety.* Assume the claim up to i - 1. No READY(i+1) can be here before data of iteration i
//! have left, and these are behind the SELF in the same queue. So until it starts, the credit is
//! that of iterations below i, at most (i-1)T, and the READYs(i). Its slot is (i-1)T + r + n - 1; S
//! is above that only with n of them. An early READY(i) that arrives while SELFs of i - 1 are in
//! flight releases one more slot of iteration i - 1; but its sender has had data of i - 1, so the
//! first SELF of i - 1 has started, and everything behind it may leave. The order of arrivals does
//! not change the final S.
//!
//! *Liveness.* When the READYs are here, the SELF starts; each SELF releases the next one among its
//! 15 slots; together they release all data and the next READYs. A READY needs only its own
//! member's start, so members in a cycle all become ready.
//!
//! *Size of the ring.* S is at most r + T + n above the first slot of an iteration whose end is not
//! reached, and n + r <= T + 1: 2T + 2 slots, rounded up to a power of two, are never passed by
//! credit nor filled. Notices of one iteration are taken before the READYs of the next leave, so
//! 2r + 2 places hold them, and a notice's number, the iteration modulo 256, is unambiguous. The
//! tests check all this on a model.
//!
//! # A separate END
//! With [`EndOfData::Separate`](crate::EndOfData::Separate) a put of the iteration's number into a
//! word of the receiver follows the data of an edge, in strong order, and there is no notice. It is
//! a slot of the data: D includes it. The receiver sends READY(i+1) after it has seen END(i), so the
//! word contains i or i - 1 while it waits for i.
//!
//! # Forwarding
//! A queue that forwards data waits for their arrival as it waits for READYs: n READYs and m
//! arrivals have n + m - 1 NOPs before the SELFs, and the last of them releases these.
//! [`crate::aggregation`] explains why the credit of two iterations does not mix there either.
//!
//! # Source
//! M. Hatanaka et al., MPI persistent neighbourhood collectives over Tofu2 protocol offload, §4.3
//! to §4.5, figures 5 to 8.

use super::data::Data;
use rdma_fabric::control_queue::{Command, Inline, NumberIn, Posting, ProgramCommand, QueueId, Stadd};

/// The maximum number of slots that one put releases.
pub(crate) const MOST_SPS: u64 = 15;

/// READY-TO-RECEIVE for one edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The sender's queue.
    pub(crate) to: QueueId,
    /// The sender's word for it, which receives the iteration's number.
    pub(crate) word: Stadd,
    /// The number of slots of that queue that it releases.
    pub(crate) credit: u8,
}

/// One command of an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandTemplate {
    /// A READY: the posting's word must be the iteration's number.
    Ready { to: QueueId, word: Stadd, credit: u8 },
    /// END, behind its data: as [`CommandTemplate::Fixed`], and the posting's word must be the
    /// iteration's number.
    End(Posting),
    /// The same posting in each iteration, except that its notice carries the iteration modulo 256.
    Fixed(Posting),
    /// One posting in even iterations, the other in odd ones.
    Alternating([Posting; 2]),
}

impl CommandTemplate {
    /// Returns the command of odd or even iterations.
    pub(crate) fn of_parity(&self, is_odd: bool) -> ProgramCommand {
        let (posting, number) = match self {
            CommandTemplate::Ready { to, word, credit } => {
                let command = Command::PutInline { to: *to, bytes: Inline::word(0), at: *word };
                (Posting::new(command).strong_order().sps(*credit), NumberIn::Word)
            }
            CommandTemplate::End(posting) => (*posting, NumberIn::EdataAndWord),
            CommandTemplate::Fixed(posting) => (*posting, NumberIn::Edata),
            CommandTemplate::Alternating(both) => (both[usize::from(is_odd)], NumberIn::Edata),
        };
        ProgramCommand { posting, number }
    }

    /// Returns the command for iteration `k`.
    pub(crate) fn posting(&self, k: u64) -> Posting {
        self.of_parity(k % 2 == 1).posting(k)
    }
}

/// One iteration of a queue.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) commands: Vec<CommandTemplate>,
    /// The number of commands that report their completion, each the last command of its data: when
    /// all have completed, the send memory may be reused.
    pub(crate) completions: u32,
}

/// Properties of a queue that are known before any addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// READYs it sends.
    pub(crate) readies: u64,
    /// Arrivals that it waits for before its data leave: READYs of its outgoing edges, and the data
    /// that it forwards.
    pub(crate) awaited: u64,
    /// Slots of its data.
    pub(crate) data: u64,
    /// Arrivals that end with a notice.
    pub(crate) notices: u64,
}

impl Shape {
    /// The shape of an empty queue.
    pub(crate) const NONE: Shape = Shape { readies: 0, awaited: 0, data: 0, notices: 0 };

    /// Returns whether arrivals release the data directly.
    fn direct(&self) -> bool {
        self.awaited == 1 && self.data + self.readies <= MOST_SPS
    }

    /// Returns the number of slots that each awaited arrival must release.
    pub(crate) fn credit(&self) -> u8 {
        if self.direct() { (self.data + self.readies) as u8 } else { 1 }
    }

    /// Returns the number of SELFs: they release one another, the data and the next READYs, and the
    /// last arrival, which itself releases a single slot, releases the first of them.
    pub(crate) fn selfs(&self) -> u64 {
        match self.data + self.readies {
            0 | 1 => 0,
            _ if self.awaited == 0 || self.direct() => 0,
            slots => (slots - 1).div_ceil(MOST_SPS - 1),
        }
    }

    /// Returns the number of slots of an iteration.
    pub(crate) fn slots(&self) -> u64 {
        let nops = if self.direct() { 0 } else { self.awaited.saturating_sub(1) };
        self.readies + nops + self.selfs() + self.data
    }

    /// Returns the number of slots of a ring for the queue.
    pub(crate) fn depth(&self) -> u64 {
        ring_depth(self.slots())
    }
}

/// Returns the number of slots of a ring, for iterations of this many slots, that is never full and
/// never receives credit a whole ring ahead.
pub(crate) fn ring_depth(slots: u64) -> u64 {
    (2 * slots + 2).next_power_of_two().max(16)
}

/// Returns the program of queue `me`, whose `shape` matches `readies` and `data`. `scratch` is a
/// word of this member's memory on the queue.
pub(crate) fn program(me: QueueId, scratch: Stadd, shape: &Shape, readies: &[Ready], data: &[Data]) -> Program {
    debug_assert_eq!(shape.readies, readies.len() as u64);
    debug_assert_eq!(shape.data, data.iter().map(Data::all_slots).sum::<u64>());
    let mut commands = releases(me, scratch, shape, readies);
    commands.extend(data.iter().flat_map(Data::commands));
    let completes = match commands.last_mut() {
        Some(CommandTemplate::Fixed(posting) | CommandTemplate::End(posting)) => {
            *posting = posting.tcq(0);
            true
        }
        _ => false,
    };
    Program { commands, completions: u32::from(completes) }
}

/// Returns all commands except the data: READYs, and the slots that arriving READYs release before
/// data.
pub(crate) fn releases(me: QueueId, scratch: Stadd, shape: &Shape, readies: &[Ready]) -> Vec<CommandTemplate> {
    let mut commands: Vec<CommandTemplate> = readies
        .iter()
        .map(|ready| CommandTemplate::Ready { to: ready.to, word: ready.word, credit: ready.credit })
        .collect();
    if !shape.direct() {
        commands.extend((1..shape.awaited).map(|_| CommandTemplate::Fixed(Posting::new(Command::Nop))));
        // The total that the SELFs release: each other except the first, the data, the next READYs.
        let mut owed = if shape.selfs() == 0 { 0 } else { shape.selfs() - 1 + shape.data + shape.readies };
        for _ in 0..shape.selfs() {
            let sps = owed.min(MOST_SPS);
            owed -= sps;
            let touch = Command::PutInline { to: me, bytes: Inline::word(0), at: scratch };
            commands.push(CommandTemplate::Fixed(Posting::new(touch).strong_order().sps(sps as u8)));
        }
        debug_assert_eq!(owed, 0, "{shape:?}");
    }
    commands
}
