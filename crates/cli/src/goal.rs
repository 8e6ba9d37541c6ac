//! `onesided goal`.

use crate::arguments::Goal;
use observe::{Output, emit, print};
use serde::Serialize;
use std::{
    error::Error,
    fs::File,
    io::{self, BufReader, BufWriter, Write},
    path::Path,
    process::ExitCode,
    time::Instant,
};
use tofu2_sim::virt::goal::{LogGps, Nanoseconds, Replay, Schedule};

/// Ranks of which each finishing time is printed.
const FEW_RANKS: usize = 16;

/// Reads or generates a schedule, then writes or replays it.
pub(crate) fn goal(options: &Goal) -> Result<ExitCode, Box<dyn Error>> {
    let is_standard = |path: &Path| path == Path::new("-");
    let output = |path: Option<&Path>| path.filter(|path| !is_standard(path)).map(Output::open).transpose();
    let (binary, text, json) =
        (output(options.output.as_deref())?, output(options.text.as_deref())?, output(options.json.as_deref())?);
    let schedule = schedule(options)?;
    if options.output.is_some() || options.text.is_some() {
        write(&schedule, binary, text, options.text.is_some())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (operations, dependencies) = (schedule.operations(), schedule.dependencies());
    let start = Instant::now();
    let replay = schedule.replay(&options.loggps)?;
    let result = Outcome::new(&options.loggps, &replay, operations, dependencies, start.elapsed().as_secs_f64());
    if options.json.is_some() {
        let text = serde_json::to_string(&result)? + "\n";
        let Some(json) = json else { return Ok(print(&text).map(|()| ExitCode::SUCCESS)?) };
        json.write(|mut file| file.write_all(text.as_bytes()))?;
    }
    print(&result.table(&replay))?;
    Ok(ExitCode::SUCCESS)
}

fn schedule(options: &Goal) -> Result<Schedule, Box<dyn Error>> {
    if let (Some(pattern), Some(ranks)) = (options.generate, options.ranks) {
        return Ok(pattern.schedule(ranks.get(), options.bytes)?);
    }
    let path = options.file.as_deref().ok_or("no file given")?;
    let named = |error: &dyn Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| named(&error))?;
    Ok(Schedule::read(BufReader::new(file)).map_err(|error| named(&error))?)
}

fn write(
    schedule: &Schedule,
    binary: Option<Output>,
    text: Option<Output>,
    as_text: bool,
) -> Result<(), Box<dyn Error>> {
    let write = |file: &mut dyn Write| {
        let mut file = BufWriter::new(file);
        if as_text { schedule.write_text(&mut file) } else { schedule.write_binary(&mut file) }?;
        file.flush()
    };
    if let Some(output) = binary.or(text) {
        let path = output.path().to_owned();
        output.write(|mut file| write(&mut file))?;
        emit(format_args!("schedule: {}, {} operations", path.display(), schedule.operations()));
        return Ok(());
    }
    match write(&mut io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("standard output can't be written: {error}").into())
        }
        _ => Ok(()),
    }
}

/// The result, as JSON has it. Times are nanoseconds.
#[derive(Debug, Serialize)]
struct Outcome {
    loggps: String,
    ranks: usize,
    operations: usize,
    dependencies: usize,
    messages: u64,
    events: u64,
    seconds: f64,
    events_per_second: f64,
    bytes_per_rank: u64,
    end_ns: f64,
    finish_ns: Vec<f64>,
}

impl Outcome {
    fn new(loggps: &LogGps, replay: &Replay, operations: usize, dependencies: usize, seconds: f64) -> Self {
        let nanoseconds = |picoseconds: u64| picoseconds as f64 / 1000.0;
        Outcome {
            loggps: loggps.to_string(),
            ranks: replay.finish_times.len(),
            operations,
            dependencies,
            messages: replay.messages,
            events: replay.events,
            seconds,
            events_per_second: replay.events as f64 / seconds.max(1e-9),
            bytes_per_rank: replay.bytes_per_rank,
            end_ns: nanoseconds(replay.end()),
            finish_ns: replay.finish_times.iter().copied().map(nanoseconds).collect(),
        }
    }

    fn table(&self, replay: &Replay) -> String {
        let Outcome { loggps, ranks, operations, dependencies, messages, events, seconds, .. } = self;
        let times = &replay.finish_times;
        let mut text = format!(
            "{ranks} ranks, {operations} operations, {dependencies} dependencies, {messages} messages; {loggps}\n"
        );
        if *ranks <= FEW_RANKS {
            for (rank, time) in times.iter().enumerate() {
                text += &format!("rank {rank} finishes at {} ns\n", Nanoseconds(*time));
            }
        } else {
            let sum: u128 = times.iter().copied().map(u128::from).sum();
            // The first rank of several, of either.
            for (name, time) in [("first", times.iter().min()), ("last", times.iter().max())] {
                let time = time.copied().unwrap_or_default();
                let rank = times.iter().position(|other| *other == time).unwrap_or_default();
                text += &format!("{name} rank to finish: {rank}, at {} ns\n", Nanoseconds(time));
            }
            text += &format!("mean: {} ns\n", Nanoseconds((sum / times.len().max(1) as u128) as u64));
        }
        let rate = self.events_per_second / 1e6;
        text + &format!("{events} events in {seconds:.3} s: {rate:.2} M/s; {} bytes per rank\n", self.bytes_per_rank)
    }
}
