//! The command that starts an agent on a host.

use super::{
    plan::{AGENT, AgentPlan},
    quote::quoted,
};
use crate::cluster::NODE_VARIABLE;
use bootstrap::ThisProgram;
use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// The variable with the command to use instead of `ssh`, with arguments separated by spaces.
pub(crate) const SSH: &str = "ONESIDED_SSH";

/// Variables of the user's launcher, which are not passed to the hosts.
const OWN: [&str; 7] =
    [AGENT, SSH, NODE_VARIABLE, bootstrap::CLUSTER, "ONESIDED_HOSTS", "ONESIDED_JOB", "ONESIDED_OBSERVE"];

/// Returns the words of the command to use as `ssh`.
pub(super) fn words() -> Vec<OsString> {
    let named = env::var_os(SSH).unwrap_or_else(|| "ssh".into());
    let words: Vec<OsString> = named
        .as_bytes()
        .split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    if words.is_empty() { vec!["ssh".into()] } else { words }
}

/// Returns the command that starts the agent on `host`; its streams are pipes.
///
/// `env` are further variables for the host. ssh never prompts, stops trying to connect after `connect`, and ends if the host does not
/// answer for about `silence`.
pub(super) fn command(
    host: &str,
    plan: &AgentPlan,
    program: &ThisProgram,
    env: &[(String, OsString)],
    connect: Duration,
    silence: Duration,
) -> Command {
    let mut words = words().into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    let every = silence.as_secs().div_ceil(3).max(1);
    command.args(words).args(["-T", "-o", "BatchMode=yes"]);
    command.arg("-o").arg(format!("ConnectTimeout={}", connect.as_secs().max(1)));
    command.arg("-o").arg(format!("ServerAliveInterval={every}")).args(["-o", "ServerAliveCountMax=2"]);
    let directory = env::current_dir().ok();
    let named = env.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    let variables = env::vars_os().filter(|(name, _)| goes_along(name)).chain(named);
    let script = script(
        plan,
        directory.as_deref(),
        variables,
        program.file(),
        program.loading().iter().cloned().chain(env::args_os().skip(1)),
    );
    command.arg("--").arg(host).arg(script);
    // An interrupt from the terminal is for the launcher, which then ends the ranks.
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn goes_along(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"ONESIDED_") && !OWN.iter().any(|own| name == *own)
}

/// Returns the line for the host's shell, of any kind: it starts a POSIX shell, which changes to
/// the same directory, if it exists, and then executes the program.
fn script(
    plan: &AgentPlan,
    directory: Option<&Path>,
    variables: impl Iterator<Item = (OsString, OsString)>,
    program: &Path,
    arguments: impl Iterator<Item = OsString>,
) -> OsString {
    let mut inner = Vec::new();
    if let Some(directory) = directory {
        inner.extend_from_slice(b"cd ");
        inner.append(&mut quoted(directory.as_os_str().as_bytes()));
        inner.extend_from_slice(b" 2>/dev/null; ");
    }
    inner.extend_from_slice(b"exec env");
    let plan = (OsString::from(AGENT), OsString::from(plan.to_text()));
    let variables = variables.chain([plan]).map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    let rest = [program.as_os_str().as_bytes().to_vec()].into_iter().chain(arguments.map(OsString::into_vec));
    for word in variables.chain(rest) {
        inner.push(b' ');
        inner.append(&mut quoted(&word));
    }
    OsString::from_vec([&b"exec /bin/sh -c "[..], &quoted(&inner)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> AgentPlan {
        let coordinator = "10.0.0.1:4000".parse().unwrap();
        AgentPlan { ranks: 4, share: 1..3, coordinator, silence: Duration::from_secs(1), records: None }
    }

    #[test]
    fn the_shell_of_the_host_starts_the_program_as_it_was_started_here() {
        let variables = [("ONESIDED_A".into(), "it's $HOME".into())].into_iter();
        let arguments = ["-c", "pwd; printf '%s|' \"$ONESIDED_A\" \"$ONESIDED_AGENT\" \"$@\"", "name", "a b", ""];
        let line = script(
            &plan(),
            Some(Path::new("/")),
            variables,
            Path::new("/bin/sh"),
            arguments.map(Into::into).into_iter(),
        );
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        let want = format!("/\nit's $HOME|{}|a b||", plan().to_text());
        assert_eq!(String::from_utf8_lossy(&output.stdout), want, "{output:?}");
    }

    #[test]
    fn a_directory_or_program_that_is_not_there_is_no_riddle() {
        let (there, gone) = (Path::new("/bin/pwd"), Path::new("/nowhere/at all"));
        let run = |program| {
            let line = script(&plan(), Some(gone), [].into_iter(), program, [].into_iter());
            Command::new("sh").arg("-c").arg(line).current_dir("/usr").output().unwrap()
        };
        assert_eq!(run(there).stdout, b"/usr\n");
        assert_eq!(run(gone).status.code(), Some(127));
    }

    #[test]
    fn the_users_variables_go_along_and_the_launchers_do_not() {
        for name in ["ONESIDED_SEGMENT_BYTES", "ONESIDED_TREE"] {
            assert!(goes_along(name.as_ref()), "{name}");
        }
        for name in ["PATH", "XONESIDED_", "ONESIDED_AGENT", "ONESIDED_CLUSTER", "ONESIDED_NODE", "ONESIDED_SSH"] {
            assert!(!goes_along(name.as_ref()), "{name}");
        }
    }
}
