//! This process's standard input, for rank 0 on another host: piece by piece, so that a rank that does
//! not read holds up nothing else.

use super::{frames::Order, spawn::spawn};
use std::{
    io::{self, Read},
    sync::mpsc::{Receiver, Sender},
};

/// The longest piece.
const PIECE: usize = 32 << 10;

/// Passes on the standard input for as long as there is one; the next piece when the last was `taken`.
///
/// # Errors
/// There is no thread for it.
pub(super) fn pass_on(orders: Sender<Order>, taken: Receiver<()>) -> io::Result<()> {
    spawn("standard input", move || {
        let mut piece = vec![0; PIECE];
        loop {
            let order = match io::stdin().read(&mut piece) {
                Ok(0) | Err(_) => Order::InputEnd,
                Ok(bytes) => Order::Input(piece[..bytes].to_vec()),
            };
            let last = order == Order::InputEnd;
            if orders.send(order).is_err() || last || taken.recv().is_err() {
                return;
            }
        }
    })
}
