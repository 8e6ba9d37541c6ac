//! Files that bring the records of ranks that are processes to their launcher.
//!
//! The launcher creates a directory that only its user can read and passes its path in
//! [`RECORDS_VARIABLE`]; each rank writes its record there when its program has ended. A record
//! appears under its name only once it is complete, so a rank killed while writing leaves none.

use crate::{
    error::{ObserveError, file},
    gathering::{Detail, Gathering},
    observation::Observation,
    recorder::{RankRecord, Recorder},
};
use rdma_fabric::Rank;
use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The environment variable that configures the records of a rank's process, and their directory:
/// `stats:DIRECTORY` or `trace:DIRECTORY`.
pub const RECORDS_VARIABLE: &str = "ONESIDED_OBSERVE";

/// A launcher's directory for the records of its ranks. Dropping it removes the directory.
#[derive(Debug)]
pub struct RecordDirectory {
    directory: TempDir,
    detail: Detail,
}

impl RecordDirectory {
    /// Creates an empty directory in the system's directory for temporary files.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn create(detail: Detail) -> Result<Self, ObserveError> {
        let made = tempfile::Builder::new().prefix("onesided-observe-").tempdir();
        Ok(RecordDirectory { directory: made.map_err(file(&std::env::temp_dir(), "used for records"))?, detail })
    }

    /// Returns the value of [`RECORDS_VARIABLE`] for the ranks.
    pub fn variable(&self) -> OsString {
        let mut value = OsString::from(match self.detail {
            Detail::Stats => "stats:",
            Detail::Trace => "trace:",
        });
        value.push(self.directory.path());
        value
    }

    /// Returns the record that a rank has left, in the form that [`RecordWriter::write_bytes`]
    /// accepts: for ranks whose launcher is on another machine.
    pub fn bytes(&self, rank: u32) -> Option<Vec<u8>> {
        fs::read(file_of(self.directory.path(), rank)).ok()
    }

    /// Collects the records left by the ranks of a job of `ranks` ranks, and removes the directory.
    ///
    /// # Errors
    /// [`ObserveError::File`], [`ObserveError::Record`].
    pub fn collect(self, ranks: usize) -> Result<Observation, ObserveError> {
        let mut records = Vec::new();
        for rank in 0..ranks {
            let path = file_of(self.directory.path(), rank as u32);
            let record = match File::open(&path) {
                Ok(file) => serde_json::from_reader::<_, RankRecord>(BufReader::new(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(file(&path, "read")(error)),
            };
            records.push(record.map_err(|error| ObserveError::Record { path, error })?);
        }
        Ok(Observation::new(ranks, records))
    }
}

/// The record of a process that is one rank, for libraries whose callers own `main`.
#[derive(Debug)]
pub struct ProcessRecord {
    recorder: Recorder,
    writer: RecordWriter,
}

impl ProcessRecord {
    /// Starts the record of `rank`, if this process's launcher requests one.
    ///
    /// # Errors
    /// [`ObserveError::Variable`].
    pub fn from_env(rank: Rank) -> Result<Option<Self>, ObserveError> {
        let Some(writer) = RecordWriter::from_env()? else { return Ok(None) };
        let recorder = Gathering::new(writer.detail, 1).begin(rank);
        Ok(Some(ProcessRecord { recorder, writer }))
    }

    /// Returns the recorder, for the layer over the rank's fabric.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Writes the record as it is now.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn write(&self) -> Result<(), ObserveError> {
        self.writer.write(&[self.recorder.record()])
    }
}

/// The configuration of the records of a rank's process, and their location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordWriter {
    /// The level of detail.
    pub detail: Detail,
    directory: PathBuf,
}

impl RecordWriter {
    /// Returns the writer for the records that this process's launcher requests, if it requests
    /// any.
    ///
    /// # Errors
    /// [`ObserveError::Variable`].
    pub fn from_env() -> Result<Option<Self>, ObserveError> {
        std::env::var_os(RECORDS_VARIABLE).map(|value| Self::from_value(&value)).transpose()
    }

    /// Reads the value of [`RECORDS_VARIABLE`].
    ///
    /// # Errors
    /// [`ObserveError::Variable`].
    pub fn from_value(value: &std::ffi::OsStr) -> Result<Self, ObserveError> {
        let wrong = || ObserveError::Variable { name: RECORDS_VARIABLE, value: value.to_string_lossy().into_owned() };
        let (detail, directory) = value.to_str().and_then(|text| text.split_once(':')).ok_or_else(wrong)?;
        let detail = match detail {
            "stats" => Detail::Stats,
            "trace" => Detail::Trace,
            _ => return Err(wrong()),
        };
        if directory.is_empty() {
            return Err(wrong());
        }
        Ok(RecordWriter { detail, directory: directory.into() })
    }

    /// Writes records for the launcher.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn write(&self, records: &[RankRecord]) -> Result<(), ObserveError> {
        for record in records {
            self.write_by(record.rank, |out| Ok(serde_json::to_writer(out, record)?))?;
        }
        Ok(())
    }

    /// Writes a rank's record that came from another machine ([`RecordDirectory::bytes`]).
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn write_bytes(&self, rank: u32, record: &[u8]) -> Result<(), ObserveError> {
        self.write_by(rank, |out| out.write_all(record))
    }

    fn write_by(
        &self,
        rank: u32,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), ObserveError> {
        let path = file_of(&self.directory, rank);
        let unfinished = path.with_extension("unfinished");
        let write = || {
            let mut out = BufWriter::new(File::create(&unfinished)?);
            write(&mut out)?;
            out.flush()?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(file(&path, "written"))
    }
}

fn file_of(directory: &Path, rank: u32) -> PathBuf {
    directory.join(format!("rank-{rank}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        event::{Event, EventKind},
        recorder::Recorder,
    };
    use rdma_fabric::Rank;

    #[test]
    fn records_arrive_and_missing_ones_are_named() {
        let records = RecordDirectory::create(Detail::Trace).unwrap();
        let directory = records.directory.path().to_owned();
        let writer = RecordWriter::from_value(&records.variable()).unwrap();
        assert_eq!(writer.detail, Detail::Trace);
        for rank in [0, 2] {
            let recorder = Recorder::new(Rank::new(rank), Some(4));
            recorder.lock().counts.with(Some(1)).puts = u64::from(rank) + 5;
            recorder.lock().waited(crate::WaitKind::Word, None, 1000, 5000);
            recorder.lock().happened(Event::new(EventKind::Get, Some(1), 7));
            writer.write(&[recorder.record()]).unwrap();
        }
        // A rank that was killed while writing.
        fs::write(directory.join("rank-1.unfinished"), "{\"rank\":1,").unwrap();
        let observation = records.collect(4).unwrap();
        assert_eq!(observation.missing().collect::<Vec<_>>(), [1, 3]);
        let [zero, two] = observation.records() else { panic!("two records") };
        assert_eq!((zero.counts.total().puts, two.counts.total().puts), (5, 7));
        assert_eq!(two.counts.waits[&crate::WaitKind::Word].total_ns, 4);
        assert_eq!(two.events.as_ref().unwrap().len(), 1);
        assert!(!directory.exists(), "the directory is removed");
    }

    #[test]
    fn damaged_records_and_variables_are_errors() {
        let records = RecordDirectory::create(Detail::Stats).unwrap();
        fs::write(file_of(records.directory.path(), 0), "{}").unwrap();
        assert!(matches!(records.collect(1), Err(ObserveError::Record { .. })));
        for value in ["", "stats", "stats:", "graph:/tmp"] {
            assert!(
                matches!(RecordWriter::from_value(value.as_ref()), Err(ObserveError::Variable { .. })),
                "{value:?}"
            );
        }
    }
}
