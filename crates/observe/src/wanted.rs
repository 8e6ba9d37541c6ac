//! The reports requested from an observation, and their creation.

use crate::{
    error::ObserveError,
    gathering::Detail,
    observation::Observation,
    output::{Output, emit, print},
    record_files::{RECORDS_VARIABLE, RecordDirectory},
};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The reports requested for a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedReport {
    /// Whether to write a table to standard error.
    pub stats: bool,
    /// The file for counters as JSON; `-` is standard output.
    pub json: Option<PathBuf>,
    /// The file for a trace.
    pub trace: Option<PathBuf>,
}

impl WantedReport {
    /// Returns the level of detail to record; `None` if no report is wanted.
    pub fn detail(&self) -> Option<Detail> {
        match self {
            WantedReport { trace: Some(_), .. } => Some(Detail::Trace),
            WantedReport { stats: false, json: None, .. } => None,
            _ => Some(Detail::Stats),
        }
    }

    /// Runs a job whose ranks are processes, and reports. `run` receives the value of
    /// [`RECORDS_VARIABLE`] with which to start them, if any. Returns the result of `run`, and
    /// whether the report could be made.
    ///
    /// # Errors
    /// [`ObserveError`] if the job was not run because its report would not be possible.
    pub fn of_processes<T>(
        &self,
        ranks: usize,
        run: impl FnOnce(Option<(&'static str, OsString)>) -> T,
    ) -> Result<(T, Result<(), ObserveError>), ObserveError> {
        let Some(detail) = self.detail() else { return Ok((run(None), Ok(()))) };
        let (prepared, parts) = (self.prepare()?, RecordDirectory::create(detail)?);
        let ended = run(Some((RECORDS_VARIABLE, parts.variable())));
        Ok((ended, parts.collect(ranks).and_then(|observation| prepared.report(&observation))))
    }

    /// Opens the files, so that a file that can't be written is detected before the job runs.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn prepare(&self) -> Result<PreparedReport, ObserveError> {
        let json = match self.json.as_deref() {
            None => None,
            Some(path) if path == Path::new("-") => Some(Json::StandardOutput),
            Some(path) => Some(Json::File(Output::open(path)?)),
        };
        Ok(PreparedReport { stats: self.stats, json, trace: self.trace.as_deref().map(Output::open).transpose()? })
    }
}

#[derive(Debug)]
enum Json {
    StandardOutput,
    File(Output),
}

/// A [`WantedReport`] with its files open.
#[derive(Debug)]
pub struct PreparedReport {
    stats: bool,
    json: Option<Json>,
    trace: Option<Output>,
}

impl PreparedReport {
    /// Writes all wanted reports.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn report(self, observation: &Observation) -> Result<(), ObserveError> {
        let json = match self.json {
            None => Ok(()),
            Some(Json::StandardOutput) => {
                let mut text = Vec::new();
                // Writing to memory can't fail.
                let _ = observation.json(&mut text);
                print(&String::from_utf8_lossy(&text))
            }
            Some(Json::File(out)) => out.write(|file| observation.json(file)),
        };
        let trace = self.trace.map_or(Ok(()), |out| write_trace(out, observation));
        if self.stats {
            emit(observation.table().trim_end());
        }
        if let (Err(_), Err(also)) = (&json, &trace) {
            emit(format_args!("error: {also}"));
        }
        json.and(trace)
    }
}

/// Writes the trace, and reports its size on standard error.
fn write_trace(out: Output, observation: &Observation) -> Result<(), ObserveError> {
    let path = out.path().to_owned();
    out.write(|file| observation.trace(file))?;
    let events = observation.records().iter().filter_map(|record| record.events.as_ref());
    let kept: usize = events.map(|events| events.len()).sum();
    let (dropped, missing) = (observation.dropped(), observation.missing().count());
    let mut line = format!("trace: {}, {kept} events", path.display());
    if dropped > 0 {
        line += &format!(", dropped {dropped} earlier ones");
    }
    if missing > 0 {
        line += &format!(", nothing of {missing} of {} ranks", observation.ranks());
    }
    emit(line);
    Ok(())
}
