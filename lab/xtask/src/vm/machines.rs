//! Machines under qemu, as hosts of a job. They see this machine's files, and write into an overlay of
//! their own.

use super::{
    image::{write_initrd, write_settings},
    packages::Packages,
    wire::Wire,
};
use crate::hosts::network::Network;
use std::{
    error::Error,
    fs::File,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes of a packet on the wire: RoCE's largest payload and its headers fit.
const MTU: u32 = 9000;
/// The time that a machine may take to start, with other work on this machine.
const BOOT: Duration = Duration::from_secs(300);

/// The size of each machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) cpus: u32,
    /// Memory in MiB.
    pub(super) memory: u32,
}

/// Running machines; killed when this is dropped.
pub(super) struct Machines {
    machines: Vec<Mutex<Child>>,
    wire: Wire,
    directory: TempDir,
}

impl Machines {
    /// Starts machines at the same time, and waits until they execute commands.
    ///
    /// # Errors
    /// A machine does not start; the error has the end of its console.
    pub(super) fn start(count: usize, size: Size, packages: &Packages) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("onesided-vm-").tempdir()?;
        write_initrd(directory.path(), packages)?;
        // The ports are free now, and may be taken until qemu binds them; then qemu says so and ends.
        let listeners = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<std::io::Result<Vec<_>>>()?;
        let ports = listeners.iter().map(|it| Ok(it.local_addr()?.port())).collect::<std::io::Result<Vec<_>>>()?;
        drop(listeners);
        write_settings(directory.path(), &ports)?;
        let wire = Wire::of(count, directory.path())?;
        let mut machines = Self { machines: Vec::new(), wire, directory };
        for (number, port) in ports.into_iter().enumerate() {
            let machine = machines.boot(number, port, size, packages)?;
            machines.machines.push(Mutex::new(machine));
        }
        (0..count).try_for_each(|number| machines.wait(number))?;
        Ok(machines)
    }

    fn boot(&self, number: usize, port: u16, size: Size, packages: &Packages) -> Result<Child> {
        let directory = self.directory.path();
        let (place, unpacked) = (directory.display(), packages.root().display());
        let (console, said) = (self.console(number), File::create(directory.join(format!("qemu-{number}")))?);
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-no-reboot", "-nodefaults", "-display", "none"]);
        qemu.args(["-smp", &size.cpus.to_string(), "-m", &size.memory.to_string()]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-kernel").arg(packages.kernel()).arg("-initrd").arg(directory.join("initrd"));
        qemu.arg("-append").arg(format!(
            "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check tsc=reliable clocksource=tsc nowatchdog net.ifnames=0 \
             onesided.directory={place} onesided.packages={unpacked} onesided.number={number} onesided.mtu={MTU}"
        ));
        qemu.args(["-virtfs", "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"]);
        qemu.args(["-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng"]);
        let wire = Wire::path(directory, number);
        qemu.arg("-netdev").arg(format!("stream,id=wire,server=off,addr.type=unix,addr.path={}", wire.display()));
        qemu.arg("-device").arg(format!("virtio-net-pci,netdev=wire,mac=52:54:00:88:00:0{number},host_mtu={MTU}"));
        // For ssh from this machine alone: `restrict` keeps the machine from reaching anything else.
        qemu.arg("-netdev").arg(format!("user,id=host,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22"));
        qemu.arg("-device").arg(format!("virtio-net-pci,netdev=host,mac=52:54:00:88:01:0{number}"));
        qemu.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        qemu.spawn().map_err(|error| format!("qemu-system-x86_64: {error}").into())
    }

    fn console(&self, number: usize) -> std::path::PathBuf {
        self.directory.path().join(format!("console-{number}"))
    }

    /// Waits until a machine executes commands, and sets its clock.
    fn wait(&self, number: usize) -> Result<()> {
        let until = Instant::now() + BOOT;
        while self.shell(number, "ls /sys/class/infiniband/rxe0").is_err() {
            if !self.works(number) || Instant::now() > until {
                let end = |name: String| {
                    let text = std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default();
                    text.lines().rev().take(4).collect::<Vec<_>>().join(" | ")
                };
                let (console, qemu) = (end(format!("console-{number}")), end(format!("qemu-{number}")));
                return Err(format!("machine {number} does not start: {console} | {qemu}").into());
            }
            thread::sleep(Duration::from_millis(300));
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
        self.shell(number, &format!("date --set=@{now:.3}")).map(drop)
    }

    fn kill(&self, number: usize) -> Result<()> {
        let mut machine = self.machines[number].lock().map_err(|_| "a machine's state is lost")?;
        machine.kill()?;
        machine.wait()?;
        Ok(())
    }
}

impl Network for Machines {
    fn hosts(&self) -> usize {
        self.machines.len()
    }

    fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn ssh(&self) -> String {
        "ssh".to_owned()
    }

    fn on(&self, host: usize, words: &[&str]) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.directory.path().join("config")).args(["-T", &self.name(host), "--"]);
        // ssh joins its arguments, and the host's shell divides them again.
        ssh.args(words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))));
        ssh
    }

    fn cut(&self, host: usize, off: bool) -> Result<()> {
        self.wire.cut(host, off);
        Ok(())
    }

    fn shares_files(&self) -> bool {
        false
    }

    fn runs(&self, program: &Path) -> bool {
        let line = format!("ls -l /proc/[0-9]*/exe 2>/dev/null | grep -qF -- '-> {}'", program.display());
        (0..self.hosts()).any(|host| self.works(host) && self.shell(host, &line).is_ok())
    }

    fn kill_host(&self, host: usize) -> Result<()> {
        self.kill(host)
    }

    fn works(&self, host: usize) -> bool {
        self.machines[host].lock().is_ok_and(|mut machine| matches!(machine.try_wait(), Ok(None)))
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for number in 0..self.machines.len() {
            let _ = self.kill(number);
            let mut end = Command::new("ssh");
            end.arg("-F").arg(self.directory.path().join("config")).args(["-O", "exit", &self.name(number)]);
            let _ = end.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
    }
}
