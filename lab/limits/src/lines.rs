//! The use of each line of the bare memory.

/// Not 0 once a rank has given up.
pub const ABANDONED: usize = 0;
/// 1 + number of the case that is being measured.
pub const PROGRESS: usize = 1;
/// Meetings of ranks 0 and 1, a line each.
pub const MET: usize = 2;
/// The turn during which rank 1 is asleep.
pub const ASLEEP: usize = 4;
/// The number of the last completed turn; 4-byte word.
pub const TURN: usize = 5;
/// The number of ranks that have arrived at the assembly.
pub const COME: usize = 6;
/// The number of completed assemblies; 4-byte word.
pub const ASSEMBLED: usize = 7;
/// The ping-pong that classes samples, a line each way.
pub const PING_PONG: usize = 8;
/// The decision of rank 0: repetitions, or whether to continue.
pub const DECISION: usize = 10;
/// Involuntary switches of each of up to 16 ranks in the last sample.
pub const SWITCHED: usize = 16;
/// Picoseconds, or acquisitions, of each of up to 16 ranks in the last sample.
pub const TOOK: usize = 32;
/// The word that a shape of rank 0 accesses.
pub const OWNED: usize = 48;
/// A word that holds 0 between any two operations: queue node of the bare lock, word of the bare
/// compare-and-swap.
pub const ZERO: usize = 49;
/// Tail of the bare queue lock.
pub const QUEUE: usize = 50;
/// The futex mutex; 4-byte word.
pub const MUTEX: usize = 51;
/// Not 0 when a sample of many ranks on few cores has ended.
pub const STOP: usize = 52;
/// Flags there and back, to compare with the fabric's cases.
pub const FLAG: usize = 53;
/// Flags there and back of the machine's cases.
pub const MACHINE_FLAG: usize = 55;
/// One line for both ways.
pub const ONE_LINE_FLAG: usize = 57;
/// Flags there and back inside shapes that alternate between the ranks: those of words, of buffers,
/// and of the machine's cases.
pub const ALTERNATE: [usize; 3] = [58, 60, 62];
/// Words that both ranks write in turn.
pub const DIRTY: usize = 64;
/// The number of those words.
pub const DIRTY_WORDS: usize = 64;
/// A burst's words.
pub const BURST: usize = 128;
/// Tail of the queue lock that parks.
pub const PARKING_TAIL: usize = 140;
/// Nodes of that queue, one for each of up to 16 ranks; both words.
pub const PARKING_NODES: usize = 144;
/// Tails of bare rings of slots, one for each of two ranks.
pub const SLOT_TAIL: usize = 168;
/// The slots of those rings, a burst each.
pub const SLOTS: [usize; 2] = [176, 184];
/// Words of the bare exchange: flags of ready ranks, and flags of delivered data; a line for each
/// of two ranks.
pub const EXCHANGE: [usize; 2] = [200, 204];
/// Words of the bare update of a field's border, like those of the bare exchange.
pub const FIELD: [usize; 2] = [208, 212];
/// The same for 2 × 2 ranks: a line for each of four ranks and each dimension.
pub const FOUR_FIELDS: [usize; 2] = [216, 224];
/// Slots of bare messages, and the words that mark them as free; 64 lines each.
pub const MESSAGES: [usize; 2] = [256, 320];
/// Flags there and back, to compare with messages.
pub const MESSAGE_FLAG: usize = 384;
/// The same for long messages.
pub const LONG_FLAG: usize = 386;
/// The same for messages in parts.
pub const PARTS_FLAG: usize = 390;
/// Flags there and back between posts.
pub const POSTED: [usize; 2] = [388, 389];
/// Flags there and back, to compare with collectives; the number of arrivals at a bare barrier, and
/// the number of completed barriers.
pub const COLLECTIVE: usize = 400;
/// The numbers of which a bare sum is made; a line for each of up to four ranks.
pub const GIVEN: usize = 404;
/// The result of a bare sum.
pub const SUM: usize = 408;
/// The number of times that a rank has read half of the slots of bare broadcasts; a line for each of up to
/// four.
pub const TAKEN: usize = 409;
/// The slots of bare broadcasts.
pub const BROADCAST: usize = 416;
/// The number of those slots.
pub const BROADCASTS: usize = 64;
