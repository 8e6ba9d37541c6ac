//! Handling of the user's Ctrl-C: the command ends by itself, without leaving processes or files
//! behind.

use signal_hook::{consts::TERM_SIGNALS, flag};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// Whether this process was asked to end.
#[derive(Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles the signals that ask a process to end; the second one ends it immediately.
    pub(crate) fn listen() -> io::Result<Self> {
        let told = Arc::new(AtomicBool::new(false));
        for signal in TERM_SIGNALS {
            flag::register_conditional_shutdown(*signal, 1, told.clone())?;
            flag::register(*signal, told.clone())?;
        }
        Ok(Interrupt(told))
    }

    pub(crate) fn came(&self) -> bool {
        self.0.load(Relaxed)
    }
}
