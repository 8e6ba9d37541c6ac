//! The files that machines read before they run programs: the first file system, with the modules that reach the
//! host's files, and keys and settings for ssh.

use super::packages::{Packages, run};
use std::{
    error::Error,
    fs,
    path::Path,
    process::{Command, Stdio},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const INIT: &str = include_str!("init");
const SETUP: &str = include_str!("setup");

/// Modules that are loaded before there are files of the host.
const MODULES: [&str; 6] = ["virtio_pci", "virtio_net", "9pnet_virtio", "9p", "overlay", "af_packet"];

/// Writes `initrd` into `directory`.
pub(super) fn write_initrd(directory: &Path, packages: &Packages) -> Result<()> {
    let root = directory.join("initrd.d");
    for folder in ["bin", "proc", "sys", "dev", "lower", "changes", "new", "modules"] {
        fs::create_dir_all(root.join(folder))?;
    }
    let busybox = run(Command::new("sh").args(["-c", "command -v busybox"]))?;
    fs::copy(busybox.trim(), root.join("bin/busybox"))?;
    fs::write(root.join("init"), INIT)?;
    run(Command::new("chmod").arg("755").arg(root.join("init")))?;
    let mut order: Vec<String> = Vec::new();
    for module in MODULES {
        for file in packages.module_files(module).unwrap_or_default() {
            let Some(name) = file.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
            if !order.contains(&name) {
                fs::copy(&file, root.join("modules").join(&name))?;
                order.push(name);
            }
        }
    }
    fs::write(root.join("modules/order"), order.join("\n") + "\n")?;
    let archive = fs::File::create(directory.join("initrd"))?;
    let mut cpio = Command::new("sh");
    cpio.args(["-c", "find . | cpio --create --format=newc --quiet"]).current_dir(&root);
    if !cpio.stdin(Stdio::null()).stdout(archive).status()?.success() {
        return Err("cpio can't write the first file system".into());
    }
    Ok(fs::remove_dir_all(root)?)
}

/// Writes `setup`, keys, and the settings of ssh: `config.machines` for machines, and `config` for this
/// one, which reaches each machine by a port.
pub(super) fn write_settings(directory: &Path, ports: &[u16]) -> Result<()> {
    fs::write(directory.join("setup"), SETUP)?;
    let keys = directory.join("keys");
    fs::create_dir_all(&keys)?;
    for key in ["host", "user"] {
        run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(keys.join(key)))?;
    }
    let common = "Host *\n  User root\n  IdentitiesOnly yes\n  UserKnownHostsFile /dev/null\n  \
                  StrictHostKeyChecking no\n  LogLevel ERROR\n";
    let mut between = String::new();
    let mut from_here = String::new();
    for (number, port) in ports.iter().enumerate() {
        between += &format!("Host host{number}\n  HostName 10.88.0.{}\n", number + 1);
        from_here += &format!("Host host{number}\n  HostName 127.0.0.1\n  Port {port}\n");
    }
    fs::write(directory.join("config.machines"), format!("{between}{common}  IdentityFile /run/keys/user\n"))?;
    let place = directory.display();
    let shared = "ControlMaster auto\n  ControlPersist 300\n  ConnectTimeout 10\n  ServerAliveInterval 20";
    Ok(fs::write(
        directory.join("config"),
        format!("{from_here}{common}  IdentityFile {place}/keys/user\n  ControlPath {place}/to-%h-%p\n  {shared}\n"),
    )?)
}
