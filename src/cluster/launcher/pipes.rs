//! The pipes of an ssh process, which threads of its launcher write and read.

use super::frames::{BEGIN, Order, Report};
use std::{
    io::{self, BufRead, Write},
    process::ChildStdin,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

/// An event of a host.
pub(super) enum Event {
    Began,
    Told(Report),
    Closed,
}

/// Writes orders for an agent until the channel is closed, and a heartbeat when there was none for
/// `beat`.
pub(super) fn write_orders(mut to: ChildStdin, orders: &Receiver<Order>, beat: Duration) {
    loop {
        let order = match orders.recv_timeout(beat) {
            Ok(order) => order,
            Err(RecvTimeoutError::Timeout) => Order::Beat,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if order.write(&mut to).is_err() {
            return;
        }
    }
}

/// Reads an agent's reports. Output of ranks is written before the next report is read.
pub(super) fn read_reports(mut from: impl BufRead, tell: &dyn Fn(Event)) {
    let mut line = Vec::new();
    // Skips the preceding output of the shell.
    while line != [BEGIN.as_bytes(), b"\n"].concat() {
        line.clear();
        if !from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            return tell(Event::Closed);
        }
    }
    tell(Event::Began);
    loop {
        match Report::read(&mut from) {
            Ok(Some(Report::Out(bytes))) => {
                let mut out = io::stdout().lock();
                let _ = out.write_all(&bytes).and_then(|()| out.flush());
            }
            Ok(Some(Report::Err(bytes))) => _ = io::stderr().lock().write_all(&bytes),
            Ok(Some(report)) => tell(Event::Told(report)),
            Ok(None) | Err(_) => return tell(Event::Closed),
        }
    }
}
