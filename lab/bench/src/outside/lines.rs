//! The use of each line of the bare memory.

/// Not 0 once a rank has given up.
pub(crate) const ABANDONED: usize = 0;
/// 1 + number of the case that is being measured.
pub(crate) const PROGRESS: usize = 1;
/// Meetings of ranks 0 and 1, a line each.
pub(crate) const MET: usize = 2;
/// The turn during which rank 1 is asleep.
pub(crate) const ASLEEP: usize = 4;
/// The number of the last completed turn; 4-byte word.
pub(crate) const TURN: usize = 5;
/// The number of ranks that have arrived at the assembly.
pub(crate) const COME: usize = 6;
/// The number of completed assemblies; 4-byte word.
pub(crate) const ASSEMBLED: usize = 7;
/// The ping-pong that classes samples, a line each way.
pub(crate) const PING_PONG: usize = 8;
/// The decision of rank 0: repetitions, or whether to continue.
pub(crate) const DECISION: usize = 10;
/// Involuntary switches of each of up to 16 ranks in the last sample.
pub(crate) const SWITCHED: usize = 16;
/// Picoseconds, or acquisitions, of each of up to 16 ranks in the last sample.
pub(crate) const TOOK: usize = 32;
/// The word that a shape of rank 0 accesses.
pub(crate) const OWNED: usize = 48;
/// A word that holds 0 between any two operations: queue node of the bare lock, word of the bare
/// compare-and-swap.
pub(crate) const ZERO: usize = 49;
/// Tail of the bare queue lock.
pub(crate) const QUEUE: usize = 50;
/// The futex mutex; 4-byte word.
pub(crate) const MUTEX: usize = 51;
/// Not 0 when a sample of many ranks on few cores has ended.
pub(crate) const STOP: usize = 52;
/// Flags there and back, to compare with the fabric's cases.
pub(crate) const FLAG: usize = 53;
/// Flags there and back of the machine's cases.
pub(crate) const MACHINE_FLAG: usize = 55;
/// One line for both ways.
pub(crate) const ONE_LINE_FLAG: usize = 57;
/// Flags there and back inside shapes that alternate between the ranks: those of words, of buffers,
/// and of the machine's cases.
pub(crate) const ALTERNATE: [usize; 3] = [58, 60, 62];
/// Words that both ranks write in turn.
pub(crate) const DIRTY: usize = 64;
/// The number of those words.
pub(crate) const DIRTY_WORDS: usize = 64;
/// A burst's words.
pub(crate) const BURST: usize = 128;
/// Tail of the queue lock that parks.
pub(crate) const PARKING_TAIL: usize = 140;
/// Nodes of that queue, one for each of up to 16 ranks; both words.
pub(crate) const PARKING_NODES: usize = 144;
/// Tails of bare rings of slots, one for each of two ranks.
pub(crate) const SLOT_TAIL: usize = 168;
/// The slots of those rings, a burst each.
pub(crate) const SLOTS: [usize; 2] = [176, 184];
/// Words of the bare exchange: flags of ready ranks, and flags of delivered data; a line for each
/// of two ranks.
pub(crate) const EXCHANGE: [usize; 2] = [200, 204];
/// Words of the bare update of a field's border, like those of the bare exchange.
pub(crate) const FIELD: [usize; 2] = [208, 212];
/// The same for 2 × 2 ranks: a line for each of four ranks and each dimension.
pub(crate) const FOUR_FIELDS: [usize; 2] = [216, 224];
/// Slots of bare messages, and the words that mark them as free; 64 lines each.
pub(crate) const MESSAGES: [usize; 2] = [256, 320];
/// Flags there and back, to compare with messages.
pub(crate) const MESSAGE_FLAG: usize = 384;
/// The same for long messages.
pub(crate) const LONG_FLAG: usize = 386;
/// The same for messages in parts.
pub(crate) const PARTS_FLAG: usize = 390;
/// Flags there and back between posts.
pub(crate) const POSTED: [usize; 2] = [388, 389];
/// Flags there and back, to compare with collectives; the number of arrivals at a bare barrier, and
/// the number of completed barriers.
pub(crate) const COLLECTIVE: usize = 400;
