//! Commands that are posted together again and again, and the reports expected of them.

use super::{Command, Inline, Posting};

/// Where a command of a program carries the number of the repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberIn {
    /// Its low 8 bits in [`Posting::edata`].
    Edata,
    /// In the bytes of a [`Command::PutInline`], as [`Inline::word`].
    Word,
    /// In both.
    EdataAndWord,
}

impl NumberIn {
    /// Returns whether [`Posting::edata`] carries it.
    #[must_use]
    pub fn edata(self) -> bool {
        self != NumberIn::Word
    }

    /// Returns whether the bytes of the command carry it.
    #[must_use]
    pub fn word(self) -> bool {
        self != NumberIn::Edata
    }
}

/// A command of a program: the same in each repetition, except for the repetition's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramCommand {
    /// The command of some repetition.
    pub posting: Posting,
    /// Where it carries the number.
    pub number: NumberIn,
}

impl ProgramCommand {
    /// Returns the command of repetition `number`.
    #[must_use]
    pub fn posting(&self, number: u64) -> Posting {
        let mut posting = self.posting;
        if self.number.edata() {
            posting.edata = number as u8;
        }
        if self.number.word()
            && let Command::PutInline { bytes, .. } = &mut posting.command
        {
            *bytes = Inline::word(number);
        }
        posting
    }
}

/// The reports that a queue is expected to receive: notices of peers' puts that all carry the same
/// number, and completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedReports {
    /// The [`Posting::edata`] of all of the notices.
    pub edata: u8,
    /// The number of notices that have not been taken yet.
    pub notices: u32,
    /// The number of completions that have not been taken yet.
    pub completions: u32,
}

impl ExpectedReports {
    /// Returns whether all have been taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.notices == 0 && self.completions == 0
    }
}
