//! The agent of a host: the process that a launcher starts there by ssh, which starts the host's ranks
//! and tells the launcher what becomes of them.
//!
//! Frames come over standard input and go to standard output. When the input ends, or nothing came for
//! the time that the launcher has set, the launcher is gone or out of reach, and the ranks are killed.

use super::{
    end::RankEnd,
    frames::{BEGIN, Order, Report},
    plan::{AGENT, AgentPlan},
    ranks::{Home, RankProcesses, Start},
};
use crate::{cluster::STEP, observing, report::say};
use bootstrap::Secret;
use rustix::process::Signal;
use std::{
    env,
    io::{self, BufReader, Write},
    process::{self, ChildStdin, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// How often ranks are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// How long the agent may take to end when its ranks were killed.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Is the agent of a host, if this process was started for that, and returns how to end it.
pub(crate) fn serve_if_asked() -> Option<ExitCode> {
    let text = env::var_os(AGENT)?;
    let plan = AgentPlan::from_text(&text.to_string_lossy());
    Some(match plan.map(|plan| serve(&plan)) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            say(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    })
}

/// Starts the ranks and returns the code of the first that failed, or 0.
fn serve(plan: &AgentPlan) -> i32 {
    println!("{BEGIN}");
    let unheard = Arc::new(AtomicBool::new(false));
    let lost = unheard.clone();
    // Who is not there to hear reports is noticed here, or by the end of the input.
    let home: Home = Arc::new(move |report| {
        if report.write(&mut io::stdout().lock()).is_err() {
            lost.store(true, Relaxed);
        }
    });
    let orders = hear();
    let failed = |problem: String| {
        home(Report::Failed(problem));
        1
    };
    let secret = match orders.recv_timeout(STEP) {
        Ok(Order::Secret(text)) => Secret::from_hex(&text),
        _ => return 1,
    };
    let secret = match secret {
        Ok(secret) => secret,
        Err(error) => return failed(error.to_string()),
    };
    let records = match plan.records.as_deref().map(observing::Records::create).transpose() {
        Ok(records) => records,
        Err(error) => return failed(error.to_string()),
    };
    let variable = records.as_ref().map(observing::Records::variable);
    let (ranks, coordinator) = (plan.ranks, plan.coordinator);
    let start = Start { ranks, coordinator, secret: &secret, per_node: None, provider: None, variable };
    let processes = match RankProcesses::start(plan.share.clone(), &start, Some(&home)) {
        Ok(processes) => processes,
        Err((rank, cause)) => return failed(format!("rank {rank} can't be started: {cause}")),
    };
    let agent = Agent { processes, home: home.clone(), heard: Instant::now(), silence: plan.silence, unheard };
    let code = agent.run(&orders);
    for rank in plan.share.clone() {
        if let Some(bytes) = records.as_ref().and_then(|records| records.of(rank)) {
            home(Report::Record(rank, bytes));
        }
    }
    home(Report::Done);
    code
}

struct Agent {
    processes: RankProcesses,
    home: Home,
    /// When the launcher was last heard.
    heard: Instant,
    silence: Duration,
    /// Set when a report could not be written.
    unheard: Arc<AtomicBool>,
}

impl Agent {
    fn run(mut self, orders: &Receiver<Order>) -> i32 {
        let (mut input, mut first, mut alone) = (self.processes.take_input().map(give), None, false);
        while !self.processes.have_ended() {
            let end = match orders.recv_timeout(LOOK) {
                Ok(order) => self.obey(order, &mut input),
                Err(RecvTimeoutError::Timeout) => self.heard.elapsed() > self.silence || self.unheard.load(Relaxed),
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if end && !std::mem::replace(&mut alone, true) {
                self.processes.send(Signal::KILL);
                // Reports may not find their way any more, and must not keep this process here.
                thread::spawn(|| {
                    thread::sleep(LAST_MOMENT);
                    process::exit(1);
                });
            }
            for (rank, end) in self.processes.look() {
                if !end.is_good() {
                    first.get_or_insert(end.clone());
                }
                (self.home)(Report::Ended(rank, end));
            }
            if alone {
                thread::sleep(LOOK);
            }
        }
        self.processes.finish();
        first.as_ref().map_or(0, RankEnd::code)
    }

    /// Does what the launcher asks.
    fn obey(&mut self, order: Order, input: &mut Option<Sender<(Vec<u8>, Home)>>) -> bool {
        self.heard = Instant::now();
        match order {
            Order::Input(bytes) => match input {
                Some(input) => _ = input.send((bytes, self.home.clone())),
                None => (self.home)(Report::InputTaken),
            },
            Order::InputEnd => *input = None,
            Order::Terminate => self.processes.send(Signal::TERM),
            Order::Kill => self.processes.send(Signal::KILL),
            Order::Secret(_) | Order::Beat => {}
        }
        false
    }
}

/// Starts to read orders; the channel is closed when the input ends.
fn hear() -> Receiver<Order> {
    let (tell, orders) = channel();
    thread::spawn(move || {
        let mut from = BufReader::new(io::stdin());
        while let Ok(Some(order)) = Order::read(&mut from) {
            if tell.send(order).is_err() {
                return;
            }
        }
    });
    orders
}

/// Starts to give pieces to the standard input of rank 0, and to tell when each was taken. Pieces that
/// the rank doesn't want are taken, too.
fn give(mut to: ChildStdin) -> Sender<(Vec<u8>, Home)> {
    let (pieces, next) = channel::<(Vec<u8>, Home)>();
    thread::spawn(move || {
        while let Ok((piece, home)) = next.recv() {
            let _ = to.write_all(&piece);
            home(Report::InputTaken);
        }
    });
    pieces
}
