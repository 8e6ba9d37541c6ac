//! The agent of a host: a process that a launcher starts there by ssh. It starts the host's ranks
//! and reports their ends to the launcher.
//!
//! Frames arrive on standard input and are sent on standard output. When the input ends, the
//! launcher has ended, and the ranks are killed. If no frame arrives for the time that the launcher
//! has set, the launcher is unreachable, as is its coordinator: from then on the agent is *alone*.
//! The ranks then decide whether they continue, and the agent no longer ends them.

use super::{
    end::RankEnd,
    error::HostsError,
    frames::{BEGIN, Order, Report},
    home::Home,
    plan::{AGENT, AgentPlan},
    ranks::{self, RankProcesses, Start},
    spawn::spawn,
};
use crate::{cluster::STEP, observing, report::emit};
use bootstrap::Secret;
use rustix::process::Signal;
use std::{
    env,
    io::{self, BufReader, Write},
    mem,
    process::{self, ChildStdin, ExitCode},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Interval between polls of the ranks.
const LOOK: Duration = Duration::from_millis(2);
/// Time limit for the agent to end after its ranks were killed.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// Runs as the agent of a host if this process was started as one, and returns its exit code.
pub(crate) fn serve_if_asked() -> Option<ExitCode> {
    let text = env::var_os(AGENT)?;
    let plan = AgentPlan::from_text(&text.to_string_lossy());
    Some(match plan.and_then(|plan| serve(&plan).map_err(|cause| HostsError::Launcher { cause })) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        Err(error) => {
            emit(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    })
}

/// Starts the ranks and returns the code of the first that failed, or 0.
///
/// # Errors
/// The threads that communicate with the launcher can't be started.
fn serve(plan: &AgentPlan) -> io::Result<i32> {
    writeln!(io::stdout(), "{BEGIN}")?;
    let home = Home::open(io::stdout(), LAST_MOMENT)?;
    let orders = receive()?;
    let failed = |problem: String| {
        home.send(Report::Failed(problem));
        Bond::Holds(Instant::now()).until_done(&home, &orders, plan.silence);
        Ok(1)
    };
    let secret = match orders.recv_timeout(STEP) {
        Ok(Order::Secret(text)) => Secret::from_hex(&text),
        _ => return Ok(1),
    };
    let secret = match secret {
        Ok(secret) => secret,
        Err(error) => return failed(error.to_string()),
    };
    let records = match plan.records.as_deref().map(observing::Records::create).transpose() {
        Ok(records) => records,
        Err(error) => return failed(error.to_string()),
    };
    let (ranks, coordinator) = (plan.ranks, plan.coordinator);
    // This process has the variables for ranks, which inherit them.
    let start = Start {
        ranks,
        coordinator,
        secret: &secret,
        per_node: None,
        provider: None,
        records: records.as_ref().map(observing::Records::variable),
        env: &[],
    };
    if let Err(error) = ranks::check_room(plan.share.len()) {
        return failed(error.to_string());
    }
    let mut processes = match RankProcesses::start(plan.share.clone(), &start, Some(&home)) {
        Ok(processes) => processes,
        Err((rank, cause)) => return failed(format!("rank {rank} can't be started: {cause}")),
    };
    let bond = Bond::Holds(Instant::now());
    let input = match processes.take_input().map(give).transpose() {
        Ok(input) => input,
        Err(cause) => return failed(cause.to_string()),
    };
    let mut agent = Agent { processes, home: home.clone(), silence: plan.silence, bond };
    let code = agent.run(&orders, input);
    for rank in plan.share.clone() {
        if let Some(bytes) = records.as_ref().and_then(|records| records.of(rank)) {
            home.send(Report::Record(rank, bytes));
        }
    }
    home.send(Report::Done);
    agent.bond.until_done(&home, &orders, plan.silence);
    Ok(code)
}

/// The state of an agent's connection to its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bond {
    /// The time of the last order.
    Holds(Instant),
    /// The launcher is unreachable. This state is final, even if further orders arrive.
    Alone,
    /// The launcher has ended.
    Ended,
}

impl Bond {
    /// Waits a moment for an order, and returns it unless the agent is alone or the launcher has
    /// ended.
    fn receive(&mut self, home: &Home, orders: &Receiver<Order>, silence: Duration) -> Option<Order> {
        let heard = orders.recv_timeout(LOOK);
        let Bond::Holds(last) = self else {
            if heard == Err(RecvTimeoutError::Disconnected) {
                thread::sleep(LOOK);
            }
            return None;
        };
        match heard {
            Ok(order) => {
                *last = Instant::now();
                return Some(order);
            }
            Err(RecvTimeoutError::Timeout) if home.is_closed() => *self = Bond::Ended,
            Err(RecvTimeoutError::Timeout) if last.elapsed() > silence => {
                *self = Bond::Alone;
                home.set_alone();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                *self = Bond::Ended;
                home.set_alone();
            }
        }
        None
    }

    /// Waits until all reports have been sent, but only for a moment if they are no longer read.
    fn until_done(mut self, home: &Home, orders: &Receiver<Order>, silence: Duration) {
        while !home.is_done() {
            self.receive(home, orders, silence);
        }
    }
}

struct Agent {
    processes: RankProcesses,
    home: Arc<Home>,
    silence: Duration,
    bond: Bond,
}

impl Agent {
    fn run(&mut self, orders: &Receiver<Order>, mut input: Option<Sender<(Vec<u8>, Arc<Home>)>>) -> i32 {
        let mut first = None;
        while !self.processes.have_ended() {
            let before = self.bond;
            if let Some(order) = self.bond.receive(&self.home, orders, self.silence) {
                self.execute(order, &mut input);
            }
            if mem::discriminant(&before) != mem::discriminant(&self.bond) {
                // No more input arrives.
                input = None;
                if self.bond == Bond::Ended {
                    self.processes.send(Signal::KILL);
                    // Ensures that this process ends in any case.
                    let late = || {
                        thread::sleep(LAST_MOMENT);
                        process::exit(1);
                    };
                    // Without this thread, the loop ends once all killed ranks have ended.
                    let _ = spawn("the end", late);
                }
            }
            for (rank, end) in self.processes.look() {
                if !end.is_good() {
                    first.get_or_insert(end.clone());
                }
                self.home.send(Report::Ended(rank, end));
            }
        }
        self.processes.finish();
        first.as_ref().map_or(0, RankEnd::code)
    }

    /// Executes an order of the launcher.
    fn execute(&mut self, order: Order, input: &mut Option<Sender<(Vec<u8>, Arc<Home>)>>) {
        match order {
            Order::Input(bytes) => match input {
                Some(input) => _ = input.send((bytes, self.home.clone())),
                None => self.home.send(Report::InputTaken),
            },
            Order::InputEnd => *input = None,
            Order::Terminate => self.processes.send(Signal::TERM),
            Order::Kill => self.processes.send(Signal::KILL),
            Order::Secret(_) | Order::Beat => {}
        }
    }
}

/// Starts to read orders; the channel is closed when the input ends.
fn receive() -> io::Result<Receiver<Order>> {
    let (tell, orders) = channel();
    let read = move || {
        let mut from = BufReader::new(io::stdin());
        while let Ok(Some(order)) = Order::read(&mut from) {
            if tell.send(order).is_err() {
                return;
            }
        }
    };
    spawn("orders", read)?;
    Ok(orders)
}

/// Starts to pass pieces to the standard input of rank 0, and to report each piece that was taken.
/// Pieces that the rank does not read also count as taken.
fn give(mut to: ChildStdin) -> io::Result<Sender<(Vec<u8>, Arc<Home>)>> {
    let (pieces, next) = channel::<(Vec<u8>, Arc<Home>)>();
    let write = move || {
        while let Ok((piece, home)) = next.recv() {
            let _ = to.write_all(&piece);
            home.send(Report::InputTaken);
        }
    };
    spawn("standard input", write)?;
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_millis(30);

    fn heard(bond: &mut Bond, orders: &Receiver<Order>) -> Option<Order> {
        bond.receive(&Home::open(io::sink(), SILENCE).unwrap(), orders, SILENCE)
    }

    #[test]
    fn the_end_of_the_launcher_is_another_thing_than_its_silence() {
        let (tell, orders) = channel();
        let mut bond = Bond::Holds(Instant::now());
        tell.send(Order::Beat).unwrap();
        assert_eq!(heard(&mut bond, &orders), Some(Order::Beat));
        drop(tell);
        assert_eq!(heard(&mut bond, &orders), None);
        assert_eq!(bond, Bond::Ended);
    }

    #[test]
    fn an_agent_alone_obeys_no_orders() {
        let (tell, orders) = channel();
        let mut bond = Bond::Holds(Instant::now());
        thread::sleep(2 * SILENCE);
        assert_eq!(heard(&mut bond, &orders), None);
        assert_eq!(bond, Bond::Alone);
        tell.send(Order::Kill).unwrap();
        assert_eq!(heard(&mut bond, &orders), None);
        drop(tell);
        assert_eq!(heard(&mut bond, &orders), None);
        assert_eq!(bond, Bond::Alone);
    }
}
