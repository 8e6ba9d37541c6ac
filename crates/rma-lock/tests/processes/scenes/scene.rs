//! The list of scenarios.

/// The operation of the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    Read,
    Write,
    TryRead,
    TryWrite,
    /// A try while a writer is inside.
    TryReadInVain,
    TryWriteInVain,
    /// Waiting behind a writer.
    ReadWaits,
    WriteWaits,
    /// Waiting to write behind a reader.
    WriteWaitsForReader,
    /// A deadline that passes before the lock is taken.
    ReadGivesUp,
    WriteGivesUp,
    /// Releasing the lock while a writer and a reader wait.
    HandsOver,
    /// Releasing the lock as a reader while a writer waits.
    LastReaderLeaves,
    Mend,
    Suspect,
    /// A panic while it writes.
    Panics,
    /// Waiting behind a writer that dies: opening a torn epoch.
    OpensAfterWriter,
    /// Waiting behind a reader that dies.
    OpensAfterReader,
    /// Opening an epoch while a live reader is still inside the old one.
    OpensWithReader,
    /// Opening an epoch while a live writer is still inside the old one.
    OpensWithWriter,
    /// Leaving an old epoch, so that the stand-in leaves the next one.
    ReaderStandsIn,
    WriterStandsIn,
}

impl Scene {
    pub(crate) const ALL: [Scene; 22] = [
        Scene::Read,
        Scene::Write,
        Scene::TryRead,
        Scene::TryWrite,
        Scene::TryReadInVain,
        Scene::TryWriteInVain,
        Scene::ReadWaits,
        Scene::WriteWaits,
        Scene::WriteWaitsForReader,
        Scene::ReadGivesUp,
        Scene::WriteGivesUp,
        Scene::HandsOver,
        Scene::LastReaderLeaves,
        Scene::Mend,
        Scene::Suspect,
        Scene::Panics,
        Scene::OpensAfterWriter,
        Scene::OpensAfterReader,
        Scene::OpensWithReader,
        Scene::OpensWithWriter,
        Scene::ReaderStandsIn,
        Scene::WriterStandsIn,
    ];

    pub(crate) fn named(name: &str) -> Self {
        let named = |scene: &Scene| format!("{scene:?}") == name;
        Scene::ALL.into_iter().find(named).unwrap_or_else(|| panic!("{name} is no scene"))
    }

    /// Returns whether another rank dies first.
    pub(crate) fn follows_a_death(self) -> bool {
        use Scene::*;
        matches!(
            self,
            OpensAfterWriter | OpensAfterReader | OpensWithReader | OpensWithWriter | ReaderStandsIn | WriterStandsIn
        )
    }

    pub(crate) fn ranks(self) -> usize {
        if self.follows_a_death() { 4 } else { 3 }
    }
}
