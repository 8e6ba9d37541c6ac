//! Programs: commands that a queue posts together again and again.

use super::{ControlQueue, ExpectedReports, Posting, ProgramCommand, QueueId};
use rdma_fabric::{Deps, Result};

/// Commands that are posted together again and again, and that differ only in the number of the
/// repetition. A provider prepares their descriptors once.
#[derive(Clone, Debug)]
pub struct QueueProgram {
    commands: Box<[ProgramCommand]>,
    /// The queue that prepared it, and its number there.
    prepared: Option<(QueueId, usize)>,
}

impl QueueProgram {
    /// Returns the commands.
    pub fn commands(&self) -> &[ProgramCommand] {
        &self.commands
    }
}

impl ControlQueue {
    /// Prepares a program. The queue keeps it until it is closed.
    pub fn prepare(&self, commands: impl Into<Box<[ProgramCommand]>>) -> QueueProgram {
        let commands = commands.into();
        let prepared = self.provider().prepare(&commands).map(|number| (self.id(), number));
        QueueProgram { commands, prepared }
    }

    /// Posts repetition `number` of a program. Returns false if it has posted none of the commands; then
    /// [`ControlQueue::post_program`] posts them.
    #[must_use]
    pub fn try_post_program(&self, program: &QueueProgram, number: u64) -> bool {
        match program.prepared {
            Some((queue, prepared)) if queue == self.id() => self.provider().try_post_program(prepared, number),
            _ => false,
        }
    }

    /// Posts repetition `number` of a program, as [`ControlQueue::post_all`] posts its commands.
    ///
    /// # Errors
    /// As [`ControlQueue::post_all`].
    pub async fn post_program(&self, program: &QueueProgram, number: u64, deps: Deps<'_>) -> Result<()> {
        if self.try_post_program(program, number) {
            return Ok(());
        }
        let postings: Vec<Posting> = program.commands.iter().map(|command| command.posting(number)).collect();
        self.post_all(&postings, deps).await
    }

    /// Takes reports of `expected` that have arrived, and subtracts them; may take fewer than there
    /// are, and takes none where providers do not support it. [`ControlQueue::poll_mrq`] and
    /// [`ControlQueue::poll_tcq`] return the others, and reports that were not expected. If `is_wait`,
    /// the caller waits for the rest: then this may wait for a moment.
    pub fn take_expected(&self, expected: &mut ExpectedReports, is_wait: bool) {
        if !expected.is_empty() {
            self.provider().take_expected(expected, is_wait);
        }
    }
}
