//! Return codes, and the text of a thread's last failure.

use core::{ffi::c_int, fmt};
use rdma_fabric::{FabricError, barrier::GateError, control_queue::QueueError};
use std::cell::RefCell;

/// A return code of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) c_int);

/// The result of a call.
pub(crate) type Outcome<T> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $value:literal,)*) => {
        #[allow(dead_code, reason = "all codes of the interface")]
        impl Code {
            $(pub(crate) const $name: Code = Code($value);)*

            fn name(self) -> &'static str {
                match self {
                    $(Code::$name => stringify!($name),)*
                    _ => "unknown code",
                }
            }
        }
    };
}

codes! {
    NOT_FOUND = -1,
    NOT_COMPLETED = -2,
    NOT_PROCESSED = -3,
    BUSY = -4,
    USED = -5,
    FULL = -6,
    NOT_AVAILABLE = -7,
    NOT_SUPPORTED = -8,
    TCQ_OTHER = -128,
    TCQ_DESC = -129,
    TCQ_MEMORY = -130,
    TCQ_STADD = -131,
    TCQ_LENGTH = -132,
    MRQ_OTHER = -192,
    MRQ_PEER = -193,
    MRQ_LCL_MEMORY = -194,
    MRQ_RMT_MEMORY = -195,
    MRQ_LCL_STADD = -196,
    MRQ_RMT_STADD = -197,
    MRQ_LCL_LENGTH = -198,
    MRQ_RMT_LENGTH = -199,
    BARRIER_OTHER = -256,
    BARRIER_MISMATCH = -257,
    INVALID_ARG = -512,
    INVALID_POINTER = -513,
    INVALID_FLAGS = -514,
    INVALID_COORDS = -515,
    INVALID_PATH = -516,
    INVALID_TNI_ID = -517,
    INVALID_CQ_ID = -518,
    INVALID_BG_ID = -519,
    INVALID_CMP_ID = -520,
    INVALID_VCQ_HDL = -521,
    INVALID_VCQ_ID = -522,
    INVALID_VBG_ID = -523,
    INVALID_PATH_ID = -524,
    INVALID_STADD = -525,
    INVALID_ADDRESS = -526,
    INVALID_SIZE = -527,
    INVALID_STAG = -528,
    INVALID_EDATA = -529,
    INVALID_NUMBER = -530,
    INVALID_OP = -531,
    INVALID_DESC = -532,
    INVALID_DATA = -533,
    OUT_OF_RESOURCE = -640,
    OUT_OF_MEMORY = -641,
    FATAL = -768,
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Code {
    /// Returns this code, and keeps `text` as the reason of the thread's last failure.
    #[cold]
    #[inline(never)]
    pub(crate) fn because(self, text: impl fmt::Display) -> Code {
        // A thread that is ending keeps no text.
        let _ = LAST.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                use fmt::Write as _;
                last.clear();
                let _ = write!(last, "{}: {text}", self.name());
            }
        });
        self
    }
}

/// Calls `f` with the reason of the thread's last failure; empty if there was none.
pub(crate) fn with_last(f: impl FnOnce(&str)) {
    let _ = LAST.try_with(|last| f(&last.borrow()));
}

// ----- codes for the errors of the crates below -----

/// Returns the code for an error that a call of the fabric returned.
pub(crate) fn of_fabric(error: &FabricError) -> Code {
    let code = match error {
        FabricError::OutOfMemory(_) | FabricError::OutOfMachineMemory(_) => Code::OUT_OF_MEMORY,
        FabricError::TooManyRegions { .. } => Code::OUT_OF_RESOURCE,
        FabricError::Queue(error) => of_call(error),
        FabricError::Gate(error) => of_gate(error),
        FabricError::NoSuchRank { .. } => Code::INVALID_VBG_ID,
        _ => Code::FATAL,
    };
    code.because(error)
}

/// Returns the code for an error of a queue that is not one of a command.
fn of_call(error: &QueueError) -> Code {
    match error {
        QueueError::InUse(_) => Code::USED,
        QueueError::NoneFree(_) => Code::FULL,
        QueueError::TagInUse { .. } => Code::INVALID_STAG,
        QueueError::TooManyTags { .. } => Code::OUT_OF_RESOURCE,
        QueueError::NoSuchTag { .. } => Code::INVALID_STADD,
        QueueError::Limit { .. } => Code::INVALID_SIZE,
        _ => Code::FATAL,
    }
}

/// Returns the code for the status of a completion: an error in the poster's memory.
pub(crate) fn of_completion(error: &QueueError) -> Code {
    match error {
        QueueError::NoSuchTag { .. } | QueueError::Stale { .. } => Code::TCQ_STADD,
        QueueError::OutOfBounds { .. } => Code::TCQ_LENGTH,
        QueueError::Misaligned { .. } => Code::TCQ_DESC,
        QueueError::ReadOnly { .. } => Code::TCQ_MEMORY,
        _ => Code::TCQ_OTHER,
    }
}

/// Returns the code for the status of a notice: an error at the target.
pub(crate) fn of_notice(error: &QueueError) -> Code {
    match error {
        QueueError::NoSuchTag { .. } | QueueError::Stale { .. } | QueueError::Misaligned { .. } => Code::MRQ_RMT_STADD,
        QueueError::OutOfBounds { .. } => Code::MRQ_RMT_LENGTH,
        QueueError::ReadOnly { .. } => Code::MRQ_RMT_MEMORY,
        QueueError::NotOpen(_) | QueueError::PeerLost(_) | QueueError::Stopped(_) => Code::MRQ_PEER,
        _ => Code::MRQ_OTHER,
    }
}

/// Returns the code for an error of a barrier gate.
pub(crate) fn of_gate(error: &GateError) -> Code {
    match error {
        GateError::NoGates { .. } => Code::FULL,
        GateError::Mismatch(_) => Code::BARRIER_MISMATCH,
        GateError::Outstanding(_) => Code::BUSY,
        GateError::Idle(_) => Code::NOT_PROCESSED,
        GateError::TooManyValues { .. } | GateError::NoPairs { .. } => Code::INVALID_NUMBER,
        GateError::NoSuchReduction { .. } => Code::INVALID_OP,
        GateError::NotOwn { .. }
        | GateError::NoSuchGate(_)
        | GateError::Freed(_)
        | GateError::NotStart(_)
        | GateError::NotLocal { .. }
        | GateError::PointsElsewhere { .. }
        | GateError::NotSet(_)
        | GateError::Dangling(_) => Code::INVALID_VBG_ID,
        _ => Code::BARRIER_OTHER,
    }
}
