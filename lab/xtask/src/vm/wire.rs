//! The wire between machines: a switch in this process. A machine sends frames over a socket, each after
//! its length in 4 bytes; the switch passes them to all others, unless a cable is cut.

use std::{
    io::{self, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

/// The longest frame, with room for all headers.
const LONGEST: usize = 1 << 16;

#[derive(Default)]
struct Port {
    is_cut: AtomicBool,
    /// The machine's end, once it is connected.
    to: Mutex<Option<UnixStream>>,
}

/// A switch with a port for each machine.
pub(super) struct Wire {
    ports: Arc<Vec<Port>>,
}

impl Wire {
    /// Listens for the machine of each port at [`Wire::path`].
    pub(super) fn of(machines: usize, directory: &Path) -> io::Result<Self> {
        let ports: Arc<Vec<Port>> = Arc::new((0..machines).map(|_| Port::default()).collect());
        for number in 0..machines {
            let listener = UnixListener::bind(Self::path(directory, number))?;
            let ports = ports.clone();
            thread::Builder::new().name(format!("port {number}")).spawn(move || {
                // A machine connects once. Its end, and an error, end the port.
                if let Ok((stream, _)) = listener.accept() {
                    let _ = serve(&ports, number, stream);
                }
            })?;
        }
        Ok(Self { ports })
    }

    /// Returns the path of a port's socket.
    pub(super) fn path(directory: &Path, number: usize) -> PathBuf {
        directory.join(format!("wire-{number}"))
    }

    /// Cuts or mends the cable of a machine.
    pub(super) fn cut(&self, number: usize, off: bool) {
        self.ports[number].is_cut.store(off, Relaxed);
    }
}

/// Passes the frames of a machine to the others.
fn serve(ports: &[Port], number: usize, mut from: UnixStream) -> io::Result<()> {
    let own = &ports[number];
    *own.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(from.try_clone()?);
    let mut frame = vec![0; 4 + LONGEST];
    loop {
        from.read_exact(&mut frame[..4])?;
        let len = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        let Some(bytes) = frame.get_mut(4..4 + len) else { return Err(io::ErrorKind::InvalidData.into()) };
        from.read_exact(bytes)?;
        if own.is_cut.load(Relaxed) {
            continue;
        }
        for port in ports.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, port)| port) {
            let mut to = port.to.lock().unwrap_or_else(PoisonError::into_inner);
            // A machine that was killed takes no frames.
            if !port.is_cut.load(Relaxed) && to.as_mut().is_some_and(|to| to.write_all(&frame[..4 + len]).is_err()) {
                *to = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn frames_reach_the_others_unless_a_cable_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        let wire = Wire::of(3, directory.path()).unwrap();
        let mut ends: Vec<_> =
            (0..3).map(|number| UnixStream::connect(Wire::path(directory.path(), number)).unwrap()).collect();
        let is_connected = |port: &Port| port.to.lock().unwrap().is_some();
        while !wire.ports.iter().all(is_connected) {
            thread::sleep(Duration::from_millis(1));
        }
        let mut exchange = |text: &[u8; 2]| {
            ends[0].write_all(&[&2_u32.to_be_bytes()[..], text].concat()).unwrap();
            let received = ends[1..].iter_mut().map(|end| {
                end.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
                let mut frame = [0; 6];
                end.read_exact(&mut frame).is_ok() && frame[4..] == *text
            });
            received.collect::<Vec<_>>()
        };
        assert_eq!(exchange(b"ab"), [true, true]);
        wire.cut(2, true);
        assert_eq!(exchange(b"cd"), [true, false]);
        wire.cut(0, true);
        assert_eq!(exchange(b"ef"), [false, false]);
        wire.cut(0, false);
        wire.cut(2, false);
        assert_eq!(exchange(b"gh"), [true, true]);
    }
}
