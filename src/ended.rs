//! Telling how the ranks of a job ended that are not processes.

use crate::{launch_error::LaunchError, tell::say};
use std::borrow::Cow;
use tofu2_sim::{JobError, ends_in_words, shm::EachRank, virt::PartialRun};

fn in_words(error: &JobError) -> Cow<'static, str> {
    let words = match error {
        JobError::RankFailed { error, .. } => format!("failed: {error}"),
        JobError::RankPanicked { message, .. } => format!("panicked: {message}"),
        other => other.to_string(),
    };
    words.into()
}

fn tell(ways: &[Cow<'_, str>], first: Option<usize>) {
    ends_in_words(ways, first).iter().for_each(say);
}

/// The failure that is the cause of a job's, after saying how each rank ended.
pub(crate) fn of_threads<T>((mut ranks, first): EachRank<T>) -> Result<(), LaunchError> {
    let Some(first) = first else { return Ok(()) };
    let way = |ended: &Result<T, JobError>| ended.as_ref().err().map_or(WELL.into(), in_words);
    tell(&ranks.iter().map(way).collect::<Vec<_>>(), Some(first));
    ranks.swap_remove(first).map(drop).map_err(Into::into)
}

/// The same of a simulated job, which keeps only its first failure.
pub(crate) fn of_simulated<T>((run, failure): PartialRun<T>) -> Result<(), LaunchError> {
    let Some(failure) = failure else { return Ok(()) };
    let first = match &failure {
        JobError::RankFailed { rank, .. } | JobError::RankPanicked { rank, .. } => Some(rank.index()),
        _ => None,
    };
    let way = |(rank, out): (usize, &Option<T>)| match out {
        Some(_) => WELL.into(),
        None if first == Some(rank) => in_words(&failure),
        None => "failed later".into(),
    };
    tell(&run.outs.iter().enumerate().map(way).collect::<Vec<_>>(), first);
    Err(failure.into())
}

const WELL: &str = "ended well";
