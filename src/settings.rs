//! Command-line options, and the environment variables that replace them.

use rdma_fabric::FabricError;
use std::{
    env, ffi::OsString, fmt::Display, fs::File, io::Read, path::Path, str::FromStr, sync::mpsc, thread, time::Duration,
};
use tofu2_sim::virt::Faults;

pub(crate) fn setting(name: &'static str, problem: String) -> FabricError {
    FabricError::setting(name, problem)
}

/// The error for a setting without a value. Most likely a script's own variable was empty.
pub(crate) const EMPTY: &str = "it is empty; give it a value or leave it away";

/// Reads an option's value, or that of its environment variable if the option is absent.
pub(crate) fn option<T: FromStr<Err: Display>>(
    args: &mut pico_args::Arguments,
    flag: &'static str,
    variable: Option<&'static str>,
) -> Result<Option<T>, FabricError> {
    let given = args.opt_value_from_str::<_, String>(flag).map_err(|e| setting(flag, e.to_string()))?;
    match (given, variable) {
        (Some(text), _) => parsed(flag, &text).map(Some),
        (None, Some(name)) => self::variable(name),
        (None, None) => Ok(None),
    }
}

/// Reads an environment variable.
pub(crate) fn variable<T: FromStr<Err: Display>>(name: &'static str) -> Result<Option<T>, FabricError> {
    match env::var(name) {
        Ok(text) => parsed(name, &text).map(Some),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(setting(name, error.to_string())),
    }
}

fn parsed<T: FromStr<Err: Display>>(name: &'static str, text: &str) -> Result<T, FabricError> {
    if text.is_empty() {
        return Err(setting(name, EMPTY.to_owned()));
    }
    text.parse().map_err(|error: T::Err| setting(name, format!("`{text}`: {error}")))
}

/// Reads all `--env NAME` and `--env NAME=VALUE`; the former have the values of this process.
pub(crate) fn variables_for_ranks(args: &mut pico_args::Arguments) -> Result<Vec<(String, OsString)>, FabricError> {
    let words: Vec<String> =
        args.values_from_str("--env").map_err(|error: pico_args::Error| setting("--env", error.to_string()))?;
    words.iter().map(|word| named_variable(word)).collect()
}

/// Returns whether an option is among the arguments that have not been read yet.
pub(crate) fn is_given(args: &pico_args::Arguments, name: &str) -> bool {
    let is_it = |word: OsString| {
        word.to_str()
            .is_some_and(|word| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    };
    args.clone().finish().into_iter().any(is_it)
}

fn named_variable(word: &str) -> Result<(String, OsString), FabricError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.into())),
        None => (word, env::var_os(word)),
    };
    if name.is_empty() || name.contains('\0') {
        return Err(setting("--env", format!("`{word}` is not of the form NAME or NAME=VALUE")));
    }
    if name.starts_with("ONESIDED_") {
        return Err(setting("--env", format!("`{name}`: variables that begin with ONESIDED_ are passed on anyway")));
    }
    let value = value.ok_or_else(|| setting("--env", format!("`{name}` is not set here; give {name}=VALUE")))?;
    Ok((name.to_owned(), value))
}

/// A number of seconds above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) Duration);

/// Why a text is not [`Seconds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a number of seconds above 0, such as 2.5")]
pub(crate) struct NoSeconds;

impl FromStr for Seconds {
    type Err = NoSeconds;

    fn from_str(text: &str) -> Result<Self, NoSeconds> {
        let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.filter(|seconds| !seconds.is_zero()).map(Seconds).ok_or(NoSeconds)
    }
}

/// A number and its unit: `500ns`, `2us`, `1.5ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount(pub(crate) Duration);

/// Why a text is not an [`Amount`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a number with one of the units ns, us, ms, s, as in 2us")]
pub(crate) struct NoAmount;

impl FromStr for Amount {
    type Err = NoAmount;

    fn from_str(text: &str) -> Result<Self, NoAmount> {
        let unit = text.find(|char: char| !char.is_ascii_digit() && char != '.').ok_or(NoAmount)?;
        let (number, unit) = text.split_at(unit);
        let nanos = match unit {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return Err(NoAmount),
        };
        let seconds = number.parse::<f64>().map_err(|_| NoAmount)? * nanos / 1e9;
        Duration::try_from_secs_f64(seconds).map(Amount).map_err(|_| NoAmount)
    }
}

/// The longest file, in bytes: some hundred thousand faults.
const MOST: u64 = 16 << 20;

/// The time within which the writer of a pipe has to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads the file of `--faults`, which may be a pipe, a device, or another file without an end.
///
/// # Errors
/// A message that names the path.
pub(crate) fn faults_in(path: &Path) -> Result<Faults, String> {
    let faults = text_in(path).and_then(|text| text.parse::<Faults>().map_err(|error| error.to_string()));
    faults.map_err(|problem| format!("{}: {problem}", path.display()))
}

/// Reads a text file, which may be a pipe, a device, or another file without an end.
///
/// # Errors
/// A message without the path.
pub(crate) fn text_in(path: &Path) -> Result<String, String> {
    within(path, MOST, PATIENCE)
}

fn within(path: &Path, most: u64, patience: Duration) -> Result<String, String> {
    let (send, receive) = mpsc::channel();
    let owned = path.to_owned();
    // Opening and reading may block forever; the thread then ends with the process.
    let reader = move || {
        let mut bytes = Vec::new();
        let read = File::open(owned).and_then(|file| file.take(most + 1).read_to_end(&mut bytes));
        let _ = send.send(read.map(|_| bytes));
    };
    thread::Builder::new().name("reader of a file".to_owned()).spawn(reader).map_err(|error| error.to_string())?;
    let bytes = match receive.recv_timeout(patience) {
        Ok(read) => read.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("it has no end, or none within {} s", patience.as_secs())),
    };
    if bytes.len() as u64 > most {
        return Err(format!("it has no end, or more than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("it is no text: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (text, nanos) in [("500ns", 500), ("2us", 2_000), ("1.5ms", 1_500_000), ("3s", 3_000_000_000), ("0ns", 0)] {
            assert_eq!(text.parse(), Ok(Amount(Duration::from_nanos(nanos))), "{text}");
        }
        for text in ["", "2", "us", "-2us", "2 us", "2m", "1.2.3us", "1e3us", "99999999999999999999999s"] {
            assert_eq!(text.parse::<Amount>(), Err(NoAmount), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_without_end_are_refused() {
        let error = faults_in(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error, "/dev/zero: it has no end, or more than 16777216 bytes");
        // A pipe that is never closed.
        let (reader, _writer) = std::io::pipe().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let error = within(Path::new(&path), MOST, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error, "it has no end, or none within 1 s");
        assert_eq!(faults_in(Path::new("/dev/null")), Ok(Faults::default()));
    }
}
