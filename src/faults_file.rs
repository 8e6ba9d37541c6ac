//! Reading the file of `--faults`, which may be a pipe, a device, or something else that never ends.

use std::{fs::File, io::Read, path::Path, sync::mpsc, thread, time::Duration};
use tofu2_sim::virt::Faults;

/// Some hundred thousand faults, in bytes.
const MOST: u64 = 16 << 20;

/// Whoever writes a pipe must be done after that.
const PATIENCE: Duration = Duration::from_secs(10);

/// The faults in the file.
///
/// # Errors
/// In words, with the path.
pub(crate) fn read(path: &Path) -> Result<Faults, String> {
    within(path, MOST, PATIENCE).map_err(|problem| format!("{}: {problem}", path.display()))
}

fn within(path: &Path, most: u64, patience: Duration) -> Result<Faults, String> {
    let (send, receive) = mpsc::channel();
    let owned = path.to_owned();
    // Opening and reading may block for ever; the thread then ends with the process.
    let reader = move || {
        let mut bytes = Vec::new();
        let read = File::open(owned).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
        let _ = send.send(read.map(|_| bytes));
    };
    thread::Builder::new().name("faults".to_owned()).spawn(reader).map_err(|error| error.to_string())?;
    let bytes = match receive.recv_timeout(patience) {
        Ok(read) => read.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("it has no end, or none within {} s", patience.as_secs())),
    };
    if bytes.len() as u64 > most {
        return Err(format!("it has no end, or more than {most} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|error| format!("it is no text: {error}"))?;
    text.parse::<Faults>().map_err(|error| error.to_string())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn files_without_end_are_refused() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error, "/dev/zero: it has no end, or more than 16777216 bytes");
        // A pipe that nobody closes.
        let (reader, _writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let error = within(Path::new(&path), MOST, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error, "it has no end, or none within 1 s");
        assert_eq!(read(Path::new("/dev/null")), Ok(Faults::default()));
    }
}
