//! One iteration of each form, command by command, for comparison with the paper's Figures 5 to 8.

use crate::{
    ReproError,
    simulate::BEGIN,
    workloads::{Exchange, Kept, Together, exchanges},
};
use prdma_offload::{Buffer, EndOfData, Form, Layout, Options, Point, points_init};
use rdma_fabric::{Fabric, Group, Program, ProgramResult, Time, control_queue::Command};
use std::fmt::Write;
use tofu2_sim::virt::{Job, NetworkModel, Platform, Released, SeenCommand, Timeline, Torus};

/// The number of bytes to each neighbour.
const SIZE: usize = 8192;

/// The delay of the later rank, in picoseconds.
const LATE: u64 = 5_000_000;

/// More entries than any of these timelines has.
const ENTRIES: usize = 10_000;

/// Returns the paper's name of a command, if it has one: RTR (READY-TO-RECEIVE), SD/EOD (the data
/// and their end), SD (data without their end), EOD (END-OF-DATA as a command of its own), NOP, SELF
/// (the put to its own queue that releases the data).
pub fn label(command: &SeenCommand) -> Option<String> {
    let posting = &command.posting;
    let name = match posting.command {
        Command::Nop => "NOP",
        Command::PutInline { to, .. } if to == command.queue => "SELF",
        Command::PutInline { .. } if posting.sps > 0 => "RTR",
        Command::PutInline { .. } => "EOD",
        Command::Put { .. } if posting.remote_notice => "SD/EOD",
        Command::Put { .. } => "SD",
        _ => return None,
    };
    Some(name.to_owned())
}

/// Rank 0 sends to rank 1, once; `starts` contains the start time of each rank, in picoseconds
/// after the beginning.
async fn one_way(fabric: Fabric, starts: [u64; 2], end: EndOfData) -> ProgramResult<()> {
    let mut group = Group::world(&fabric).await?;
    let me = group.me();
    let buffer = Buffer::<u8>::new(&fabric, SIZE)?;
    let point = vec![Point::new(1 - me, 0, &buffer, Layout::contiguous::<u8>(0, SIZE)?)];
    let (sends, receives) = if me == 0 { (point, Vec::new()) } else { (Vec::new(), point) };
    let (sends, receives) = points_init(&mut group, sends, receives, &Options { end, ..Options::default() }).await?;
    fabric.sleep_until(Time::from_picos(BEGIN.as_picos() + starts[me])).await;
    for mut request in sends.into_iter().chain(receives) {
        request.start().await?;
        request.wait().await?;
        // Neither rank leaves before both have waited.
        group.barrier().await?;
    }
    Ok(())
}

/// One iteration of a form, as executed by the machine.
#[derive(Clone, Debug)]
pub struct FormTrace {
    /// The form and pattern, and the paper's figure that shows it.
    pub title: &'static str,
    /// The timeline of its ranks.
    pub timeline: Timeline,
    /// Whether the commands of rank 0 are representative of those of all ranks.
    pub alike: bool,
}

/// Runs one iteration of each form: figures 5 to 7 as printed, with a separate END, then the same and
/// figure 8 with data and end in one put, which the paper measured.
///
/// # Errors
/// [`ReproError::Job`].
pub fn forms() -> Result<Vec<FormTrace>, ReproError> {
    use EndOfData::{Separate, WithData};
    Ok(vec![
        late("Fig. 5: one way, READY before the sender starts", [LATE, 0], Separate)?,
        late("Fig. 6: one way, READY after the sender has started", [0, LATE], Separate)?,
        exchange("Fig. 7: exchange of two ranks", &[2], Form::Fast, Separate)?,
        late("Fig. 5 with SD/EOD", [LATE, 0], WithData)?,
        late("Fig. 6 with SD/EOD", [0, LATE], WithData)?,
        exchange("Fig. 7 with SD/EOD", &[2], Form::Fast, WithData)?,
        exchange("Fig. 8 (A): FAST form, 1-D 3-point", &[4], Form::Fast, WithData)?,
        exchange("Fig. 8 (B): MRC form, 1-D 3-point", &[4], Form::Mrc, WithData)?,
        exchange("Fig. 8 (C): MRC form, 2-D 5-point", &[3, 3], Form::Mrc, WithData)?,
    ])
}

/// Runs a put from rank 0 to rank 1, which start at different times.
fn late(title: &'static str, starts: [u64; 2], end: EndOfData) -> Result<FormTrace, ReproError> {
    let timeline = traced(title, &[2], &async |fabric| one_way(fabric, starts, end).await)?;
    Ok(FormTrace { title, timeline, alike: false })
}

/// Runs an exchange on a grid; one of two ranks has borders: one neighbour each.
fn exchange(title: &'static str, grid: &[usize], form: Form, end: EndOfData) -> Result<FormTrace, ReproError> {
    let exchange = Exchange {
        grid: grid.to_vec(),
        periodic: grid != [2],
        corners: false,
        form,
        end,
        kept: Kept::Persistent,
        sizes: vec![SIZE],
        warm_up: 0,
        iterations: 1,
    };
    let sides: Vec<u32> = grid.iter().map(|&side| side as u32).collect();
    let together = Together::Clock { start: BEGIN, end: Time::from_picos(2 * BEGIN.as_picos()) };
    let timeline = traced(title, &sides, &async |fabric| exchanges(fabric, exchange.clone(), together).await)?;
    Ok(FormTrace { title, timeline, alike: true })
}

fn traced<P: Program>(title: &str, sides: &[u32], program: &P) -> Result<Timeline, ReproError> {
    let failed = |error| ReproError::Job { stage: title.to_owned(), error };
    let torus = Torus::new(sides).map_err(|error| failed(error.into()))?;
    let ranks = torus.nodes() as usize;
    let platform = Platform::fx100();
    let job = Job::new(&platform, ranks).ranks_per_node(1).torus(torus).network(NetworkModel::Router);
    let run = job.timeline(ENTRIES, BEGIN).run(program).map_err(failed)?;
    Ok(run.timeline.unwrap_or_default())
}

impl FormTrace {
    /// Returns a line for each command: the times, in µs, at which it was posted, started by its
    /// engine and received by the engine of its target; rank; queue (TNI and number); slot; kind,
    /// target, and number of slots released there; the command that released it.
    pub fn text(&self) -> String {
        let commands = self.timeline.commands();
        let mut shown: Vec<&SeenCommand> =
            commands.iter().filter(|command| !self.alike || command.queue.rank().number() == 0).collect();
        let began = commands.iter().map(|command| command.posted.as_picos()).min().unwrap_or(0);
        shown.sort_by_key(|command| (command.started, command.posted));
        let mut out = format!("{}\n", self.title);
        if self.alike {
            out.push_str("(rank 0; the others are alike)\n");
        }
        // Writing to a string does not fail.
        writeln!(
            out,
            "{:>7} {:>7} {:>7}  {:>4}  {:>5}  {:>4}  {:<22} released by",
            "posted", "started", "arrived", "rank", "queue", "slot", "command"
        )
        .ok();
        let micros = |time: Time| format!("{:.2}", (time.as_picos() as f64 - began as f64) * 1e-6);
        let when = |time: Option<Time>| time.map_or("–".to_owned(), micros);
        for command in shown {
            let (queue, sps) = (command.queue, command.posting.sps);
            let mut what = label(command).unwrap_or_else(|| "other".to_owned());
            if let Some(to) = command.posting.command.target().filter(|to| *to != queue) {
                write!(what, " → {}", to.rank().number()).ok();
            }
            if sps > 0 {
                write!(what, ", releases {sps}").ok();
            }
            let released = match command.released {
                _ if command.started.is_none() => "not yet".to_owned(),
                Released::AtOnce => "none: leaves at once".to_owned(),
                Released::By(by) => match by.and_then(|by| commands.get(by)) {
                    Some(by) if by.queue == queue => "SELF".to_owned(),
                    Some(by) => format!("{} of {}", label(by).unwrap_or_default(), by.queue.rank().number()),
                    None => "a put".to_owned(),
                },
            };
            writeln!(
                out,
                "{:>7} {:>7} {:>7}  {:>4}  {:>5}  {:>4}  {what:<22} {released}",
                micros(command.posted),
                when(command.started),
                when(command.arrived),
                queue.rank().number(),
                format!("{}.{}", queue.engine(), queue.number()),
                command.slot,
            )
            .ok();
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the labels of the commands of a rank in a form, in order of their slots.
    fn labels(trace: &FormTrace, rank: u32) -> Vec<String> {
        let mut commands = trace.timeline.commands();
        commands.retain(|command| command.queue.rank().number() == rank);
        commands.sort_by_key(|command| (command.queue.engine(), command.slot));
        commands.iter().filter_map(label).collect()
    }

    #[test]
    fn forms_have_the_papers_commands() {
        let forms = forms().expect("they run");
        for (form, rank, expected) in [
            (0, 0, &["SD", "EOD"][..]),
            (0, 1, &["RTR"]),
            (2, 0, &["RTR", "SD", "EOD"]),
            (3, 0, &["SD/EOD"]),
            (3, 1, &["RTR"]),
            (5, 0, &["RTR", "SD/EOD"]),
            (6, 0, &["RTR", "SD/EOD", "RTR", "SD/EOD"]),
            (7, 0, &["RTR", "RTR", "NOP", "SELF", "SD/EOD", "SD/EOD"]),
            (8, 0, &["RTR", "RTR", "RTR", "RTR", "NOP", "NOP", "NOP", "SELF", "SD/EOD", "SD/EOD", "SD/EOD", "SD/EOD"]),
        ] {
            assert_eq!(labels(&forms[form], rank), expected, "{}", forms[form].text());
        }
    }

    #[test]
    fn a_late_ready_releases_the_data_and_an_early_one_lets_them_leave_at_once() {
        let forms = forms().expect("they run");
        let wait = |form: &FormTrace| {
            let commands = form.timeline.commands();
            let is_data = |command: &&SeenCommand| label(command).is_some_and(|label| label.starts_with("SD"));
            let data = commands.iter().find(is_data).expect("data");
            let by = match data.released {
                Released::By(Some(by)) => label(&commands[by]),
                _ => None,
            };
            assert_eq!(by.as_deref(), Some("RTR"), "{}", form.text());
            data.started.expect("it left").as_picos() - data.posted.as_picos()
        };
        for early in [0, 3] {
            assert_eq!(wait(&forms[early]), 0);
            assert!(wait(&forms[early + 1]) > LATE / 2);
        }
    }

    /// In figures 5 and 6 an RTR releases SD and EOD, in figure 7 also the next RTR.
    #[test]
    fn a_ready_releases_data_and_end() {
        for (form, released) in forms().expect("they run").iter().zip([2, 2, 3, 1, 1, 2, 2]) {
            let commands = form.timeline.commands();
            let ready = commands.iter().find(|command| label(command).as_deref() == Some("RTR")).expect("a READY");
            assert_eq!(ready.posting.sps, released, "{}", form.text());
        }
    }

    #[test]
    fn an_end_starts_behind_its_data() {
        for form in &forms().expect("they run")[..3] {
            let commands = form.timeline.commands();
            let of = |name: &str| commands.iter().find(|command| label(command).as_deref() == Some(name));
            let (data, end) = of("SD").zip(of("EOD")).expect("both");
            assert!(data.started < end.started && data.arrived < end.arrived, "{}", form.text());
        }
    }

    #[test]
    fn all_data_of_the_mrc_form_leave_after_all_readies() {
        for form in &forms().expect("they run")[7..] {
            let commands = form.timeline.commands();
            let of = |name: &str| {
                let mine = commands.iter().filter(|command| label(command).as_deref() == Some(name));
                mine.cloned().collect::<Vec<_>>()
            };
            let arrived = of("RTR")
                .iter()
                .filter(|ready| ready.posting.command.target().is_some_and(|to| to.rank().number() == 0))
                .filter_map(|ready| ready.arrived)
                .max();
            let data = of("SD/EOD")
                .iter()
                .filter(|data| data.queue.rank().number() == 0)
                .filter_map(|data| data.started)
                .min();
            assert!(arrived.is_some() && data > arrived, "{}", form.text());
        }
    }
}
