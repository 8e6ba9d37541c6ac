//! What is to be made of an observation, and making it.

use crate::{
    error::{ObserveError, file},
    gathering::Detail,
    observation::Observation,
    parts::{PARTS_VARIABLE, Parts},
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// What somebody wants to see of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// A table on standard error.
    pub stats: bool,
    /// Counters as JSON in this file; `-` is standard output.
    pub json: Option<PathBuf>,
    /// A trace in this file.
    pub trace: Option<PathBuf>,
}

impl Wanted {
    /// What has to be written down for it; `None` if nothing is wanted.
    pub fn detail(&self) -> Option<Detail> {
        match self {
            Wanted { trace: Some(_), .. } => Some(Detail::Trace),
            Wanted { stats: false, json: None, .. } => None,
            _ => Some(Detail::Stats),
        }
    }

    /// Run a job whose ranks are processes, and report. `run` gets the variable to start them with, if there is one.
    /// Yields what `run` did, and whether the report was possible.
    ///
    /// # Errors
    /// [`ObserveError`] if the job was not run, because its report won't be possible.
    pub fn of_processes<T>(
        &self,
        ranks: usize,
        run: impl FnOnce(Option<(&'static str, OsString)>) -> T,
    ) -> Result<(T, Result<(), ObserveError>), ObserveError> {
        let Some(detail) = self.detail() else { return Ok((run(None), Ok(()))) };
        let (prepared, parts) = (self.prepare()?, Parts::create(detail)?);
        let ended = run(Some((PARTS_VARIABLE, parts.variable())));
        Ok((ended, parts.collect(ranks).and_then(|observation| prepared.report(&observation))))
    }

    /// Open the files, so that what can't be written is known before the job runs.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn prepare(&self) -> Result<Prepared, ObserveError> {
        let open = |path: &Path| Ok((path.to_owned(), File::create(path).map_err(file(path, "created"))?));
        let json = match self.json.as_deref() {
            None => None,
            Some(path) if path == Path::new("-") => Some(Json::StandardOutput),
            Some(path) => open(path).map(Json::File).map(Some)?,
        };
        Ok(Prepared { stats: self.stats, json, trace: self.trace.as_deref().map(open).transpose()? })
    }
}

#[derive(Debug)]
enum Json {
    StandardOutput,
    File((PathBuf, File)),
}

/// [`Wanted`], with its files open.
#[derive(Debug)]
pub struct Prepared {
    stats: bool,
    json: Option<Json>,
    trace: Option<(PathBuf, File)>,
}

impl Prepared {
    /// Write everything that is wanted.
    ///
    /// # Errors
    /// [`ObserveError::File`].
    pub fn report(self, observation: &Observation) -> Result<(), ObserveError> {
        match self.json {
            None => {}
            Some(Json::StandardOutput) => {
                let mut text = Vec::new();
                let written = observation.json(&mut text).and_then(|()| io::stdout().lock().write_all(&text));
                // A reader that has seen enough is no error.
                match written {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                    written => written.map_err(file(Path::new("standard output"), "written"))?,
                }
            }
            Some(Json::File((path, out))) => {
                observation.json(io::BufWriter::new(out)).map_err(file(&path, "written"))?;
            }
        }
        if let Some((path, out)) = self.trace {
            observation.trace(out).map_err(file(&path, "written"))?;
            let events = observation.records().iter().filter_map(|record| record.events.as_ref());
            let kept: usize = events.map(|events| events.len()).sum();
            let dropped = observation.dropped();
            let missing = observation.missing().count();
            let mut line = format!("trace: {}, {kept} events", path.display());
            if dropped > 0 {
                line += &format!(", dropped {dropped} earlier ones");
            }
            if missing > 0 {
                line += &format!(", nothing of {missing} of {} ranks", observation.ranks());
            }
            eprintln!("{line}");
        }
        if self.stats {
            eprint!("{}", observation.table());
        }
        Ok(())
    }
}
