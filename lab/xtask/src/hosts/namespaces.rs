//! Hosts on one machine: network namespaces, joined by a bridge in a separate one, with an sshd in
//! each that accepts one key. Nothing in the machine's own namespace changes.

use super::network::Network;
use crate::installed::is_installed;
use std::{
    error::Error,
    fs,
    path::Path,
    process::{self, Command},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Namespaces `N.0`, `N.1`, …, where N contains this process's ID; removed when it is dropped.
pub(super) struct Namespaces {
    hosts: usize,
    directory: TempDir,
}

/// Returns the reason why this machine can't have such hosts, if it can't.
pub(super) fn obstacle() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    let missing: Vec<&str> =
        ["ip", "sshd", "ssh", "ssh-keygen", "unshare"].iter().filter(|it| !is_installed(it)).copied().collect();
    (!missing.is_empty()).then(|| format!("{} not there", missing.join(", ")))
}

impl Namespaces {
    pub(super) fn of(hosts: usize) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("onesided-hosts-").tempdir()?;
        // Dropped if a later step fails, which removes everything created by then.
        let network = Namespaces { hosts, directory };
        network.add_bridge()?;
        network.make_keys()?;
        (0..hosts).try_for_each(|host| network.add_host(host))?;
        Ok(network)
    }

    fn namespace(&self, host: usize) -> String {
        format!("onesided-{}-{host}", process::id())
    }

    fn bridge(&self) -> String {
        format!("onesided-{}-bridge", process::id())
    }

    fn add_bridge(&self) -> Result<()> {
        let name = self.bridge();
        run(&format!("ip netns add {name}"))?;
        run(&format!("ip -n {name} link add bridge type bridge"))?;
        run(&format!("ip -n {name} link set bridge up"))
    }

    fn make_keys(&self) -> Result<()> {
        let path = |name: &str| self.directory().join(name);
        for key in ["host_key", "user_key"] {
            run(&format!("ssh-keygen -q -t ed25519 -N '' -f {}", path(key).display()))?;
        }
        fs::copy(path("user_key.pub"), path("authorized_keys"))?;
        // The directory of sshd's privilege separation, without which it does not start.
        fs::create_dir_all("/run/sshd")?;
        let directory = self.directory().display();
        let mut config = String::new();
        for host in 0..self.hosts {
            config += &format!("Host {}\n  HostName 10.77.0.{}\n", self.name(host), host + 1);
        }
        config += &format!(
            "Host *\n  Port 2222\n  User root\n  IdentityFile {directory}/user_key\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {directory}/known_hosts\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n"
        );
        fs::write(path("ssh_config"), config)?;
        let key = fs::read_to_string(path("host_key.pub"))?;
        let key: Vec<&str> = key.split_whitespace().take(2).collect();
        let known: String =
            (0..self.hosts).map(|host| format!("[10.77.0.{}]:2222 {}\n", host + 1, key.join(" "))).collect();
        fs::write(path("known_hosts"), known)?;
        Ok(())
    }

    fn add_host(&self, host: usize) -> Result<()> {
        let (name, bridge, directory) = (self.namespace(host), self.bridge(), self.directory().display());
        run(&format!("ip netns add {name}"))?;
        run(&format!("ip -n {name} link set lo up"))?;
        run(&format!("ip -n {name} link add eth0 type veth peer name port{host} netns {bridge}"))?;
        run(&format!("ip -n {name} addr add 10.77.0.{}/24 dev eth0", host + 1))?;
        run(&format!("ip -n {name} link set eth0 up"))?;
        run(&format!("ip -n {bridge} link set port{host} master bridge"))?;
        run(&format!("ip -n {bridge} link set port{host} up"))?;
        let config = format!(
            "Port 2222\nListenAddress 10.77.0.{}\nHostKey {directory}/host_key\n\
             AuthorizedKeysFile {directory}/authorized_keys\nPidFile {directory}/sshd.{host}.pid\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             StrictModes no\nUsePAM no\nUseDNS no\n",
            host + 1
        );
        fs::write(self.directory().join(format!("sshd.{host}.conf")), config)?;
        // sshd must be called by its absolute path. Its host has its own name.
        run(&format!(
            "PATH=$PATH:/usr/sbin:/sbin; ip netns exec {name} unshare --uts sh -c 'hostname {}; exec \"$0\" -f \
             {directory}/sshd.{host}.conf -E {directory}/sshd.{host}.log' \"$(command -v sshd)\"",
            self.name(host)
        ))?;
        let (file, until) =
            (self.directory().join(format!("sshd.{host}.pid")), Instant::now() + Duration::from_secs(10));
        while !file.exists() {
            if Instant::now() > until {
                return Err(format!("sshd of {} does not start", self.name(host)).into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Network for Namespaces {
    fn hosts(&self) -> usize {
        self.hosts
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn ssh(&self) -> String {
        format!("ssh -F {}", self.directory().join("ssh_config").display())
    }

    fn on(&self, host: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host)]).args(words);
        command
    }

    fn cut(&self, host: usize, off: bool) -> Result<()> {
        let state = if off { "down" } else { "up" };
        run(&format!("ip -n {} link set port{host} {state}", self.bridge()))
    }

    fn shares_files(&self) -> bool {
        true
    }

    fn runs(&self, program: &Path) -> bool {
        let mut pids =
            (0..self.hosts).map(|host| Command::new("ip").args(["netns", "pids", &self.namespace(host)]).output());
        pids.any(|pids| {
            let text = pids.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            text.lines().any(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        })
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Processes that still run in a namespace would keep it alive: sshd, its sessions, and
        // ranks if there are any.
        for name in (0..self.hosts).map(|host| self.namespace(host)).chain([self.bridge()]) {
            let _ = run(&format!(
                "ip netns pids {name} 2>/dev/null | while read -r number; do kill -9 \"$number\"; done; \
                 ip netns del {name} 2>/dev/null"
            ));
        }
    }
}

/// Runs a line of a shell.
fn run(line: &str) -> Result<()> {
    let output = Command::new("sh").args(["-c", line]).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}
