//! Slurm's configuration, and the arguments of its daemons.

use super::in_system_folders;
use std::{fmt::Write as _, path::Path};

/// A node, or the host of the controller.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// The name by which ranks reach the node.
    pub(crate) name: String,
    /// The name that the host itself reports.
    pub(crate) host: String,
    pub(crate) address: String,
    pub(crate) port: u16,
}

/// Returns `slurm.conf` for daemons that run as the user `user`, with all their files in `folder`.
pub(crate) fn configuration(folder: &Path, user: u32, controller: &Host, nodes: &[Host]) -> String {
    let file = |name: &str| folder.join(name).display().to_string();
    let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
    let mut lines: Vec<(&str, String)> = vec![
        ("ClusterName", "here".to_owned()),
        ("SlurmctldHost", format!("{}({})", controller.host, controller.address)),
        ("SlurmctldPort", controller.port.to_string()),
        ("SlurmUser", user.to_string()),
        ("SlurmdUser", user.to_string()),
        ("AuthType", "auth/munge".to_owned()),
        ("AuthInfo", format!("socket={}", file(SOCKET))),
        ("CredType", "cred/munge".to_owned()),
        ("StateSaveLocation", file("state")),
        ("SlurmdSpoolDir", file("spool")),
        ("SlurmctldPidFile", file("slurmctld.pid")),
        ("SlurmdPidFile", file("slurmd.pid")),
        ("SlurmctldLogFile", file("slurmctld.log")),
        ("SlurmdLogFile", file("slurmd.log")),
        ("ProctrackType", "proctrack/linuxproc".to_owned()),
        ("TaskPlugin", "task/none".to_owned()),
        ("SwitchType", "switch/none".to_owned()),
        ("JobAcctGatherType", "jobacct_gather/none".to_owned()),
        ("AccountingStorageType", "accounting_storage/none".to_owned()),
        ("SelectType", "select/cons_tres".to_owned()),
        ("SelectTypeParameters", "CR_Core".to_owned()),
        ("MpiDefault", "none".to_owned()),
        ("ReturnToService", "2".to_owned()),
        ("SlurmdParameters", "config_overrides".to_owned()),
        ("PropagateResourceLimits", "NONE".to_owned()),
    ];
    lines.extend(nodes.iter().map(|node| {
        let Host { name, host, address, port } = node;
        ("NodeName", format!("{name} NodeHostname={host} NodeAddr={address} Port={port} CPUs=8 State=UNKNOWN"))
    }));
    let partition = "Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8";
    lines.push(("PartitionName", format!("all Nodes={} {partition}", names.join(","))));
    lines.iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key}={value}");
        text
    })
}

/// The name of munged's socket.
pub(crate) const SOCKET: &str = "munge.socket";

/// Returns the options of munged, with all its files in `folder`.
pub(crate) fn munged(folder: &Path) -> Vec<String> {
    let file = |option: &str, name: &str| format!("--{option}={}", folder.join(name).display());
    vec![
        file("key-file", "munge.key"),
        file("socket", SOCKET),
        file("pid-file", "munged.pid"),
        file("log-file", "munged.log"),
        file("seed-file", "munge.seed"),
        // munged rejects parent folders that others may write, such as that of temporary files.
        "--force".to_owned(),
    ]
}

/// Returns `cgroup.conf`: no control groups are created, but versions before 23.02 require a plugin
/// anyway.
pub(crate) fn cgroup_configuration() -> String {
    let told = in_system_folders("slurmd").arg("-V").output().map(|told| told.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&told).into_owned();
    let year = text.split_whitespace().nth(1).and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let plugin = if year.is_some_and(|year| year < 23) { "cgroup/v1" } else { "disabled" };
    format!("CgroupPlugin={plugin}\n")
}
